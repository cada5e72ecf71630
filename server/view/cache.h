// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_CACHE_H_
#define CLERESTORY_SERVER_VIEW_CACHE_H_

#include <cstdint>
#include <map>
#include <string>

#include "server/base/time.h"
#include "server/model/record.h"

namespace clerestory {

// Tokens of which a report says nothing about the cache: providers count in
// blocks, and estimates err.
inline constexpr std::int64_t kCacheMissTokensMin = 4096;
// After so many reports in a row without what should have been found, or
// written instead, a provider is taken to cache nothing, or its client to ask
// for nothing.
inline constexpr std::int64_t kCacheMissesMax = 3;

// What is known about whether a session's messages are cached for a model at
// all. The
// numbers are those of clerestory.v1.CacheStatus.
enum class CacheStatus {
  kUnknown,  // Nothing was reported that would tell.
  kWorks,    // The last report had what should have been found.
  kMisses,   // It had not.
  kAbsent,   // Nor had kCacheMissesMax in a row; nothing is expected any more.
};

// What a model's cache holds of a session.
struct CachedPrompt {
  // When its life began.
  TimeMicros time = 0;
  // As in ViewServed.
  std::string preamble_digest;
  // Tokens, with the preamble, of what the views have in common with the prompt
  // that was sent last.
  std::int64_t view_tokens = 0;
  // The same, had nothing been masked, or all of it at once.
  std::int64_t raw_tokens = 0;
  std::int64_t every_turn_tokens = 0;
  // Whether the provider reported that it does not hold them.
  bool is_missed = false;
  // What the reports about the model say, and how many in a row lacked what
  // should have been found.
  CacheStatus status = CacheStatus::kUnknown;
  std::int64_t miss_count = 0;
};

// What providers' caches hold of one session, by model, as far as its records
// tell. A value.
class Cache {
 public:
  // Takes over that `view` was served, and that from `view_change` and
  // `every_turn_change` tokens on (with the preamble) it differs from the one
  // before.
  void Serve(const ViewServed& view, std::int64_t view_change,
             std::int64_t every_turn_change);

  // Takes over a report about `view`, the last one that was served. A report
  // about another model tells nothing.
  void Report(const UsageReported& report, const ViewServed& view);

  // Takes over how many tokens the last prompt of `model` really had, and would
  // have had. What is not held stays so.
  void Rebase(const std::string& model, std::int64_t view_tokens,
              std::int64_t raw_tokens, std::int64_t every_turn_tokens);

  // What is held for `model`, whether it still lives or not; null if it was
  // never called.
  const CachedPrompt* Find(const std::string& model) const;

  // What the reports about `model` say.
  CacheStatus StatusOf(const std::string& model) const;

 private:
  std::map<std::string, CachedPrompt> prompts_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_CACHE_H_
