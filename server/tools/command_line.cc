// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/command_line.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/tools/shell.h"

namespace clerestory {
namespace {

constexpr std::size_t kJoinedBytesMax = 1024;

bool IsDigits(absl::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

bool IsOneOfWords(absl::string_view word, absl::string_view words) {
  if (word.empty()) return false;
  for (std::size_t at = words.find(word); at != absl::string_view::npos;
       at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') &&
        (end == words.size() || words[end] == ' ')) {
      return word.find(' ') == absl::string_view::npos;
    }
  }
  return false;
}

std::string JoinWords(std::span<const ShellWord> words) {
  std::string text;
  for (const ShellWord& word : words) {
    if (text.size() > kJoinedBytesMax) break;
    absl::StrAppend(&text, text.empty() ? "" : " ", word.text,
                    word.is_literal ? "" : "$");
  }
  return text;
}

CommandLine::CommandLine(std::span<const ShellWord> words,
                         absl::string_view value_options, OptionStyle style) {
  parts_.reserve(words.size());
  bool has_options = true;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const absl::string_view text = words[i].text;
    if (!has_options || text.size() < 2 || text[0] != '-') {
      operands_.push_back(&words[i]);
      continue;
    }
    if (text == "--") {
      has_options = false;
      continue;
    }
    const bool is_long = absl::StartsWith(text, "--");
    const std::size_t equal = text.find('=');
    if (is_long && equal != absl::string_view::npos) {
      parts_.push_back({.text = std::string(text.substr(equal + 1)),
                        .is_literal = words[i].is_literal,
                        .is_glob = words[i].is_glob});
      options_.push_back({.name = std::string(text.substr(0, equal)),
                          .value = &parts_.back()});
    } else if (is_long || style == OptionStyle::kLong ||
               IsDigits(text.substr(1))) {
      std::string name = style == OptionStyle::kLong
                             ? absl::AsciiStrToLower(text)
                             : std::string(text);
      const bool has_value =
          IsOneOfWords(name, value_options) && i + 1 < words.size();
      options_.push_back({.name = std::move(name),
                          .value = has_value ? &words[++i] : nullptr});
    } else {
      AddShort(words, i, value_options);
    }
  }
}

void CommandLine::AddShort(std::span<const ShellWord> words, std::size_t& i,
                           absl::string_view value_options) {
  const ShellWord& word = words[i];
  const absl::string_view letters = word.text;
  for (std::size_t at = 1; at < letters.size(); ++at) {
    Option option;
    option.name = absl::StrCat("-", letters.substr(at, 1));
    if (!IsOneOfWords(option.name, value_options)) {
      options_.push_back(std::move(option));
      // What no letter of an option can be is not looked at any further.
      if (at > 16) return;
      continue;
    }
    if (at + 1 < letters.size()) {
      parts_.push_back({.text = std::string(letters.substr(at + 1)),
                        .is_literal = word.is_literal,
                        .is_glob = word.is_glob});
      option.value = &parts_.back();
    } else if (i + 1 < words.size()) {
      option.value = &words[++i];
    }
    options_.push_back(std::move(option));
    return;
  }
}

bool CommandLine::Has(absl::string_view options) const {
  for (const Option& option : options_) {
    if (IsOneOfWords(option.name, options)) return true;
  }
  return false;
}

std::vector<const ShellWord*> CommandLine::Values(
    absl::string_view options) const {
  std::vector<const ShellWord*> values;
  for (const Option& option : options_) {
    if (option.value != nullptr && IsOneOfWords(option.name, options)) {
      values.push_back(option.value);
    }
  }
  return values;
}

const ShellWord* CommandLine::Value(absl::string_view options) const {
  const ShellWord* value = nullptr;
  for (const Option& option : options_) {
    if (option.value != nullptr && IsOneOfWords(option.name, options)) {
      value = option.value;
    }
  }
  return value;
}

std::optional<std::int64_t> CommandLine::Number(
    absl::string_view options) const {
  std::int64_t number = 0;
  if (const ShellWord* value = Value(options)) {
    if (value->is_literal && absl::SimpleAtoi(value->text, &number)) {
      return number;
    }
    return std::nullopt;
  }
  for (const Option& option : options_) {
    const absl::string_view digits = absl::string_view(option.name).substr(1);
    if (IsDigits(digits) && absl::SimpleAtoi(digits, &number)) return number;
  }
  return std::nullopt;
}

}  // namespace clerestory
