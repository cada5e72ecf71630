// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_PINNED_RESOURCES_H_
#define CLERESTORY_SERVER_VIEW_PINNED_RESOURCES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {

// The resources that a session has pinned, and which of its calls they keep.
// What a call does is asked once, when it is first of interest; and what keeps
// it is found anew only when the pins changed. Not safe to use from two
// threads.
class PinnedResources {
 public:
  // Pins `resource`, or no longer. Whatever spelling of a path it is, it means
  // all of them.
  void Set(const std::string& resource, bool is_pinned);

  // Whether a pin keeps what the call with the number `call` gives. `accesses`
  // tells what that call does; of that, names of more than kPinResourceBytesMax
  // bytes are taken for none.
  bool Keep(std::size_t call, absl::FunctionRef<CallAccesses()> accesses);

  bool empty() const { return pins_.empty(); }
  std::size_t size() const { return pins_.size(); }
  // About how much memory it takes.
  std::int64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct KnownCall {
    // What it is done to, each named once.
    std::vector<std::string> resources;
    // As of the pins of this version.
    std::int64_t version = -1;
    bool is_kept = false;
  };

  bool IsPinned(absl::string_view resource) const;

  // By what was pinned: its normal form.
  std::map<std::string, std::string> pins_;
  // How often they changed.
  std::int64_t version_ = 0;
  // By the number of the call, as far as it was asked for.
  std::vector<std::optional<KnownCall>> calls_;
  std::int64_t memory_bytes_ = 0;
};

// Whether `resource`, which a call reads, is what is pinned as `pin`: the same,
// or below it if it ends with `/`. If one of them is a relative path, it is any
// that ends with it.
bool IsPinnedResource(absl::string_view resource, absl::string_view pin);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_PINNED_RESOURCES_H_
