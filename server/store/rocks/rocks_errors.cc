// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_errors.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "rocksdb/status.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/store/store_errors.h"

namespace clerestory {
namespace {

// Whether somebody holds the lock of the database at `path`. Only an answer
// after it could not be opened: asks by taking the lock.
bool IsLocked(const std::string& path, rocksdb::Env* env) {
  const std::string file = path + "/LOCK";
  rocksdb::FileLock* lock = nullptr;
  if (env->LockFile(file, &lock).ok()) {
    env->UnlockFile(lock);
    return false;
  }
  return ::access(file.c_str(), W_OK) == 0;
}

class ErrorListener final : public rocksdb::EventListener {
 public:
  explicit ErrorListener(std::shared_ptr<std::atomic<bool>> stopped)
      : stopped_(std::move(stopped)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                         rocksdb::Status* error) override {
    if (reason == rocksdb::BackgroundErrorReason::kCompaction) {
      *error = rocksdb::Status::OK();
    } else {
      *stopped_ = true;
    }
  }

  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                            rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  const std::shared_ptr<std::atomic<bool>> stopped_;
};

}  // namespace

absl::Status WriteError(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsNoSpace()) return StoreFullError();
  return StoreUnavailableError(
      "the store could not write, see LOG in its directory; what was to be "
      "written may or may not be there: read, and try again");
}

absl::Status ReadError(const rocksdb::Status& status,
                       const absl::Status& corrupt) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption()) return corrupt;
  return StoreUnavailableError(
      "the store could not read, see LOG in its directory; try again");
}

absl::Status OpenError(const rocksdb::Status& status, const std::string& path,
                       rocksdb::Env* env) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = status.ToString();
  if (status.IsNoSpace()) {
    return MakeError(absl::StatusCode::kResourceExhausted, Reason::kStoreFull,
                     absl::StrCat("no space to open the store at ", path, ": ",
                                  text, "; free some and start again"));
  }
  if (status.IsCorruption()) {
    return MakeError(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt,
                     absl::StrCat("the store at ", path, " is damaged: ", text,
                                  "; restore it from a backup"));
  }
  if (status.IsInvalidArgument() || status.IsNotSupported()) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, Reason::kStoreUnavailable,
        absl::StrCat("this server cannot use the store at ", path, ": ", text));
  }
  if (status.IsIOError() && IsLocked(path, env)) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, Reason::kStoreUnavailable,
        absl::StrCat("another server has the store at ", path,
                     " open; stop it, or give this one another directory"));
  }
  return StoreUnavailableError(
      absl::StrCat("cannot open the store at ", path, ": ", text));
}

absl::Status RefusedError(const std::string& path, absl::string_view why) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, Reason::kStoreUnavailable,
      absl::StrCat("this server cannot use the store at ", path, ": ", why));
}

std::shared_ptr<rocksdb::EventListener> NewErrorListener(
    std::shared_ptr<std::atomic<bool>> stopped) {
  return std::make_shared<ErrorListener>(std::move(stopped));
}

}  // namespace clerestory
