// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_APP_FILE_WATCH_H_
#define CLERESTORY_SERVER_APP_FILE_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clerestory {

// Calls a function, on a thread of its own, some time after something changed
// in one of a number of directories: a file was written, made, renamed or
// removed, or a link was, such as `..data` of a Kubernetes ConfigMap. Changes
// that follow one another are one, once it is quiet for kQuietMillis, but not
// for longer than kPatienceMillis. Whatever happens, it is called every
// kRescanSeconds, since some file systems tell nothing.
class FileWatch {
 public:
  static constexpr int kQuietMillis = 100;
  static constexpr int kPatienceMillis = 2000;
  static constexpr int kRescanSeconds = 60;

  // Directories that are missing are watched when they are there, from the next
  // rescan on. RESOURCE_EXHAUSTED without a reason if the system has no more
  // watches to give.
  static absl::StatusOr<std::unique_ptr<FileWatch>> Start(
      std::vector<std::string> directories, std::function<void()> on_change);
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  // Waits for a call that is running; there is none afterwards.
  ~FileWatch();

  // Has the function called at once. Safe from any thread.
  void Trigger();

 private:
  FileWatch(int inotify, int event, std::vector<std::string> directories,
            std::function<void()> on_change);

  void Run();
  // Watches the directories that are there.
  void Watch();
  // Waits up to `millis` for a change, and takes those that there are.
  enum class Woken { kByChange, kByTrigger, kByStop, kByTime };
  Woken Wait(int millis);

  const int inotify_;
  // Counts by one for a trigger, and by very much to stop.
  const int event_;
  const std::vector<std::string> directories_;
  const std::function<void()> on_change_;
  std::thread thread_;
};

// The directory in which the file at `path` is.
std::string DirectoryOf(absl::string_view path);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_APP_FILE_WATCH_H_
