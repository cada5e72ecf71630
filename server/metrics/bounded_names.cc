// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/bounded_names.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/utf8.h"
#include "server/metrics/catalogue.h"

namespace clerestory {
namespace {

bool CanBeLabel(absl::string_view name) {
  return !name.empty() && name != kOther &&
         static_cast<std::int64_t>(name.size()) <= kLabelBytesMax &&
         IsUtf8(name);
}

}  // namespace

BoundedNames::Place BoundedNames::Give(absl::string_view name,
                                       std::int64_t& shared_places) {
  if (Has(name)) return Place::kOwn;
  if (static_cast<std::int64_t>(names_.size()) >= places_ ||
      shared_places <= 0 || !CanBeLabel(name)) {
    return Place::kNoneLeft;
  }
  --shared_places;
  names_.insert(std::string(name));
  candidates_.erase(std::string(name));
  return Place::kOwn;
}

BoundedNames::Place BoundedNames::See(absl::string_view name,
                                      std::int64_t count,
                                      std::int64_t& shared_places) {
  if (Has(name)) return Place::kOwn;
  if (!CanBeLabel(name)) return Place::kNoneLeft;
  if (const auto known = candidates_.find(std::string(name));
      known != candidates_.end()) {
    count += known->second;
    known->second = count;
  } else if (candidates_.size() < kCandidates) {
    candidates_.emplace(name, count);
  } else {
    // As many of each as make room for one, of Misra and Gries: what is left
    // was seen more often than one time in kCandidates.
    std::int64_t least = count;
    for (const auto& [other, seen] : candidates_) {
      least = std::min(least, seen);
    }
    for (auto it = candidates_.begin(); it != candidates_.end();) {
      it->second -= least;
      it = it->second == 0 ? candidates_.erase(it) : std::next(it);
    }
    if (count > least) candidates_.emplace(name, count - least);
  }
  if (count >= busy_count_) return Give(name, shared_places);
  return static_cast<std::int64_t>(names_.size()) >= places_ ||
                 shared_places <= 0
             ? Place::kNoneLeft
             : Place::kNotYet;
}

}  // namespace clerestory
