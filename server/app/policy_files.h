// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_APP_POLICY_FILES_H_
#define CLERESTORY_SERVER_APP_POLICY_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/time.h"
#include "server/engine/policy_registry.h"
#include "server/yaml/problem.h"

namespace clerestory {

// Takes over the text of a file, or adds what is wrong with it to `problems`
// and changes nothing. `file` is its path.
using FileLoader =
    std::function<void(absl::string_view file, absl::string_view text,
                       std::vector<Problem>& problems)>;

// The files that can be changed while the server runs: a directory of policies,
// in which `TENANT.yaml` is the document of TENANT, and the prices.
//
// A version of a file is taken over whole, or it changes nothing: a bad one
// leaves the last good one in force, is logged once, one line for each problem,
// and counted. A file that is deleted takes its tenant's policies with it.
// Names that begin with a dot are passed over, and links are followed, so that
// the directory may be a volume of a Kubernetes ConfigMap.
//
// Safe from any thread. Calls block on the file system.
class PolicyFiles {
 public:
  struct Options {
    // Either may be "": there is none.
    std::string policy_dir = {};
    std::string prices_file = {};
    // Takes over the prices. REQUIRES: set, if `prices_file` is.
    FileLoader load_prices = nullptr;
  };

  struct Counters {
    std::int64_t loaded = 0;   // Versions of files that were taken over.
    std::int64_t refused = 0;  // Versions that were not.
    std::int64_t files = 0;    // That are in force now.
    // When all files were last read and none of them was bad; 0 if never.
    TimeMicros last_success_time = 0;
  };

  // `registry`, `clock` and `logger` must outlive it. Reads nothing yet.
  PolicyFiles(Options options, PolicyRegistry& registry, const Clock& clock,
              Logger& logger);
  PolicyFiles(const PolicyFiles&) = delete;
  PolicyFiles& operator=(const PolicyFiles&) = delete;

  // Reads all files for the first time. INVALID_ARGUMENT with kPolicyInvalid
  // and every problem, one a line, if there is any; then nothing of the
  // policies is in force.
  absl::Status Load() CLERESTORY_EXCLUDES(mutex_);

  // Reads all files again, and takes over what is new and good.
  void Reload() CLERESTORY_EXCLUDES(mutex_);

  Counters counters() const CLERESTORY_EXCLUDES(mutex_);

 private:
  // A file as it was last seen.
  struct File {
    // Nothing if it could not be read.
    std::optional<std::string> text;
    std::vector<Problem> problems;  // Of that text, or why there is none.
    // Of policies: the last good version.
    PolicyDocumentPtr document;
    bool is_in_force = false;  // There was a good version.
  };

  // Reads all files, and returns the problems that were not known before.
  std::vector<Problem> ReadAll() CLERESTORY_REQUIRES(mutex_);
  // Reads the directory into `policies_`. Returns false, with `policies_` as it
  // was, if that cannot be done.
  bool ReadPolicies(std::vector<Problem>& fresh) CLERESTORY_REQUIRES(mutex_);
  // Reads the file at `path` into `file`, and if it is another text than before
  // has `load` take it over. Returns false if there is no such file.
  bool ReadFile(const std::string& path, const FileLoader& load, File& file,
                std::vector<Problem>& fresh) CLERESTORY_REQUIRES(mutex_);
  // Puts the good versions in force.
  void Publish() CLERESTORY_REQUIRES(mutex_);

  const Options options_;
  PolicyRegistry& registry_;
  const Clock& clock_;
  Logger& logger_;

  mutable Mutex mutex_;
  // By tenant.
  std::map<std::string, File> policies_ CLERESTORY_GUARDED_BY(mutex_);
  File prices_ CLERESTORY_GUARDED_BY(mutex_);
  // Why the directory could not be read last time; "" if it could.
  std::string directory_problem_ CLERESTORY_GUARDED_BY(mutex_);
  Counters counters_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_APP_POLICY_FILES_H_
