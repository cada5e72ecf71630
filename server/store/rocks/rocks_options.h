// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_ROCKS_OPTIONS_H_
#define CLERESTORY_SERVER_STORE_ROCKS_ROCKS_OPTIONS_H_

#include <cstdint>
#include <string>

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace clerestory {

struct RocksOptions {
  // The directory, which is the store's alone. It is made if it is missing; the
  // directory that it is in is not.
  std::string path;

  // The memory for what is read from the disk, uncompressed, and its index.
  std::int64_t block_cache_bytes = 64LL << 20;

  // How much is collected in memory before it goes from the log to a sorted
  // file. Twice of it may be in memory, and is read from the log when the store
  // is opened after a crash.
  std::int64_t write_buffer_bytes = 64LL << 20;

  // Where files are. The machine's file system if null; outlives the store.
  rocksdb::Env* env = nullptr;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_ROCKS_OPTIONS_H_
