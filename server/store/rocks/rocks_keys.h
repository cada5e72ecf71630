// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_ROCKS_KEYS_H_
#define CLERESTORY_SERVER_STORE_ROCKS_ROCKS_KEYS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/model/record.h"

namespace clerestory {

// The keys of the RocksDB store. RocksDB orders them by their bytes:
//
//   key                               value
//   ------------------------------    -----------------------------------------
//   'c' tenant model                  what was learned of the tokens of both
//                                     (record_codec.h)
//   'f'                               the version of this layout, in decimal
//   'h' tenant session                the header (record_codec.h)
//   'p' tenant                        its document of policies
//                                     (record_codec.h)
//   'r' tenant session number         the record of that number
//                                     (record_codec.h)
//   't' tenant tool                   what was learned of the tool
//                                     (tool_codec.h)
//
//   tenant, session, model, tool   the bytes of the text, each 00 as 00 FF;
//                                  then 00 01
//   number                         8 bytes, big-endian
//
// Texts may have any bytes. Their order is that of the texts, none is the
// beginning of another, and everything of a tenant or a session is one range.

// A range of keys: from `begin`, up to and without `end`.
struct RocksRange {
  std::string begin;
  std::string end;
};

// The key of the version.
std::string FormatKey();

// The key of a session's header.
std::string HeaderKey(const SessionKey& key);

// The headers of all sessions of `tenant`.
RocksRange HeaderRange(absl::string_view tenant);

// The session whose header is stored under `key`; nothing if that is no such
// key.
std::optional<SessionKey> ParseHeaderKey(absl::string_view key);

// The key of a tenant's document of policies.
std::string PolicyKey(absl::string_view tenant);

// The documents of all tenants.
RocksRange PolicyRange();

// The tenant whose document is stored under `key`; nothing if that is no such
// key.
std::optional<std::string> ParsePolicyKey(absl::string_view key);

// The key of what was learned of the tokens of a tenant and a model.
std::string CalibrationKey(absl::string_view tenant, absl::string_view model);

// That of all tenants and models.
RocksRange CalibrationRange();

struct CalibrationName {
  std::string tenant;
  std::string model;
};

// Those of what is stored under `key`; nothing if that is no such key.
std::optional<CalibrationName> ParseCalibrationKey(absl::string_view key);

// The key of a record. REQUIRES: `number` >= 0.
std::string RecordKey(const SessionKey& key, std::int64_t number);

// All records of a session.
RocksRange RecordRange(const SessionKey& key);

// The key of what was learned of a tenant's tool.
std::string ToolKey(absl::string_view tenant, absl::string_view tool);

// That of all tenants and tools.
RocksRange ToolRange();

struct ToolKeyName {
  std::string tenant;
  std::string tool;
};

// Those of what is stored under `key`; nothing if that is no such key.
std::optional<ToolKeyName> ParseToolKey(absl::string_view key);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_ROCKS_KEYS_H_
