// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_TEMP_DIRECTORY_H_
#define CLERESTORY_TESTS_SUPPORT_TEMP_DIRECTORY_H_

#include <string>

namespace clerestory {

// An empty directory, removed with all that is in it at the end.
class TempDirectory {
 public:
  TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_TEMP_DIRECTORY_H_
