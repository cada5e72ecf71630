// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_SESSION_STORE_H_
#define CLERESTORY_SERVER_STORE_SESSION_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/model/breaker_record.h"
#include "server/model/record.h"

namespace clerestory {

// A session as it is stored.
struct StoredSession {
  SessionHeader header;
  // In the order in which they were written. How many there are is the
  // session's version.
  std::vector<Record> records;
};

// A tenant's document of policies as it is stored: text that the store does not
// look into.
struct StoredPolicy {
  std::string tenant;
  std::string yaml;
  TimeMicros update_time = 0;

  friend bool operator==(const StoredPolicy&, const StoredPolicy&) = default;
};

// What was learned of the tokens of a tenant and a model, as it is stored:
// numbers that the store does not look into (CalibrationState of server/cost).
struct StoredCalibration {
  std::string tenant;
  std::string model;
  std::vector<std::int64_t> weights = {};
  std::int64_t sample_count = 0;

  friend bool operator==(const StoredCalibration&,
                         const StoredCalibration&) = default;
};

// All that is stored of them.
struct StoredCalibrations {
  // In the order of the bytes of their tenants, and of their models.
  std::vector<StoredCalibration> entries;
  // How many were passed by: damaged, or written by a later version of this
  // server. Damage of a file counts once, with all that it hides.
  std::int64_t skipped_count = 0;
};

// What was learned of a tenant's tool, as it is stored: numbers that the store
// does not look into (ToolBreaker of server/breaker).
struct StoredTool {
  std::string tenant;
  std::string tool;
  BreakerRecord record = {};

  friend bool operator==(const StoredTool&, const StoredTool&) = default;
};

// All that is stored of them.
struct StoredTools {
  // In the order of the bytes of their tenants, and of their tools.
  std::vector<StoredTool> entries;
  // How many were passed by, as of StoredCalibrations.
  std::int64_t skipped_count = 0;
};

// The tenants that have a document.
struct PolicyTenants {
  // In the order of their bytes.
  std::vector<std::string> names;
  // How many were passed by, as of StoredCalibrations.
  std::int64_t skipped_count = 0;
};

// What tells one text of a tenant's document from another: 32 hexadecimal
// digits.
std::string PolicyEtag(absl::string_view yaml);

// What must be stored for a document to be replaced or removed: the one of that
// etag, none at all if it is "", or whatever is there without one.
using ExpectedEtag = std::optional<std::string>;

// When a write counts as done.
enum class Durability {
  // It survives the loss of the machine's power.
  kSynced,
  // It survives the end of this process, and the loss of power once a synced
  // write followed it.
  kBuffered,
};

// Where sessions are kept: a header and a log of records for each. And what
// tenants stored of policies, one document for each, and what was learned of
// their models and tools.
//
// Every write is atomic: all of it is there afterwards, or nothing. What was
// written is there for every read that begins after the write returned. When a
// write fails with UNAVAILABLE or RESOURCE_EXHAUSTED, it may have happened, or
// happen at the next recovery of the store and before any later write: read to
// find out.
//
// Errors that any method may return: UNAVAILABLE with kStoreUnavailable (worth
// trying again), RESOURCE_EXHAUSTED with kStoreFull (no space; reads go on),
// DATA_LOSS with kRecordCorrupt (what is stored of this session fails its
// check; other sessions are not affected). All carry no content.
//
// Safe from any thread. Calls block.
class SessionStore {
 public:
  SessionStore() = default;
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;
  virtual ~SessionStore() = default;

  // Adds a session without records, synced. ALREADY_EXISTS with kSessionExists
  // if there is one of that key.
  virtual absl::Status Create(const SessionHeader& header) = 0;

  // Returns the session. NOT_FOUND with kSessionNotFound if there is none.
  virtual absl::StatusOr<StoredSession> Read(const SessionKey& key) const = 0;

  // Adds `records` behind the first `expected_version` ones. If they end with
  // SessionClosed, the header is given its outcome, time and totals in the same
  // write.
  //
  // NOT_FOUND with kSessionNotFound if there is no such session; ABORTED with
  // kAppendConflict if its version is another one. REQUIRES: `records` is not
  // empty.
  virtual absl::Status Write(const SessionKey& key,
                             std::int64_t expected_version,
                             const std::vector<Record>& records,
                             Durability durability) = 0;

  // Removes the session and all its records, synced. NOT_FOUND with
  // kSessionNotFound if there is none.
  virtual absl::Status Delete(const SessionKey& key) = 0;

  // Returns the headers of up to `limit` sessions of `tenant` whose ids come
  // after `after` in byte order, in that order. REQUIRES: `limit` > 0.
  virtual absl::StatusOr<std::vector<SessionHeader>> List(
      absl::string_view tenant, absl::string_view after,
      std::int64_t limit) const = 0;

  // Stores `policy` in place of what its tenant has, synced. ABORTED with
  // kPolicyConflict, which names the etag that is there, if that is not
  // `expected`. Without one, a damaged document is replaced like any other.
  virtual absl::Status PutPolicy(const StoredPolicy& policy,
                                 const ExpectedEtag& expected) = 0;

  // Returns the document of `tenant`. NOT_FOUND with kPolicyNotFound if there
  // is none.
  virtual absl::StatusOr<StoredPolicy> GetPolicy(
      absl::string_view tenant) const = 0;

  // Removes the document of `tenant`, synced. NOT_FOUND with kPolicyNotFound if
  // there is none; ABORTED with kPolicyConflict as of PutPolicy.
  virtual absl::Status DeletePolicy(absl::string_view tenant,
                                    const ExpectedEtag& expected) = 0;

  // Returns all tenants that have a document. DATA_LOSS is none of its errors:
  // what is damaged is counted.
  virtual absl::StatusOr<PolicyTenants> ListPolicyTenants() const = 0;

  // Stores `calibration` in place of what there is of its tenant and model,
  // buffered: the loss of power may take the last ones with it, so that an
  // older one is there again. Of calls for one tenant and model that overlap,
  // any may be the last.
  virtual absl::Status PutCalibration(const StoredCalibration& calibration) = 0;

  // Returns what is stored of all tenants and models. DATA_LOSS is none of its
  // errors: what is damaged is counted.
  virtual absl::StatusOr<StoredCalibrations> ListCalibrations() const = 0;

  // Stores `tool` in place of what there is of its tenant and name, buffered,
  // as PutCalibration.
  virtual absl::Status PutTool(const StoredTool& tool) = 0;

  // Returns what is stored of all tenants' tools. DATA_LOSS is none of its
  // errors: what is damaged is counted.
  virtual absl::StatusOr<StoredTools> ListTools() const = 0;

  // Removes what is stored of the tenant's tool, synced. OK if nothing is.
  virtual absl::Status DeleteTool(absl::string_view tenant,
                                  absl::string_view tool) = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_SESSION_STORE_H_
