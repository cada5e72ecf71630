// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/temp_directory.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "server/base/check.h"

namespace clerestory {

TempDirectory::TempDirectory()
    : path_(std::filesystem::temp_directory_path() / "clerestory-XXXXXX") {
  CLERESTORY_CHECK(::mkdtemp(path_.data()) != nullptr);
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace clerestory
