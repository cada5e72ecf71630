// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_CHECK_H_
#define CLERESTORY_SERVER_BASE_CHECK_H_

namespace clerestory::internal {

// Writes the broken condition and its place to stderr, and aborts.
[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace clerestory::internal

// Ends the process when an invariant of ours is broken, in every build. Never
// for input: bad input is an absl::Status.
#define CLERESTORY_CHECK(condition) \
  ((condition)                      \
       ? static_cast<void>(0)       \
       : ::clerestory::internal::CheckFailed(#condition, __FILE__, __LINE__))

#endif  // CLERESTORY_SERVER_BASE_CHECK_H_
