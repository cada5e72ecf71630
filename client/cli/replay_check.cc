// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/replay_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/view_service.pb.h"
#include "server/base/digest.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/formats/edit.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

// Whether two messages say the same but for the contents of results.
bool SameSkeleton(const ParsedMessage& a, const ParsedMessage& b) {
  return a.role == b.role &&
         std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(),
                    b.calls.end(),
                    [](const ParsedCall& x, const ParsedCall& y) {
                      return x.id == y.id && x.tool == y.tool;
                    }) &&
         std::equal(
             a.results.begin(), a.results.end(), b.results.begin(),
             b.results.end(), [](const ParsedResult& x, const ParsedResult& y) {
               return x.call_id == y.call_id && x.is_error == y.is_error &&
                      x.content.size > 0 && y.content.size > 0;
             });
}

// `message` without the contents of its results.
std::string WithoutContents(absl::string_view message,
                            const ParsedMessage& parsed) {
  std::vector<Replacement> cuts;
  for (const ParsedResult& result : parsed.results) {
    cuts.push_back({.at = result.content, .value = ""});
    if (result.attachments.size > 0) {
      cuts.push_back({.at = result.attachments, .value = ""});
    }
  }
  std::ranges::sort(cuts, {},
                    [](const Replacement& cut) { return cut.at.offset; });
  return Splice(message, cuts);
}

// Every element of `message` that is reasoning.
std::vector<std::string> ReasoningOf(const std::string& message,
                                     const ParsedMessage& parsed) {
  std::vector<std::string> elements;
  for (const ParsedReasoning& reasoning : parsed.reasoning) {
    elements.push_back(
        message.substr(reasoning.element.offset, reasoning.element.size));
  }
  return elements;
}

// `message` without the reasoning that may be left out; "" if nothing is left.
std::string WithoutReasoning(const std::string& message,
                             const ParsedMessage& parsed) {
  std::vector<ByteSpan> removed;
  for (const ParsedReasoning& reasoning : parsed.reasoning) {
    if (reasoning.is_removable) removed.push_back(reasoning.element);
  }
  if (removed.empty()) return message;
  if (static_cast<std::int64_t>(removed.size()) == parsed.part_count) return "";
  return Splice(message, RemoveElements(message, removed));
}

}  // namespace

void ReplayCheck::NoteLoss(std::int64_t sequence) {
  lossless_.push_back(
      absl::StrCat("message ", sequence, " reads back with other bytes"));
}

CallTokens ReplayCheck::Add(const std::vector<std::string>& history,
                            v1::BuildViewResponse view, TimeMicros now,
                            const std::string& model) {
  const v1::Break& broken = view.report().break_();
  for (const v1::MaskedObservation& mask : broken.masks()) {
    calls_edited_ |= mask.is_dropped() || !mask.arguments().empty();
  }
  if (broken.has_stripped_from()) {
    messages_edited_ = true;
    stripped_.resize(history.size());
    for (auto i = static_cast<std::size_t>(broken.stripped_from());
         i < history.size(); ++i) {
      stripped_[i] = true;
    }
  }
  const std::vector<std::size_t> left = CheckMessages(history, view);
  CheckRestored(history, view, left);
  CheckPrefix(view, left);
  CheckDigests(view);

  CallTokens tokens;
  std::int64_t total = preamble_tokens_;
  for (const std::string& message : view.messages()) {
    total += TokensOf(message);
  }
  const ModelPrices& prices = BuiltInPrices().Of(model, now);
  HeldPrompt& held = held_[model];
  const TokenRates rates = RatesFor(prices, total, /*is_long_life=*/false);
  const bool is_warm =
      held.is_cached &&
      now - held.time <= prices.cache_ttl_seconds * kMicrosPerSecond;
  held.is_cached = rates.read != rates.input || rates.write != rates.input;
  if (held.is_cached) {
    tokens.read = is_warm ? ReadTokens(held.view, view) : 0;
    tokens.written = total - tokens.read;
  } else {
    tokens.uncached = total;
  }
  const v1::CallTokens& call = view.report().view_call();
  const CallTokens expected = {.read = call.read(),
                               .written = call.written(),
                               .uncached = call.uncached()};
  if (!calls_edited_ && tokens != expected) {
    estimates_.push_back(absl::StrCat("view ", view_count_, ": of ", total,
                                      " tokens the cache holds ", tokens.read,
                                      ", and the server expected ",
                                      expected.read, " of ", expected.total()));
  }
  ++view_count_;
  held.view = view;
  held.time = now;
  last_ = std::move(view);
  return tokens;
}

std::vector<std::size_t> ReplayCheck::CheckMessages(
    const std::vector<std::string>& history,
    const v1::BuildViewResponse& view) {
  const FormatAdapter& adapter = AdapterFor(format_);
  // What the view may show: messages with what they have left, and reasoning.
  std::vector<std::size_t> left;
  std::vector<std::string> texts;
  std::map<std::string, std::int64_t> reasoning;
  for (std::size_t i = 0; i < history.size(); ++i) {
    std::string text = history[i];
    if (messages_edited_) {
      const absl::StatusOr<ParsedMessage> parsed =
          adapter.Parse(text, counter_);
      if (!parsed.ok()) continue;
      if (i < stripped_.size() && stripped_[i]) {
        text = WithoutReasoning(text, *parsed);
      }
      if (text.empty()) continue;
      const absl::StatusOr<ParsedMessage> rest = adapter.Parse(text, counter_);
      if (!rest.ok()) continue;
      for (const std::string& element : ReasoningOf(text, *rest)) {
        ++reasoning[element];
      }
    }
    left.push_back(i);
    texts.push_back(std::move(text));
  }
  if (messages_edited_ && ShowsMore(view, std::move(reasoning))) return left;
  // Which messages are left, and what of them, is then for the server to say.
  if (calls_edited_) return left;
  if (view.messages_size() != static_cast<int>(left.size())) {
    valid_.push_back(absl::StrCat("view ", view_count_, " has ",
                                  view.messages_size(), " messages of ",
                                  left.size()));
    return left;
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    CheckMessage(left[i], texts[i], view.messages(static_cast<int>(i)));
  }
  return left;
}

bool ReplayCheck::ShowsMore(const v1::BuildViewResponse& view,
                            std::map<std::string, std::int64_t> reasoning) {
  for (int i = 0; i < view.messages_size(); ++i) {
    const absl::StatusOr<ParsedMessage> parsed =
        AdapterFor(format_).Parse(view.messages(i), counter_);
    if (!parsed.ok()) continue;
    for (const std::string& element : ReasoningOf(view.messages(i), *parsed)) {
      if (--reasoning[element] >= 0) continue;
      valid_.push_back(absl::StrCat("view ", view_count_, ": message ", i,
                                    " shows reasoning that was left out"));
      return true;
    }
  }
  return false;
}

void ReplayCheck::CheckMessage(std::size_t index, const std::string& appended,
                               const std::string& shown) {
  if (appended == shown) return;
  const FormatAdapter& adapter = AdapterFor(format_);
  const absl::StatusOr<ParsedMessage> a = adapter.Parse(appended, counter_);
  const absl::StatusOr<ParsedMessage> b = adapter.Parse(shown, counter_);
  if (!a.ok() || !b.ok() || !SameSkeleton(*a, *b)) {
    valid_.push_back(absl::StrCat("view ", view_count_, ": message ", index,
                                  " differs in more than results"));
  } else if (WithoutContents(appended, *a) != WithoutContents(shown, *b)) {
    valid_.push_back(absl::StrCat("view ", view_count_, ": message ", index,
                                  " has other bytes around its results"));
  }
}

void ReplayCheck::CheckRestored(const std::vector<std::string>& history,
                                const v1::BuildViewResponse& view,
                                const std::vector<std::size_t>& left) {
  // Where messages stand is then for the server to say.
  if (calls_edited_) return;
  for (const v1::MaskedObservation& mask : view.report().break_().masks()) {
    if (!mask.is_restored() ||
        ShowsOriginal(mask.observation_id(), history, view, left)) {
      continue;
    }
    valid_.push_back(absl::StrCat("view ", view_count_, ": observation ",
                                  mask.observation_id(),
                                  " is shown again with other bytes"));
  }
}

bool ReplayCheck::ShowsOriginal(const std::string& observation_id,
                                const std::vector<std::string>& history,
                                const v1::BuildViewResponse& view,
                                const std::vector<std::size_t>& left) const {
  const std::pair<std::string, std::string> id =
      absl::StrSplit(observation_id, absl::MaxSplits('.', 1));
  std::size_t sequence = 0;
  std::size_t index = 0;
  if (!absl::SimpleAtoi(id.first, &sequence) ||
      !absl::SimpleAtoi(id.second, &index) || sequence >= history.size()) {
    return false;
  }
  const auto place = std::ranges::lower_bound(left, sequence) - left.begin();
  if (place >= view.messages_size()) return false;
  const std::string& appended = history[sequence];
  const std::string& shown = view.messages(static_cast<int>(place));
  const FormatAdapter& adapter = AdapterFor(format_);
  const absl::StatusOr<ParsedMessage> a = adapter.Parse(appended, counter_);
  const absl::StatusOr<ParsedMessage> b = adapter.Parse(shown, counter_);
  if (!a.ok() || !b.ok() || index >= a->results.size() ||
      index >= b->results.size()) {
    return false;
  }
  const auto same = [&](ByteSpan x, ByteSpan y) {
    return appended.substr(x.offset, x.size) == shown.substr(y.offset, y.size);
  };
  return same(a->results[index].content, b->results[index].content) &&
         same(a->results[index].attachments, b->results[index].attachments);
}

void ReplayCheck::CheckPrefix(const v1::BuildViewResponse& view,
                              const std::vector<std::size_t>& left) {
  // How many messages are the same as before, whatever the server says.
  int same = 0;
  while (same < last_.messages_size() && same < view.messages_size() &&
         last_.messages(same) == view.messages(same)) {
    ++same;
  }
  const bool is_break = view.report().has_break_();
  // What a break masks may have been appended since the view before it.
  std::int64_t promised = last_.messages_size();
  if (is_break) {
    const auto sequence =
        static_cast<std::size_t>(view.report().break_().sequence());
    promised = std::min<std::int64_t>(
        promised, calls_edited_ ? view.report().stable().message_count()
                                : std::ranges::lower_bound(left, sequence) -
                                      left.begin());
  }
  if (same < promised || (is_break && same != promised)) {
    prefix_stable_.push_back(
        absl::StrCat("view ", view_count_, " departs at message ", same,
                     " from the one before it, and promised ", promised));
  }
  if (view_count_ > 0 && view.report().stable().message_count() != promised) {
    prefix_stable_.push_back(absl::StrCat(
        "view ", view_count_, " reports a stable prefix of ",
        view.report().stable().message_count(), " messages, not ", promised));
  }
}

void ReplayCheck::CheckDigests(const v1::BuildViewResponse& view) {
  const v1::ViewPrefix& stable = view.report().stable();
  Digest digest;
  Digest stable_digest;
  std::int64_t count = 0;
  for (const std::string& message : view.messages()) {
    digest = digest.Then(Digest::Of(message));
    if (++count == stable.message_count()) stable_digest = digest;
  }
  if (stable_digest.ToHex() != stable.digest()) {
    prefix_stable_.push_back(absl::StrCat(
        "view ", view_count_, ": the stable prefix has another digest"));
  }
  if (digest.ToHex() != view.report().whole().digest()) {
    prefix_stable_.push_back(
        absl::StrCat("view ", view_count_, " has another digest"));
  }
}

std::int64_t ReplayCheck::TokensOf(const std::string& message) const {
  const absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(format_).Parse(message, counter_);
  return parsed.ok() ? parsed->tokens.total() : 0;
}

bool ReplayCheck::HasImage(const v1::BuildViewResponse& view) const {
  for (const std::string& message : view.messages()) {
    const absl::StatusOr<ParsedMessage> parsed =
        AdapterFor(format_).Parse(message, counter_);
    if (!parsed.ok()) continue;
    if (parsed->image_count > 0) return true;
    for (const ParsedResult& result : parsed->results) {
      if (result.image_count > 0) return true;
    }
  }
  return false;
}

// The tokens of what `view` and the last one have in common: whole messages,
// and of the first that differs what stands before its first result that does.
// None of the messages where Anthropic's last picture went.
std::int64_t ReplayCheck::ReadTokens(const v1::BuildViewResponse& held,
                                     const v1::BuildViewResponse& view) const {
  std::int64_t tokens = preamble_tokens_;
  if (format_ == Format::kAnthropicMessages && view.report().has_break_() &&
      HasImage(held) && !HasImage(view)) {
    return tokens;
  }
  const int both = std::min(held.messages_size(), view.messages_size());
  int i = 0;
  for (; i < both && held.messages(i) == view.messages(i); ++i) {
    tokens += TokensOf(view.messages(i));
  }
  if (i == both) return tokens;
  const std::string& before = held.messages(i);
  const std::string& now = view.messages(i);
  const absl::StatusOr<ParsedMessage> a =
      AdapterFor(format_).Parse(before, counter_);
  const absl::StatusOr<ParsedMessage> b =
      AdapterFor(format_).Parse(now, counter_);
  if (!a.ok() || !b.ok()) return tokens;
  for (std::size_t r = 0; r < std::min(a->results.size(), b->results.size());
       ++r) {
    const ByteSpan x = a->results[r].content;
    const ByteSpan y = b->results[r].content;
    if (before.substr(x.offset, x.size) != now.substr(y.offset, y.size)) {
      return tokens + b->results[r].tokens_before;
    }
  }
  return tokens;
}

}  // namespace clerestory
