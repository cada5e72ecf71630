// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/config.h"

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/policy/policy.h"
#include "server/policy/presets.h"

namespace clerestory {
namespace {

const ConfigField kFields[] = {
    {.name = "listen",
     .member = &Config::listen,
     .help = "address and port of the gRPC server; port 0 takes a free one"},
    {.name = "store",
     .member = &Config::store,
     .help = "where sessions are kept: rocksdb, or memory (lost at exit)"},
    {.name = "data_dir",
     .member = &Config::data_dir,
     .help = "directory of the rocksdb store; made if it is missing"},
    {.name = "tenant",
     .member = &Config::tenant,
     .help = "the tenant to which all sessions belong"},
    {.name = "policy_dir",
     .member = &Config::policy_dir,
     .help = "directory with TENANT.yaml for tenants that have policies of "
             "their own; watched, and read again on SIGHUP"},
    {.name = "prices_file",
     .member = &Config::prices_file,
     .help = "prices of models, in the form of deploy/prices.yaml, which they "
             "replace or extend; watched, and read again on SIGHUP"},
    {.name = "metrics_address",
     .member = &Config::metrics_address,
     .help = "address and port at which Prometheus finds /metrics over HTTP, "
             "as 127.0.0.1:9464; not served if left out. They name tenants and "
             "tools and what these cost, to whoever can connect"},
    {.name = "development",
     .member = &Config::development,
     .help = "let calls bring their own time, to replay transcripts"},
    {.name = "reflection",
     .member = &Config::reflection,
     .help = "serve grpc.reflection"},
    {.name = "worker_threads",
     .member = &Config::worker_threads,
     .help = "threads that do calls",
     .min = 1,
     .max = 1024},
    {.name = "cache_bytes",
     .member = &Config::cache_bytes,
     .help = "memory for sessions that are not in use",
     .min = 0,
     .max = 1LL << 50},
    {.name = "drain_seconds",
     .member = &Config::drain_seconds,
     .help = "how long calls may go on after SIGTERM",
     .min = 0,
     .max = 3600},
};

std::string KnownNames() {
  std::string names;
  for (const ConfigField& field : kFields) {
    absl::StrAppend(&names, field.name, ", ");
  }
  return names + "policy";
}

// Goes through a YAML document and collects what is wrong with it.
class YamlReader {
 public:
  YamlReader(absl::string_view file, Config& config)
      : file_(file), config_(config) {}

  void Read(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) return Add(root, "expected a mapping");
    ForEach(root, [this](const std::string& name, const YAML::Node& key,
                         const YAML::Node& value) {
      if (name == "policy") return ReadPolicy(value);
      for (const ConfigField& field : kFields) {
        if (field.name != name) continue;
        return SetScalar(value, [&](absl::string_view text) {
          return SetConfigField(field, text, config_);
        });
      }
      Add(key, absl::StrCat("unknown key \"", name, "\"; use ", KnownNames()));
    });
  }

  const std::string& errors() const { return errors_; }

 private:
  void ReadPolicy(const YAML::Node& node) {
    if (!node.IsMap()) return Add(node, "policy: expected a mapping");
    // What the others start from, wherever it stands.
    if (const YAML::Node preset = node["preset"]) ReadPreset(preset);
    ForEach(node, [this](const std::string& name, const YAML::Node&,
                         const YAML::Node& value) {
      if (name == "preset") return;
      SetScalar(value, [&](absl::string_view text) {
        return SetPolicyField(name, text, config_.policy);
      });
    });
  }

  void ReadPreset(const YAML::Node& node) {
    if (!node.IsScalar()) return Add(node, "preset: expected a single value");
    if (const Preset* preset = FindPreset(node.Scalar())) {
      config_.policy = preset->policy;
      return;
    }
    Add(node, absl::StrCat("preset: unknown preset \"", node.Scalar(),
                           "\"; use ", PresetNames()));
  }

  // Calls `visit(name, key, value)` for each member; names occur once.
  template <typename Visit>
  void ForEach(const YAML::Node& mapping, Visit visit) {
    std::set<std::string> names;
    for (const auto& member : mapping) {
      const YAML::Node key = member.first;
      if (!key.IsScalar()) {
        Add(key, "expected a name");
      } else if (!names.insert(key.Scalar()).second) {
        Add(key, absl::StrCat("\"", key.Scalar(), "\" occurs twice"));
      } else {
        visit(key.Scalar(), key, member.second);
      }
    }
  }

  template <typename Set>
  void SetScalar(const YAML::Node& value, Set set) {
    if (!value.IsScalar()) return Add(value, "expected a single value");
    const absl::Status status = set(value.Scalar());
    if (!status.ok()) Add(value, status.message());
  }

  void Add(const YAML::Node& at, absl::string_view what) {
    absl::StrAppend(&errors_, errors_.empty() ? "" : "\n", file_, ":",
                    at.Mark().line + 1, ":", at.Mark().column + 1, ": ", what);
  }

  const absl::string_view file_;
  Config& config_;
  std::string errors_;
};

// Whether `listen` can be reached from this machine only. A name that begins
// like an address ("127.example.com") is none.
bool IsLoopback(absl::string_view listen) {
  const absl::string_view host = listen.substr(0, listen.rfind(':'));
  const bool is_number =
      host.find_first_not_of("0123456789.") == absl::string_view::npos;
  return (is_number && absl::StartsWith(host, "127.")) ||
         absl::StartsWith(listen, "localhost:") ||
         absl::StartsWith(listen, "[::1]:") ||
         absl::StartsWith(listen, "unix:");
}

// Whether `address` is one "HOST:PORT", the port in decimal digits. Debian's
// civetweb, which listens there, knows no IPv6.
bool IsHostAndPort(absl::string_view address) {
  const std::size_t colon = address.find(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view port = address.substr(colon + 1);
  std::int64_t number = 0;
  return address.find_first_of(", \t/[") == absl::string_view::npos &&
         port.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(port, &number) && number < 1 << 16;
}

}  // namespace

std::span<const ConfigField> ConfigFields() { return kFields; }

absl::Status SetConfigField(const ConfigField& field, absl::string_view value,
                            Config& config) {
  if (const auto* text = std::get_if<std::string Config::*>(&field.member)) {
    if (value.empty()) return FieldError(field.name, "must not be empty");
    config.** text = std::string(value);
    return absl::OkStatus();
  }
  if (const auto* truth = std::get_if<bool Config::*>(&field.member)) {
    if (value != "true" && value != "false") {
      return FieldError(
          field.name,
          absl::StrCat("expected true or false, got \"", value, "\""));
    }
    config.** truth = value == "true";
    return absl::OkStatus();
  }
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < field.min ||
      number > field.max) {
    return FieldError(field.name,
                      absl::StrCat("expected a whole number from ", field.min,
                                   " to ", field.max, ", got \"", value, "\""));
  }
  config.*std::get<std::int64_t Config::*>(field.member) = number;
  return absl::OkStatus();
}

absl::Status LoadYaml(absl::string_view yaml, absl::string_view file,
                      Config& config) {
  Config loaded = config;
  YamlReader reader(file, loaded);
  try {
    reader.Read(YAML::Load(std::string(yaml)));
  } catch (const YAML::Exception& error) {
    return FieldError(absl::StrCat(file, ":", error.mark.line + 1, ":",
                                   error.mark.column + 1),
                      error.msg);
  }
  if (!reader.errors().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid,
                     reader.errors(), {{"field", std::string(file)}});
  }
  config = std::move(loaded);
  return absl::OkStatus();
}

absl::Status CheckConfig(const Config& config) {
  if (config.store != "rocksdb" && config.store != "memory") {
    return FieldError(
        "store",
        absl::StrCat("expected rocksdb or memory, got \"", config.store, "\""));
  }
  if (!IsLoopback(config.listen)) {
    return FieldError(
        "listen",
        absl::StrCat("\"", config.listen,
                     "\" can be reached from other machines, and callers are "
                     "not identified yet; listen on 127.0.0.1, [::1] or "
                     "unix:PATH, behind a proxy that does it"));
  }
  if (!config.metrics_address.empty() &&
      !IsHostAndPort(config.metrics_address)) {
    return FieldError(
        "metrics_address",
        absl::StrCat("expected HOST:PORT over IPv4, as 127.0.0.1:9464, got "
                     "\"",
                     config.metrics_address, "\""));
  }
  return CheckPolicy(config.policy);
}

}  // namespace clerestory
