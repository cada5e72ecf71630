// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_CONTENT_KIND_H_
#define CLERESTORY_SERVER_REFETCH_CONTENT_KIND_H_

#include "absl/strings/string_view.h"

namespace clerestory {

// What came of a call, by what it says.
enum class ContentKind {
  kGiven,    // Something.
  kEmpty,    // Nothing was found, or there is nothing to tell.
  kFailed,   // It went wrong: nothing was got, and perhaps something done.
  kRefused,  // It was not done: not allowed, or what to change is not there.
};

// What came of the call whose result, without wrappers, is `text`: by the words
// that agents and tools have for it, which stand alone or nearly so. A long
// text is always kGiven. Pure.
ContentKind ContentKindOf(absl::string_view text);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_CONTENT_KIND_H_
