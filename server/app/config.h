// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_APP_CONFIG_H_
#define CLERESTORY_SERVER_APP_CONFIG_H_

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/policy/policy.h"

namespace clerestory {

// All that an operator can set. Checked as a whole before anything starts.
struct Config {
  std::string listen = "127.0.0.1:7171";
  std::string store = "rocksdb";
  std::string data_dir = "clerestory-data";
  std::string tenant = "default";
  std::string policy_dir;
  std::string prices_file;
  std::string metrics_address;
  bool development = false;
  bool reflection = true;
  std::int64_t worker_threads = 32;
  std::int64_t cache_bytes = 1LL << 30;
  std::int64_t drain_seconds = 20;
  Policy policy;
};

// A setting: `name` in YAML, and with dashes a flag.
struct ConfigField {
  absl::string_view name;
  std::variant<std::string Config::*, bool Config::*, std::int64_t Config::*>
      member;
  absl::string_view help;
  // Of a number.
  std::int64_t min = 0;
  std::int64_t max = 0;
};
std::span<const ConfigField> ConfigFields();

// Sets `field` from text. kFieldInvalid says what is expected.
absl::Status SetConfigField(const ConfigField& field, absl::string_view value,
                            Config& config);

// Takes over the settings in `yaml`, a mapping of names to values with the
// policy under `policy`; `file` is its name for errors. kFieldInvalid with
// every error, one a line, each as `file:line:column: what`.
absl::Status LoadYaml(absl::string_view yaml, absl::string_view file,
                      Config& config);

// kFieldInvalid if the settings cannot be started with: an unknown store, an
// address that is not of this machine only (callers have no identity yet), or
// one of metrics that is none.
absl::Status CheckConfig(const Config& config);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_APP_CONFIG_H_
