// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_REPEAT_H_
#define CLERESTORY_SERVER_MODEL_REPEAT_H_

#include <cstddef>

namespace clerestory {

// What a call that asks for something known asks again for. The numbers are
// stored.
enum class RepeatKind {
  kNone = 0,       // It asks for something else.
  kRefetch = 1,    // For what is masked and has not changed.
  kDuplicate = 2,  // For what the view shows and has not changed.
  kRefresh = 3,    // For what was, or may have been, written in between.
  kPaging = 4,     // For another part of a resource.
  kPoll = 5,       // For the state of something now, as it did before.
};
inline constexpr std::size_t kRepeatKindCount = 6;

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_REPEAT_H_
