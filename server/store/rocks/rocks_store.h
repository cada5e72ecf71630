// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_ROCKS_STORE_H_
#define CLERESTORY_SERVER_STORE_ROCKS_ROCKS_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/model/record.h"
#include "server/store/rocks/rocks_options.h"
#include "server/store/rocks/write_gate.h"
#include "server/store/session_store.h"

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace clerestory {

class RocksDatabase;

// Keeps sessions in a RocksDB database: the embedded store of one machine.
// STORAGE.md says what is where and what survives what.
//
// When the disk is full, or fails, writes fail and reads go on. Each write
// finds out whether the disk is well again; if so, the database is opened anew,
// and reads wait for that.
//
// Safe from any thread, as every SessionStore.
class RocksStore final : public SessionStore {
 public:
  // Opens the store at `options.path`, and makes it if there is none.
  //
  // FAILED_PRECONDITION with kStoreUnavailable if another process has it open,
  // its format is newer than this server's, or the directory holds something
  // else; DATA_LOSS with kRecordCorrupt if it is damaged as a whole;
  // RESOURCE_EXHAUSTED with kStoreFull if there is no space; UNAVAILABLE with
  // kStoreUnavailable if the file system refuses. The messages name the path
  // and are for the operator.
  static absl::StatusOr<std::unique_ptr<RocksStore>> Open(
      const RocksOptions& options);

  // Writes what is in the log to sorted files, so that opening is quick.
  // REQUIRES: no call is running.
  ~RocksStore() override;

  absl::Status Create(const SessionHeader& header) override;
  absl::StatusOr<StoredSession> Read(const SessionKey& key) const override;
  absl::Status Write(const SessionKey& key, std::int64_t expected_version,
                     const std::vector<Record>& records,
                     Durability durability) override;
  absl::Status Delete(const SessionKey& key) override;
  absl::StatusOr<std::vector<SessionHeader>> List(
      absl::string_view tenant, absl::string_view after,
      std::int64_t limit) const override;
  absl::Status PutPolicy(const StoredPolicy& policy,
                         const ExpectedEtag& expected) override;
  absl::StatusOr<StoredPolicy> GetPolicy(
      absl::string_view tenant) const override;
  absl::Status DeletePolicy(absl::string_view tenant,
                            const ExpectedEtag& expected) override;
  absl::StatusOr<PolicyTenants> ListPolicyTenants() const override;
  absl::Status PutCalibration(const StoredCalibration& calibration) override;
  absl::StatusOr<StoredCalibrations> ListCalibrations() const override;
  absl::Status PutTool(const StoredTool& tool) override;
  absl::StatusOr<StoredTools> ListTools() const override;
  absl::Status DeleteTool(absl::string_view tenant,
                          absl::string_view tool) override;

 private:
  explicit RocksStore(std::unique_ptr<RocksDatabase> database);

  // Lets `fill` look at the session and fill a batch, and writes that. Nobody
  // else changes the session in between.
  absl::Status Change(
      const SessionKey& key, Durability durability,
      absl::FunctionRef<absl::Status(rocksdb::DB&, rocksdb::WriteBatch&)> fill);

  const std::unique_ptr<RocksDatabase> database_;
  WriteGate gate_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_ROCKS_STORE_H_
