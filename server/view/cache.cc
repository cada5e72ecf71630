// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/model/record.h"

namespace clerestory {
namespace {

// A session that calls more models than this is not one that alternates.
constexpr std::size_t kModelsMax = 8;

std::int64_t Held(const CallTokens& call) { return call.read + call.written; }

// Only `read` tokens of `prompt` were found. Another prompt in its place would
// have had no more luck.
void Lower(std::int64_t read, CachedPrompt& prompt) {
  if (read >= prompt.view_tokens) return;
  prompt.view_tokens = read;
  prompt.raw_tokens = std::min(prompt.raw_tokens, read);
  prompt.every_turn_tokens = std::min(prompt.every_turn_tokens, read);
  prompt.is_missed = true;
}

}  // namespace

void Cache::Serve(const ViewServed& view, std::int64_t view_change,
                  std::int64_t every_turn_change) {
  for (auto& [model, prompt] : prompts_) {
    prompt.view_tokens = std::min(prompt.view_tokens, view_change);
    prompt.every_turn_tokens =
        std::min(prompt.every_turn_tokens, every_turn_change);
  }
  if (!prompts_.contains(view.model) && prompts_.size() == kModelsMax) {
    prompts_.erase(std::ranges::min_element(
        prompts_, {}, [](const auto& entry) { return entry.second.time; }));
  }
  CachedPrompt& prompt = prompts_[view.model];
  prompt.time = view.cache_time;
  prompt.preamble_digest = view.preamble_digest;
  prompt.view_tokens = Held(view.view_call);
  prompt.raw_tokens = Held(view.raw_call);
  prompt.every_turn_tokens = Held(view.every_turn_call);
  prompt.is_missed = false;
}

void Cache::Report(const UsageReported& report, const ViewServed& view) {
  if (report.model != view.model || !report.usage.cache_read.has_value()) {
    return;
  }
  const std::int64_t read = *report.usage.cache_read;
  const bool is_written = report.usage.cache_write.value_or(0) > 0;
  const bool is_known_unwritten = report.usage.cache_write == 0;
  CachedPrompt& prompt = prompts_[view.model];
  // What the provider did not write and had not before, it does not have.
  if (is_known_unwritten && Held(view.view_call) >= kCacheMissTokensMin) {
    Lower(read, prompt);
  }
  // One that neither has anything of a prompt nor wrote it should have.
  const bool is_ignored = is_known_unwritten && read < kCacheMissTokensMin;
  const std::int64_t expected =
      is_ignored ? Held(view.view_call) : view.view_call.read;
  if (prompt.status == CacheStatus::kAbsent) {
    // Nothing was expected. A preamble alone does not make a difference to
    // messages.
    if (read < view.view_call.total() / 2) return;
    prompt.status = CacheStatus::kWorks;
    prompt.miss_count = 0;
    prompt.view_tokens = read;
    prompt.raw_tokens = read;
    prompt.every_turn_tokens = read;
    return;
  }
  if (expected < kCacheMissTokensMin) return;
  if (expected - read < std::max(kCacheMissTokensMin, expected / 2)) {
    prompt.status = CacheStatus::kWorks;
    prompt.miss_count = 0;
    return;
  }
  ++prompt.miss_count;
  prompt.status = prompt.miss_count < kCacheMissesMax ? CacheStatus::kMisses
                                                      : CacheStatus::kAbsent;
  // A provider that writes without saying so may have written the prompt that
  // it missed, but not twice.
  if (!is_written && prompt.miss_count > 1) Lower(read, prompt);
}

void Cache::Rebase(const std::string& model, std::int64_t view_tokens,
                   std::int64_t raw_tokens, std::int64_t every_turn_tokens) {
  const auto found = prompts_.find(model);
  if (found == prompts_.end()) return;
  const auto set = [](std::int64_t tokens, std::int64_t& held) {
    if (held > 0) held = tokens;
  };
  set(view_tokens, found->second.view_tokens);
  set(raw_tokens, found->second.raw_tokens);
  set(every_turn_tokens, found->second.every_turn_tokens);
}

CacheStatus Cache::StatusOf(const std::string& model) const {
  const CachedPrompt* prompt = Find(model);
  return prompt == nullptr ? CacheStatus::kUnknown : prompt->status;
}

const CachedPrompt* Cache::Find(const std::string& model) const {
  const auto found = prompts_.find(model);
  return found == prompts_.end() ? nullptr : &found->second;
}

}  // namespace clerestory
