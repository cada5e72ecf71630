// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/policy_files.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/limits.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_registry.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSuffix = ".yaml";

enum class ReadResult { kRead, kMissing, kUnreadable };

// Reads a file, but not more of it than a little beyond what any may have.
ReadResult ReadText(const std::string& path, std::string& text) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return ReadResult::kMissing;
  if (error || status.type() != fs::file_type::regular) {
    return ReadResult::kUnreadable;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return ReadResult::kUnreadable;
  text.resize(static_cast<std::size_t>(kPolicyBytesMax) + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return ReadResult::kUnreadable;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return ReadResult::kRead;
}

}  // namespace

PolicyFiles::PolicyFiles(Options options, PolicyRegistry& registry,
                         const Clock& clock, Logger& logger)
    : options_(std::move(options)),
      registry_(registry),
      clock_(clock),
      logger_(logger) {}

absl::Status PolicyFiles::Load() {
  const MutexLock lock(mutex_);
  const std::vector<Problem> problems = ReadAll();
  if (!problems.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kPolicyInvalid,
                     Describe(problems), {{"field", problems.front().file}});
  }
  Publish();
  return absl::OkStatus();
}

void PolicyFiles::Reload() {
  const MutexLock lock(mutex_);
  for (const Problem& problem : ReadAll()) {
    logger_.Write(Severity::kError, "file_refused",
                  {{"file", problem.file},
                   {"line", std::int64_t{problem.line}},
                   {"column", std::int64_t{problem.column}},
                   {"message", Describe(problem)}});
  }
  Publish();
}

PolicyFiles::Counters PolicyFiles::counters() const {
  const MutexLock lock(mutex_);
  return counters_;
}

std::vector<Problem> PolicyFiles::ReadAll() {
  std::vector<Problem> fresh;
  bool is_good = true;
  if (!options_.policy_dir.empty()) {
    is_good = ReadPolicies(fresh);
    for (const auto& [tenant, file] : policies_) {
      is_good = is_good && file.problems.empty();
    }
  }
  if (!options_.prices_file.empty()) {
    const std::string& path = options_.prices_file;
    if (!ReadFile(path, options_.load_prices, prices_, fresh) &&
        prices_.problems.empty()) {
      // Prices have no default to go back to while the server runs.
      prices_.text.reset();
      prices_.problems = {
          {.file = path, .path = "", .what = "there is no such file"}};
      fresh.push_back(prices_.problems.front());
      ++counters_.refused;
    }
    is_good = is_good && prices_.problems.empty();
  }
  if (is_good) counters_.last_success_time = clock_.Now();
  return fresh;
}

bool PolicyFiles::ReadPolicies(std::vector<Problem>& fresh) {
  const std::string& directory = options_.policy_dir;
  std::error_code error;
  std::set<std::string> tenants;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_policy = absl::EndsWith(name, kSuffix) &&
                           name.size() > kSuffix.size() && name[0] != '.';
    if (is_policy) {
      tenants.insert(std::string(absl::StripSuffix(name, kSuffix)));
    }
  }
  const std::string problem = error ? error.message() : "";
  if (problem != std::exchange(directory_problem_, problem) && error) {
    fresh.push_back(
        {.file = directory,
         .path = "",
         .what = absl::StrCat("the directory cannot be read (", problem,
                              "); what was read of it before "
                              "stays in force")});
    ++counters_.refused;
  }
  if (error) return false;

  for (const std::string& tenant : tenants) {
    const std::string path = absl::StrCat(directory, "/", tenant, kSuffix);
    File& file = policies_[tenant];
    const FileLoader load = [&](absl::string_view name, absl::string_view text,
                                std::vector<Problem>& problems) {
      PolicyDocumentPtr document =
          registry_.Read({.source = PolicySource::kFile,
                          .tenant = tenant,
                          .file = std::string(name),
                          .yaml = std::string(text),
                          .update_time = clock_.Now()},
                         problems);
      if (document == nullptr) return;
      logger_.Write(Severity::kInfo, "policy_loaded",
                    {{"tenant", tenant},
                     {"file", std::string(name)},
                     {"etag", document->etag()},
                     {"digest", document->policies().digest()}});
      file.document = std::move(document);
    };
    // A link to nothing is a file that is gone.
    if (!ReadFile(path, load, file, fresh)) policies_.erase(tenant);
  }
  for (auto it = policies_.begin(); it != policies_.end();) {
    if (tenants.contains(it->first)) {
      ++it;
    } else {
      it = policies_.erase(it);
    }
  }
  return true;
}

bool PolicyFiles::ReadFile(const std::string& path, const FileLoader& load,
                           File& file, std::vector<Problem>& fresh) {
  std::string read;
  std::optional<std::string> text;
  std::vector<Problem> problems;
  switch (ReadText(path, read)) {
    case ReadResult::kMissing:
      return false;
    case ReadResult::kUnreadable:
      problems = {{.file = path,
                   .path = "",
                   .what = "the file cannot be read; let the server read it"}};
      if (problems == file.problems) return true;
      break;
    case ReadResult::kRead:
      text = std::move(read);
      if (text == file.text) return true;
      load(path, *text, problems);
      break;
  }
  if (problems.empty()) {
    ++counters_.loaded;
    file.is_in_force = true;
  } else {
    ++counters_.refused;
    fresh.insert(fresh.end(), problems.begin(), problems.end());
  }
  file.text = std::move(text);
  file.problems = std::move(problems);
  return true;
}

void PolicyFiles::Publish() {
  std::map<std::string, PolicyDocumentPtr> documents;
  for (const auto& [tenant, file] : policies_) {
    if (file.document != nullptr) documents[tenant] = file.document;
  }
  counters_.files = static_cast<std::int64_t>(documents.size()) +
                    (prices_.is_in_force ? 1 : 0);
  registry_.SetFiles(std::move(documents));
}

}  // namespace clerestory
