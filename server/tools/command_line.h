// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_COMMAND_LINE_H_
#define CLERESTORY_SERVER_TOOLS_COMMAND_LINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/tools/shell.h"

namespace clerestory {

// How a command's options are written.
enum class OptionStyle {
  kShort,  // `-ab VALUE`, `--name=VALUE`, `--name VALUE`.
  kLong,   // `-name VALUE` too: find, go. Of PowerShell in any case of letters.
};

// The words of one command, told apart. Refers to them.
class CommandLine {
 public:
  // `words` begins with the command's name. `value_options` are the options
  // that the next word belongs to, separated by blanks.
  CommandLine(std::span<const ShellWord> words, absl::string_view value_options,
              OptionStyle style);

  const std::vector<const ShellWord*>& operands() const { return operands_; }

  // Whether it has one of the options, which are separated by blanks.
  bool Has(absl::string_view options) const;
  // The value of the last of them, or null; and all of their values.
  const ShellWord* Value(absl::string_view options) const;
  std::vector<const ShellWord*> Values(absl::string_view options) const;
  // The number in a value, or in an option such as `-20`, if there is one.
  std::optional<std::int64_t> Number(absl::string_view options) const;

 private:
  struct Option {
    std::string name;
    const ShellWord* value = nullptr;
  };

  void AddShort(std::span<const ShellWord> words, std::size_t& i,
                absl::string_view value_options);

  std::vector<Option> options_;
  std::vector<const ShellWord*> operands_;
  // Values that are parts of words. Never grows beyond what was reserved, so
  // that they stay where they are.
  std::vector<ShellWord> parts_;
};

// Whether `word` is one of `words`, which are separated by blanks.
bool IsOneOfWords(absl::string_view word, absl::string_view words);

// The words, separated by blanks, cut when they are long; to compare them.
std::string JoinWords(std::span<const ShellWord> words);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_COMMAND_LINE_H_
