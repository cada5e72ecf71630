// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/overreading.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "server/model/message.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// FNV-1a, which is the same in every process.
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;
constexpr std::uint64_t kHashPrime = 0x100000001b3;

// Its low bits alone hardly differ where two words differ in their last bytes.
constexpr std::uint64_t Mixed(std::uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 33);
}

constexpr bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

constexpr bool IsPathByte(char c) { return c == '/' || c == '.' || c == '-'; }

// Behind the backslashes at `at` and the letter or the digits that they escape.
// However often a text is quoted in JSON, its words stay what they are.
std::size_t BehindEscape(absl::string_view json, std::size_t at) {
  at = std::min(json.find_first_not_of('\\', at), json.size());
  if (at == json.size()) return at;
  const char escaped = json[at];
  if (escaped == 'u') return std::min(at + 5, json.size());
  return absl::string_view("nrtbf\"/").find(escaped) == absl::string_view::npos
             ? at
             : at + 1;
}

// Calls `take(hash)` with each word of `json`, a part of a JSON text.
template <typename Take>
void ForEachWord(absl::string_view json, Take take) {
  std::size_t at = 0;
  while (at < json.size()) {
    if (json[at] == '\\') {
      at = BehindEscape(json, at);
      continue;
    }
    if (!IsWordByte(json[at])) {
      ++at;
      continue;
    }
    // A path from `at` on, and the words in it. It ends with a word byte, so
    // that a full stop is no part of it.
    std::uint64_t path = kHashStart;
    std::uint64_t path_at_word = 0;
    std::size_t path_bytes = 0;
    int word_count = 0;
    std::size_t end = at;
    while (end < json.size() &&
           (IsWordByte(json[end]) || IsPathByte(json[end]))) {
      if (!IsWordByte(json[end])) {
        path = (path ^ static_cast<std::uint8_t>(json[end])) * kHashPrime;
        ++end;
        continue;
      }
      std::uint64_t word = kHashStart;
      const std::size_t begin = end;
      for (; end < json.size() && IsWordByte(json[end]); ++end) {
        const auto byte = static_cast<std::uint8_t>(json[end]);
        word = (word ^ byte) * kHashPrime;
        path = (path ^ byte) * kHashPrime;
      }
      ++word_count;
      path_at_word = path;
      path_bytes = end - at;
      if (end - begin >= kWordBytesMin) take(Mixed(word));
    }
    if (word_count > 1 && path_bytes >= kWordBytesMin)
      take(Mixed(path_at_word));
    at = end;
  }
}

// Which words were met, by a bit for each.
class MetWords {
 public:
  // Has room for the words of a text of so many bytes.
  explicit MetWords(std::int64_t bytes)
      : bits_(std::bit_ceil(static_cast<std::size_t>(
            std::clamp<std::int64_t>(bytes, kBitsMin, kBitsMax)))) {}

  // Whether it is met for the first time.
  bool Meet(std::uint64_t word) {
    const std::size_t bit = word & (bits_.size() - 1);
    const bool is_new = !bits_[bit];
    bits_[bit] = true;
    return is_new;
  }

 private:
  static constexpr std::int64_t kBitsMin = 1LL << 16;
  static constexpr std::int64_t kBitsMax = 1LL << 26;

  std::vector<bool> bits_;
};

// The words that the assistant says, and the last message in which it does.
using SpokenWords = absl::flat_hash_map<std::uint64_t, std::int64_t>;

// Also gives the last message of the assistant of which every word was looked
// at; -1 if there is none.
SpokenWords FindSpoken(const Session& session, std::int64_t& last) {
  SpokenWords spoken;
  last = -1;
  for (std::int64_t i = 0; i < session.message_count(); ++i) {
    const SessionMessage& message =
        session.messages()[static_cast<std::size_t>(i)];
    if (message.role != Role::kAssistant) continue;
    bool is_whole = true;
    ForEachWord(*message.raw, [&](std::uint64_t word) {
      if (spoken.size() < kSpokenWordsMax || spoken.contains(word)) {
        spoken[word] = i;
      } else {
        is_whole = false;
      }
    });
    if (!is_whole) break;
    last = i;
  }
  return spoken;
}

std::vector<bool> FindIdenticalCalls(const Session& session) {
  std::vector<bool> identical;
  identical.reserve(session.calls().size());
  absl::flat_hash_set<std::pair<absl::string_view, absl::string_view>> seen;
  for (std::size_t i = 0; i < session.calls().size(); ++i) {
    identical.push_back(
        !seen.emplace(session.calls()[i].call.tool, session.ArgumentsOf(i))
             .second);
  }
  return identical;
}

}  // namespace

Overreading FindOverreading(const Session& session) {
  using Verdict = Overreading::Verdict;
  Overreading found;
  found.identical_calls = FindIdenticalCalls(session);
  found.observations.assign(session.observations().size(), Verdict::kNotJudged);
  if (session.history_bytes() > kOverreadingBytesMax) return found;
  std::int64_t last_spoken = 0;
  const SpokenWords spoken = FindSpoken(session, last_spoken);
  MetWords met(session.history_bytes());
  for (std::int64_t sequence = 0; sequence < last_spoken; ++sequence) {
    const SessionMessage& message =
        session.messages()[static_cast<std::size_t>(sequence)];
    const absl::string_view text = *message.raw;
    // What stands outside of observations is met in passing.
    std::size_t at = 0;
    const auto meet = [&](std::uint64_t word) { met.Meet(word); };
    for (std::size_t i = 0; i < message.observation_count; ++i) {
      const std::size_t index = message.first_observation + i;
      const ParsedResult& result = session.observations()[index].result;
      const ByteSpan content = result.content;
      if (content.offset >= at) {
        ForEachWord(text.substr(at, content.offset - at), meet);
      }
      at = std::max(at, content.offset + content.size);
      std::int64_t new_words = 0;
      bool is_referenced = false;
      ForEachWord(
          text.substr(content.offset, content.size), [&](std::uint64_t word) {
            if (!met.Meet(word)) return;
            ++new_words;
            const auto use = spoken.find(word);
            is_referenced |= use != spoken.end() && use->second > sequence;
          });
      if (result.is_error || result.token_count < kJudgedTokensMin ||
          new_words < kNewWordsMin) {
        continue;
      }
      found.observations[index] =
          is_referenced ? Verdict::kReferenced : Verdict::kUnreferenced;
    }
    ForEachWord(text.substr(std::min(at, text.size())), meet);
  }
  return found;
}

}  // namespace clerestory
