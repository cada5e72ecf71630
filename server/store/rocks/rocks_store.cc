// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"
#include "server/base/check.h"
#include "server/base/status.h"
#include "server/model/record.h"
#include "server/store/record_codec.h"
#include "server/store/rocks/rocks_database.h"
#include "server/store/rocks/rocks_errors.h"
#include "server/store/rocks/rocks_keys.h"
#include "server/store/rocks/rocks_options.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"
#include "server/store/tool_codec.h"

namespace clerestory {
namespace {

absl::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// Finds the header of the session, as of `snapshot` unless that is null.
absl::Status Find(rocksdb::DB& database, const SessionKey& key,
                  const rocksdb::Snapshot* snapshot,
                  rocksdb::PinnableSlice& header) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  const rocksdb::Status status = database.Get(
      options, database.DefaultColumnFamily(), HeaderKey(key), &header);
  if (status.IsNotFound()) return SessionNotFoundError(key);
  return ReadError(status, HeaderCorruptError(key));
}

// Finds the document of the tenant.
absl::Status FindPolicy(rocksdb::DB& database, absl::string_view tenant,
                        rocksdb::PinnableSlice& policy) {
  const rocksdb::Status status =
      database.Get(rocksdb::ReadOptions(), database.DefaultColumnFamily(),
                   PolicyKey(tenant), &policy);
  if (status.IsNotFound()) return PolicyNotFoundError();
  return ReadError(status, PolicyCorruptError());
}

// OK if the document of the tenant is as `expected`. A document that is not
// looked at may be damaged.
absl::Status CheckEtag(rocksdb::DB& database, absl::string_view tenant,
                       const ExpectedEtag& expected) {
  if (!expected.has_value()) return absl::OkStatus();
  rocksdb::PinnableSlice value;
  const absl::Status found = FindPolicy(database, tenant, value);
  std::string present;
  if (found.ok()) {
    CLERESTORY_ASSIGN_OR_RETURN(const StoredPolicy policy,
                                DecodePolicy(ToView(value), tenant));
    present = PolicyEtag(policy.yaml);
  } else if (!absl::IsNotFound(found)) {
    return found;
  }
  return present == *expected ? absl::OkStatus() : PolicyConflictError(present);
}

// What a writer of a tenant's document enters the gate with. No session has an
// empty id.
SessionKey GateKey(absl::string_view tenant) {
  return {.tenant = std::string(tenant), .session = ""};
}

// `end` must outlive the iterator.
std::unique_ptr<rocksdb::Iterator> NewIterator(
    rocksdb::DB& database, const rocksdb::Slice& end,
    const rocksdb::Snapshot* snapshot) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  options.iterate_upper_bound = &end;
  return std::unique_ptr<rocksdb::Iterator>(database.NewIterator(options));
}

// OK if the session has `version` records; SessionNotFoundError if there is
// none.
absl::Status CheckVersion(rocksdb::DB& database, const SessionKey& key,
                          std::int64_t version) {
  bool as_expected = false;
  if (version >= 0) {
    // From the last record that should be there: it, and no other.
    const RocksRange range = RecordRange(key);
    const rocksdb::Slice end = range.end;
    const std::unique_ptr<rocksdb::Iterator> it =
        NewIterator(database, end, nullptr);
    const std::string last = RecordKey(key, version == 0 ? 0 : version - 1);
    it->Seek(last);
    as_expected = version == 0 || (it->Valid() && it->key() == last);
    if (version > 0 && as_expected) it->Next();
    as_expected = as_expected && !it->Valid();
    CLERESTORY_RETURN_IF_ERROR(
        ReadError(it->status(), RecordCorruptError(key, version)));
  }
  // Where there is a record, there is a session.
  if (as_expected && version > 0) return absl::OkStatus();
  rocksdb::PinnableSlice header;
  CLERESTORY_RETURN_IF_ERROR(Find(database, key, nullptr, header));
  return as_expected ? absl::OkStatus() : AppendConflictError(key);
}

}  // namespace

RocksStore::RocksStore(std::unique_ptr<RocksDatabase> database)
    : database_(std::move(database)),
      gate_([this] { return database_->stopped(); },
            [this] { return database_->Reopen(); }) {}

RocksStore::~RocksStore() = default;

absl::StatusOr<std::unique_ptr<RocksStore>> RocksStore::Open(
    const RocksOptions& options) {
  CLERESTORY_ASSIGN_OR_RETURN(std::unique_ptr<RocksDatabase> database,
                              RocksDatabase::Open(options));
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(database)));
}

absl::Status RocksStore::Create(const SessionHeader& header) {
  return Change(
      header.key, Durability::kSynced,
      [&](rocksdb::DB& database, rocksdb::WriteBatch& batch) -> absl::Status {
        rocksdb::PinnableSlice value;
        const absl::Status found = Find(database, header.key, nullptr, value);
        if (found.ok()) return SessionExistsError(header.key);
        if (!absl::IsNotFound(found)) return found;
        batch.Put(HeaderKey(header.key), EncodeHeader(header));
        return absl::OkStatus();
      });
}

absl::StatusOr<StoredSession> RocksStore::Read(const SessionKey& key) const {
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              database_->Use());
  // Header and records as of one moment.
  rocksdb::ManagedSnapshot snapshot(database.get());
  rocksdb::PinnableSlice value;
  CLERESTORY_RETURN_IF_ERROR(Find(*database, key, snapshot.snapshot(), value));
  StoredSession session;
  CLERESTORY_ASSIGN_OR_RETURN(session.header, DecodeHeader(ToView(value), key));

  const RocksRange range = RecordRange(key);
  const rocksdb::Slice end = range.end;
  const std::unique_ptr<rocksdb::Iterator> it =
      NewIterator(*database, end, snapshot.snapshot());
  std::int64_t number = 0;
  for (it->Seek(range.begin); it->Valid(); it->Next(), ++number) {
    if (it->key() != RecordKey(key, number)) {
      return RecordCorruptError(key, number);
    }
    CLERESTORY_ASSIGN_OR_RETURN(Record record,
                                DecodeRecord(ToView(it->value()), key, number));
    session.records.push_back(std::move(record));
  }
  CLERESTORY_RETURN_IF_ERROR(
      ReadError(it->status(), RecordCorruptError(key, number)));
  return session;
}

absl::Status RocksStore::Write(const SessionKey& key,
                               std::int64_t expected_version,
                               const std::vector<Record>& records,
                               Durability durability) {
  CLERESTORY_CHECK(!records.empty());
  return Change(
      key, durability,
      [&](rocksdb::DB& database, rocksdb::WriteBatch& batch) -> absl::Status {
        CLERESTORY_RETURN_IF_ERROR(
            CheckVersion(database, key, expected_version));
        std::int64_t number = expected_version;
        for (const Record& record : records) {
          batch.Put(RecordKey(key, number), EncodeRecord(record));
          ++number;
        }
        if (const auto* closed = std::get_if<SessionClosed>(&records.back())) {
          rocksdb::PinnableSlice value;
          CLERESTORY_RETURN_IF_ERROR(Find(database, key, nullptr, value));
          CLERESTORY_ASSIGN_OR_RETURN(SessionHeader header,
                                      DecodeHeader(ToView(value), key));
          header.outcome = closed->outcome;
          header.close_time = closed->time;
          header.totals = closed->totals;
          batch.Put(HeaderKey(key), EncodeHeader(header));
        }
        return absl::OkStatus();
      });
}

absl::Status RocksStore::Delete(const SessionKey& key) {
  return Change(
      key, Durability::kSynced,
      [&](rocksdb::DB& database, rocksdb::WriteBatch& batch) -> absl::Status {
        rocksdb::PinnableSlice value;
        CLERESTORY_RETURN_IF_ERROR(Find(database, key, nullptr, value));
        const RocksRange records = RecordRange(key);
        batch.Delete(HeaderKey(key));
        batch.DeleteRange(records.begin, records.end);
        return absl::OkStatus();
      });
}

absl::StatusOr<std::vector<SessionHeader>> RocksStore::List(
    absl::string_view tenant, absl::string_view after,
    std::int64_t limit) const {
  CLERESTORY_CHECK(limit > 0);
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              database_->Use());
  SessionKey last = {.tenant = std::string(tenant),
                     .session = std::string(after)};
  const RocksRange range = HeaderRange(tenant);
  const rocksdb::Slice end = range.end;
  const std::unique_ptr<rocksdb::Iterator> it =
      NewIterator(*database, end, nullptr);
  it->Seek(HeaderKey(last));
  if (it->Valid() && it->key() == HeaderKey(last)) it->Next();
  std::vector<SessionHeader> headers;
  for (; it->Valid() && static_cast<std::int64_t>(headers.size()) < limit;
       it->Next()) {
    const std::optional<SessionKey> key = ParseHeaderKey(ToView(it->key()));
    if (!key) return ListCorruptError(last);
    CLERESTORY_ASSIGN_OR_RETURN(SessionHeader header,
                                DecodeHeader(ToView(it->value()), *key));
    last = *key;
    headers.push_back(std::move(header));
  }
  CLERESTORY_RETURN_IF_ERROR(ReadError(it->status(), ListCorruptError(last)));
  return headers;
}

absl::Status RocksStore::PutPolicy(const StoredPolicy& policy,
                                   const ExpectedEtag& expected) {
  return Change(
      GateKey(policy.tenant), Durability::kSynced,
      [&](rocksdb::DB& database, rocksdb::WriteBatch& batch) -> absl::Status {
        CLERESTORY_RETURN_IF_ERROR(
            CheckEtag(database, policy.tenant, expected));
        batch.Put(PolicyKey(policy.tenant), EncodePolicy(policy));
        return absl::OkStatus();
      });
}

absl::StatusOr<StoredPolicy> RocksStore::GetPolicy(
    absl::string_view tenant) const {
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              database_->Use());
  rocksdb::PinnableSlice value;
  CLERESTORY_RETURN_IF_ERROR(FindPolicy(*database, tenant, value));
  return DecodePolicy(ToView(value), tenant);
}

absl::Status RocksStore::DeletePolicy(absl::string_view tenant,
                                      const ExpectedEtag& expected) {
  return Change(
      GateKey(tenant), Durability::kSynced,
      [&](rocksdb::DB& database, rocksdb::WriteBatch& batch) -> absl::Status {
        rocksdb::PinnableSlice value;
        CLERESTORY_RETURN_IF_ERROR(FindPolicy(database, tenant, value));
        CLERESTORY_RETURN_IF_ERROR(CheckEtag(database, tenant, expected));
        batch.Delete(PolicyKey(tenant));
        return absl::OkStatus();
      });
}

absl::StatusOr<PolicyTenants> RocksStore::ListPolicyTenants() const {
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              database_->Use());
  const RocksRange range = PolicyRange();
  const rocksdb::Slice end = range.end;
  const std::unique_ptr<rocksdb::Iterator> it =
      NewIterator(*database, end, nullptr);
  PolicyTenants tenants;
  for (it->Seek(range.begin); it->Valid(); it->Next()) {
    std::optional<std::string> name = ParsePolicyKey(ToView(it->key()));
    if (name) {
      tenants.names.push_back(*std::move(name));
    } else {
      ++tenants.skipped_count;
    }
  }
  if (it->status().IsCorruption()) ++tenants.skipped_count;
  // Damage, which is counted, is no error.
  CLERESTORY_RETURN_IF_ERROR(ReadError(it->status(), absl::OkStatus()));
  return tenants;
}

absl::Status RocksStore::PutCalibration(const StoredCalibration& calibration) {
  const std::string key = CalibrationKey(calibration.tenant, calibration.model);
  // A gate for each model: they do not wait for each other.
  return Change(GateKey(key), Durability::kBuffered,
                [&](rocksdb::DB& /*database*/, rocksdb::WriteBatch& batch) {
                  batch.Put(key, EncodeCalibration(calibration));
                  return absl::OkStatus();
                });
}

absl::StatusOr<StoredCalibrations> RocksStore::ListCalibrations() const {
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              database_->Use());
  const RocksRange range = CalibrationRange();
  const rocksdb::Slice end = range.end;
  const std::unique_ptr<rocksdb::Iterator> it =
      NewIterator(*database, end, nullptr);
  StoredCalibrations all;
  for (it->Seek(range.begin); it->Valid(); it->Next()) {
    const auto name = ParseCalibrationKey(ToView(it->key()));
    std::optional<StoredCalibration> calibration;
    if (name) {
      calibration =
          DecodeCalibration(ToView(it->value()), name->tenant, name->model);
    }
    if (calibration) {
      all.entries.push_back(*std::move(calibration));
    } else {
      ++all.skipped_count;
    }
  }
  if (it->status().IsCorruption()) ++all.skipped_count;
  // Damage, which is counted, is no error.
  CLERESTORY_RETURN_IF_ERROR(ReadError(it->status(), absl::OkStatus()));
  return all;
}

absl::Status RocksStore::PutTool(const StoredTool& tool) {
  const std::string key = ToolKey(tool.tenant, tool.tool);
  return Change(GateKey(key), Durability::kBuffered,
                [&](rocksdb::DB& /*database*/, rocksdb::WriteBatch& batch) {
                  batch.Put(key, EncodeTool(tool));
                  return absl::OkStatus();
                });
}

absl::StatusOr<StoredTools> RocksStore::ListTools() const {
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              database_->Use());
  const RocksRange range = ToolRange();
  const rocksdb::Slice end = range.end;
  const std::unique_ptr<rocksdb::Iterator> it =
      NewIterator(*database, end, nullptr);
  StoredTools all;
  for (it->Seek(range.begin); it->Valid(); it->Next()) {
    const auto name = ParseToolKey(ToView(it->key()));
    std::optional<StoredTool> tool;
    if (name) tool = DecodeTool(ToView(it->value()), name->tenant, name->tool);
    if (tool) {
      all.entries.push_back(*std::move(tool));
    } else {
      ++all.skipped_count;
    }
  }
  if (it->status().IsCorruption()) ++all.skipped_count;
  // Damage, which is counted, is no error.
  CLERESTORY_RETURN_IF_ERROR(ReadError(it->status(), absl::OkStatus()));
  return all;
}

absl::Status RocksStore::DeleteTool(absl::string_view tenant,
                                    absl::string_view tool) {
  const std::string key = ToolKey(tenant, tool);
  return Change(GateKey(key), Durability::kSynced,
                [&](rocksdb::DB& /*database*/, rocksdb::WriteBatch& batch) {
                  batch.Delete(key);
                  return absl::OkStatus();
                });
}

absl::Status RocksStore::Change(
    const SessionKey& key, Durability durability,
    absl::FunctionRef<absl::Status(rocksdb::DB&, rocksdb::WriteBatch&)> fill) {
  CLERESTORY_RETURN_IF_ERROR(gate_.Enter(key));
  absl::Status status;
  if (const auto database = database_->Use(); database.ok()) {
    rocksdb::WriteBatch batch;
    status = fill(**database, batch);
    if (status.ok()) {
      rocksdb::WriteOptions options;
      options.sync = durability == Durability::kSynced;
      status = WriteError((*database)->Write(options, &batch));
    }
  } else {
    status = database.status();
  }
  gate_.Leave(key);
  return status;
}

}  // namespace clerestory
