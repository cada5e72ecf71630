// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/file_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"

namespace clerestory {
namespace {

constexpr std::uint32_t kChanges = IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO |
                                   IN_MOVED_FROM | IN_DELETE | IN_ATTRIB |
                                   IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

constexpr std::uint64_t kTriggered = 1;
constexpr std::uint64_t kStopped = std::uint64_t{1} << 32;

void Add(int event, std::uint64_t value) {
  CLERESTORY_CHECK(write(event, &value, sizeof(value)) == sizeof(value));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatch>> FileWatch::Start(
    std::vector<std::string> directories, std::function<void()> on_change) {
  const int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (inotify < 0 || event < 0) {
    if (inotify >= 0) close(inotify);
    if (event >= 0) close(event);
    return absl::ResourceExhaustedError(
        "the system gives no more watches of files; raise "
        "fs.inotify.max_user_instances");
  }
  std::unique_ptr<FileWatch> watch(new FileWatch(
      inotify, event, std::move(directories), std::move(on_change)));
  // Before this returns, so that what changes after it is seen.
  watch->Watch();
  watch->thread_ = std::thread([raw = watch.get()] { raw->Run(); });
  return watch;
}

FileWatch::FileWatch(int inotify, int event,
                     std::vector<std::string> directories,
                     std::function<void()> on_change)
    : inotify_(inotify),
      event_(event),
      directories_(std::move(directories)),
      on_change_(std::move(on_change)) {}

FileWatch::~FileWatch() {
  Add(event_, kStopped);
  if (thread_.joinable()) thread_.join();
  close(inotify_);
  close(event_);
}

void FileWatch::Trigger() { Add(event_, kTriggered); }

void FileWatch::Run() {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  while (true) {
    Woken woken = Wait(kRescanSeconds * 1000);
    const steady_clock::time_point end =
        steady_clock::now() + milliseconds(kPatienceMillis);
    while (woken == Woken::kByChange && steady_clock::now() < end) {
      woken = Wait(kQuietMillis);
    }
    if (woken == Woken::kByStop) return;
    // Anew, since what a name stands for may have changed with it.
    Watch();
    on_change_();
  }
}

void FileWatch::Watch() {
  for (const std::string& directory : directories_) {
    // One that is missing, or that the system has no watch for, is found by the
    // rescan.
    inotify_add_watch(inotify_, directory.c_str(), kChanges);
  }
}

FileWatch::Woken FileWatch::Wait(int millis) {
  std::array<pollfd, 2> waited = {
      {{.fd = inotify_, .events = POLLIN, .revents = 0},
       {.fd = event_, .events = POLLIN, .revents = 0}}};
  poll(waited.data(), waited.size(), millis);
  std::uint64_t event = 0;
  if (read(event_, &event, sizeof(event)) == sizeof(event)) {
    return event >= kStopped ? Woken::kByStop : Woken::kByTrigger;
  }
  // What changed is found out by looking; here only that something did.
  bool is_changed = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  while (read(inotify_, buffer.data(), buffer.size()) > 0) is_changed = true;
  return is_changed ? Woken::kByChange : Woken::kByTime;
}

std::string DirectoryOf(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

}  // namespace clerestory
