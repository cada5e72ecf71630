// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/pinned_resources.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/limits.h"
#include "server/tools/access.h"
#include "server/tools/paths.h"

namespace clerestory {
namespace {

// Memory that a name takes beside its bytes.
constexpr std::int64_t kNameMemoryBytes = 64;

// NormalPath of `pin`, which is a folder if it ends with a slash, and stays
// one.
std::string NormalPin(const std::string& pin) {
  std::string normal = NormalPath(pin, /*directory=*/"");
  if (absl::EndsWith(pin, "/") && !absl::EndsWith(normal, "/")) normal += '/';
  return normal;
}

std::int64_t MemoryOf(absl::string_view name) {
  return static_cast<std::int64_t>(name.size()) + kNameMemoryBytes;
}

}  // namespace

void PinnedResources::Set(const std::string& resource, bool is_pinned) {
  const auto found = pins_.find(resource);
  if ((found != pins_.end()) == is_pinned) return;
  ++version_;
  if (is_pinned) {
    std::string normal = NormalPin(resource);
    memory_bytes_ += MemoryOf(resource) + MemoryOf(normal);
    pins_.emplace(resource, std::move(normal));
  } else {
    memory_bytes_ -= MemoryOf(resource) + MemoryOf(found->second);
    pins_.erase(found);
  }
}

bool PinnedResources::Keep(std::size_t call,
                           absl::FunctionRef<CallAccesses()> accesses) {
  if (pins_.empty()) return false;
  if (call >= calls_.size()) {
    memory_bytes_ += static_cast<std::int64_t>((call + 1 - calls_.size()) *
                                               sizeof(calls_[0]));
    calls_.resize(call + 1);
  }
  if (!calls_[call].has_value()) {
    KnownCall& known = calls_[call].emplace();
    for (Access& access : accesses().accesses) {
      std::string& name = access.resource;
      if (name.empty() ||
          static_cast<std::int64_t>(name.size()) > kPinResourceBytesMax ||
          std::ranges::count(known.resources, name) > 0) {
        continue;
      }
      memory_bytes_ += MemoryOf(name);
      known.resources.push_back(std::move(name));
    }
  }
  KnownCall& known = *calls_[call];
  if (known.version != version_) {
    known.version = version_;
    known.is_kept = std::ranges::any_of(
        known.resources,
        [&](const std::string& resource) { return IsPinned(resource); });
  }
  return known.is_kept;
}

bool PinnedResources::IsPinned(absl::string_view resource) const {
  return std::ranges::any_of(pins_, [&](const auto& pin) {
    // What is no path may look different in the form of one.
    return IsPinnedResource(resource, pin.first) ||
           IsPinnedResource(resource, pin.second);
  });
}

bool IsPinnedResource(absl::string_view resource, absl::string_view pin) {
  if (resource.empty() || pin.empty()) return false;
  const auto ends_with_path = [](absl::string_view path,
                                 absl::string_view end) {
    return absl::ConsumeSuffix(&path, end) &&
           (path.empty() || absl::EndsWith(path, "/"));
  };
  if (absl::EndsWith(pin, "/")) {
    return absl::StartsWith(resource, pin) ||
           (!absl::StartsWith(pin, "/") &&
            absl::StrContains(resource, absl::StrCat("/", pin)));
  }
  return (!absl::StartsWith(pin, "/") && ends_with_path(resource, pin)) ||
         (!absl::StartsWith(resource, "/") && ends_with_path(pin, resource)) ||
         resource == pin;
}

}  // namespace clerestory
