// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// The server: flags and configuration, then an App until SIGTERM or SIGINT.
// SIGHUP reads the files that may change again.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/app/app.h"
#include "server/app/config.h"
#include "server/base/log.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/metrics/describe_metrics.h"
#include "server/policy/policy.h"
#include "server/policy/presets.h"

namespace clerestory {
namespace {

std::string FlagName(const ConfigField& field) {
  std::string name = "--" + std::string(field.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

absl::Status LoadFile(const std::string& path, Config& config) {
  std::ifstream file(path);
  if (!file) return FieldError("config", "cannot read " + path);
  const std::string yaml((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  return LoadYaml(yaml, path, config);
}

// The defaults, then the file, then the flags that were given.
absl::StatusOr<Config> MakeConfig(
    const std::string& path, const std::string& policy,
    const std::map<const ConfigField*, std::string>& flags) {
  Config config;
  if (!path.empty()) CLERESTORY_RETURN_IF_ERROR(LoadFile(path, config));
  for (const ConfigField& field : ConfigFields()) {
    const auto flag = flags.find(&field);
    if (flag == flags.end() || flag->second.empty()) continue;
    CLERESTORY_RETURN_IF_ERROR(SetConfigField(field, flag->second, config));
  }
  if (!policy.empty()) {
    CLERESTORY_ASSIGN_OR_RETURN(config.policy, ParsePolicy(policy));
  }
  CLERESTORY_RETURN_IF_ERROR(CheckConfig(config));
  return config;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "clerestory-server: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App cli("Manages the context of LLM agents over gRPC.",
               "clerestory-server");
  std::string path;
  std::string policy;
  std::map<const ConfigField*, std::string> flags;
  cli.add_option("--config", path,
                 "YAML file with any of the settings below, named with _ in "
                 "place of -");
  for (const ConfigField& field : ConfigFields()) {
    std::string& value = flags[&field];
    CLI::Option* const option =
        std::holds_alternative<bool Config::*>(field.member)
            ? cli.add_flag(FlagName(field) + "{true}", value)
            : cli.add_option(FlagName(field), value);
    option->description(std::string(field.help));
  }
  cli.add_option("--policy", policy,
                 absl::StrCat("a mode (off, every_turn, block, threshold, "
                              "adaptive, delegate) or a preset (",
                              PresetNames(),
                              "), and fields that differ, as in "
                              "block,block_size=20"));
  bool describe_metrics = false;
  cli.add_flag("--describe-metrics", describe_metrics,
               "print what is exported as metrics, as Markdown, and end");
  CLI11_PARSE(cli, argc, argv);
  if (describe_metrics) {
    std::fputs(DescribeMetrics().c_str(), stdout);
    return 0;
  }

  const absl::StatusOr<Config> config = MakeConfig(path, policy, flags);
  if (!config.ok()) return Fail(config.status());

  // Blocked before any thread starts, so that only sigwait sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const absl::StatusOr<std::unique_ptr<App>> app =
      App::Start(*config, Clock::Real(), Logger::Stderr());
  if (!app.ok()) return Fail(app.status());
  int signal = 0;
  for (sigwait(&signals, &signal); signal == SIGHUP;
       sigwait(&signals, &signal)) {
    (*app)->Reload();
  }
  (*app)->Stop();
  return 0;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) { return clerestory::Main(argc, argv); }
