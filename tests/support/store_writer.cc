// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// store_writer DIRECTORY ROUND: opens the RocksDB store in DIRECTORY and writes
// to it with some threads until it is killed. After each write it prints a line
// with the session and its version then. Exits with 3 if the store cannot be
// opened, and with 4 if a write fails.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/model/record.h"
#include "server/store/rocks/rocks_store.h"
#include "server/store/session_store.h"
#include "tests/support/records.h"
#include "tests/support/written_session.h"

namespace clerestory {
namespace {

void Print(const std::string& line) {
  // One call, so that lines of threads do not mix.
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(0);
}

void WriteForEver(SessionStore& store, const SessionKey& key) {
  absl::Status status = store.Create(OpenHeader(key));
  std::int64_t version = 0;
  Print(absl::StrCat(key.session, " 0\n"));
  for (std::int64_t write = 0; status.ok(); ++write) {
    std::vector<Record> records;
    for (std::int64_t i = 0; i < WrittenRecords(write); ++i) {
      records.push_back(WrittenRecord(key, version + i));
    }
    status = store.Write(
        key, version, records,
        write % 4 == 3 ? Durability::kBuffered : Durability::kSynced);
    version += WrittenRecords(write);
    if (status.ok()) Print(absl::StrCat(key.session, " ", version, "\n"));
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::_Exit(4);
}

int Main(const std::string& directory, const std::string& round) {
  RocksOptions options;
  options.path = directory;
  options.write_buffer_bytes = 1 << 20;  // Many files, and compactions.
  absl::StatusOr<std::unique_ptr<RocksStore>> store = RocksStore::Open(options);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 3;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    SessionKey key = {"tenant", absl::StrCat("round", round, "-", i)};
    threads.emplace_back(
        [&store, key = std::move(key)] { WriteForEver(**store, key); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) {
  return argc == 3 ? clerestory::Main(argv[1], argv[2]) : 2;
}
