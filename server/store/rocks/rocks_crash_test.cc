// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Another process writes, and is killed.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "server/base/check.h"
#include "server/model/record.h"
#include "server/store/rocks/rocks_store.h"
#include "server/store/session_store.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"
#include "tests/support/written_session.h"

namespace clerestory {
namespace {

// store_writer, running.
class Writer {
 public:
  Writer(const std::string& directory, const std::string& round) {
    std::array<int, 2> ends = {};
    CLERESTORY_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0);
    process_ = ::fork();
    CLERESTORY_CHECK(process_ >= 0);
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(STORE_WRITER, STORE_WRITER, directory.c_str(), round.c_str(),
              nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { ::close(output_); }

  // Reads what it printed until there are `bytes` of it, or no more.
  void ReadUntil(std::size_t bytes) {
    std::array<char, 4096> buffer = {};
    while (printed_.size() < bytes) {
      const ssize_t size = ::read(output_, buffer.data(), buffer.size());
      if (size <= 0) return;
      printed_.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }

  // Kills it, and returns all that it printed.
  std::string Kill() {
    ::kill(process_, SIGKILL);
    ReadUntil(printed_.max_size());
    int status = 0;
    CLERESTORY_CHECK(::waitpid(process_, &status, 0) == process_);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it had ended by itself";
    return printed_;
  }

  // Waits for its end, and returns its exit code.
  int Join() {
    int status = 0;
    CLERESTORY_CHECK(::waitpid(process_, &status, 0) == process_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = 0;
  int output_ = -1;
  std::string printed_;
};

// The versions that were acknowledged, by session.
std::map<std::string, std::int64_t> Acknowledged(const std::string& printed) {
  std::map<std::string, std::int64_t> versions;
  std::vector<std::string> lines = absl::StrSplit(printed, '\n');
  lines.pop_back();  // What follows the last whole line.
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    std::int64_t version = -1;
    CLERESTORY_CHECK(parts.size() == 2 && absl::SimpleAtoi(parts[1], &version));
    versions[parts[0]] = std::max(versions[parts[0]], version);
  }
  return versions;
}

// All records are those that were written, there are `acknowledged` of them or
// one write more, and no write is there in part.
void ExpectWritten(const RocksStore& store, const SessionKey& key,
                   std::int64_t acknowledged) {
  const auto session = store.Read(key);
  ASSERT_THAT(session, IsOk());
  const auto count = static_cast<std::int64_t>(session->records.size());
  std::int64_t version = 0;
  std::int64_t write = 0;
  while (version < acknowledged) version += WrittenRecords(write++);
  EXPECT_TRUE(count == version || count == version + WrittenRecords(write))
      << count << " of " << version;
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(SameRecord(session->records[static_cast<std::size_t>(i)],
                           WrittenRecord(key, i)))
        << key.session << " " << i;
  }
}

TEST(RocksCrashTest, KillingTheProcessLosesNothingThatWasAcknowledged) {
  const TempDirectory directory;
  RocksOptions options;
  options.path = directory.path() + "/store";
  std::map<std::string, std::int64_t> acknowledged;
  for (std::size_t round = 0; round < 10; ++round) {
    Writer writer(options.path, absl::StrCat(round));
    // Some rounds end at once, others after many files were written.
    writer.ReadUntil(1 + round * round * 150);
    acknowledged.merge(Acknowledged(writer.Kill()));

    auto store = RocksStore::Open(options);
    ASSERT_THAT(store, IsOk());
    for (const auto& [session, version] : acknowledged) {
      ExpectWritten(**store, {"tenant", session}, version);
    }
  }
  EXPECT_GE(acknowledged.size(), 10U);
}

TEST(RocksCrashTest, AStoreThatAnotherProcessHasOpenIsRefused) {
  const TempDirectory directory;
  RocksOptions options;
  options.path = directory.path() + "/store";
  {
    Writer writer(options.path, "0");
    writer.ReadUntil(1);
    EXPECT_THAT(RocksStore::Open(options),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          Reason::kStoreUnavailable));
    writer.Kill();
  }
  const auto store = RocksStore::Open(options);
  ASSERT_THAT(store, IsOk());
  Writer refused(options.path, "1");
  EXPECT_EQ(refused.Join(), 3);
}

}  // namespace
}  // namespace clerestory
