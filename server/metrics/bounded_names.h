// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_METRICS_BOUNDED_NAMES_H_
#define CLERESTORY_SERVER_METRICS_BOUNDED_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// Which of the names that come from outside have a place, of a fixed number of
// them: those that were given one, and of the others those that were seen
// often, as long as places are left. A place is never taken back, since a
// counter must not go down.
//
// Takes a bounded amount of memory. Not safe from two threads at once.
class BoundedNames {
 public:
  // A name that nobody gave a place gets one when it has been seen `busy_count`
  // times. A name that is seen less often than one time in kCandidates may be
  // forgotten in between.
  static constexpr std::size_t kCandidates = 64;
  BoundedNames(std::int64_t places, std::int64_t busy_count)
      : places_(places), busy_count_(busy_count) {}

  enum class Place {
    kOwn,
    kNotYet,   // It has not been seen often enough.
    kNoneLeft  // Or its name cannot be one.
  };

  // Gives `name` a place, if it has none and one is left, here and in
  // `shared_places`, which it is then taken from.
  Place Give(absl::string_view name, std::int64_t& shared_places);

  // Counts that `name` was seen `count` times more, and gives it a place, as
  // Give does, if that is often.
  Place See(absl::string_view name, std::int64_t count,
            std::int64_t& shared_places);

  bool Has(absl::string_view name) const {
    return names_.contains(std::string(name));
  }

 private:
  const std::int64_t places_;
  const std::int64_t busy_count_;
  std::set<std::string> names_;
  // How often they were seen, less what made room for others.
  std::map<std::string, std::int64_t> candidates_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_METRICS_BOUNDED_NAMES_H_
