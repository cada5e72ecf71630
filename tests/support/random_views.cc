// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// random_views --format NAME --seed N --count M [--plain]: for each of M seeds
// from N on, a random valid history of the format is served under random
// policies. Prints a view from the middle of it and the last one, a line each:
//
//   {"format":"GEMINI","seed":1,"steps":[1,3],"history":["{..."],"view":[...]}
//
// `history` is what was appended until the view, and `steps` how many messages
// that were after each step of the agent. Each message is a string with its
// very bytes, which may have ends of lines and numbers of any size. With
// --plain there are no blocks and fields that nobody knows. Exits with 1 if a
// message was refused, and with 2 if the arguments are none of these.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/formats/format.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "tests/support/random_notes.h"
#include "tests/support/random_session.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

struct Arguments {
  Format format = Format::kUnspecified;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  bool is_plain = false;
};

Format FormatOf(absl::string_view name) {
  for (const Format format :
       {Format::kAnthropicMessages, Format::kOpenaiChat,
        Format::kOpenaiResponses, Format::kGemini, Format::kBedrockConverse}) {
    if (FormatName(format) == name) return format;
  }
  return Format::kUnspecified;
}

std::optional<Arguments> ParseArguments(
    const std::vector<absl::string_view>& all) {
  Arguments arguments;
  bool is_valid = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == "--plain") {
      arguments.is_plain = true;
      continue;
    }
    if (i + 1 == all.size()) return std::nullopt;
    const absl::string_view name = all[i];
    const absl::string_view value = all[++i];
    if (name == "--format") {
      arguments.format = FormatOf(value);
    } else if (name == "--seed") {
      is_valid = is_valid && absl::SimpleAtoi(value, &arguments.seed);
    } else if (name == "--count") {
      is_valid = is_valid && absl::SimpleAtoi(value, &arguments.count);
    } else {
      return std::nullopt;
    }
  }
  if (!is_valid || arguments.format == Format::kUnspecified) {
    return std::nullopt;
  }
  return arguments;
}

RandomHistoryOptions HistoryOptions(const Arguments& arguments,
                                    Random& random) {
  RandomHistoryOptions options;
  options.format = arguments.format;
  options.has_images =
      arguments.format != Format::kOpenaiChat && random.OneIn(3);
  options.has_thinking = random.OneIn(3);
  options.has_unknown = !arguments.is_plain;
  return options;
}

Policy AnyPolicy(Random& random) {
  Policy policy = RandomPolicy(random);
  policy.errors = static_cast<ErrorRule>(random.Between(0, 2));
  policy.argument_tokens_min = random.OneIn(2) ? random.Between(1, 40) : 0;
  return policy;
}

std::string Strings(const std::vector<std::string>& messages) {
  return absl::StrJoin(messages, ",",
                       [](std::string* out, const std::string& message) {
                         out->append(json::Quote(message));
                       });
}

void PrintSession(const Arguments& arguments, std::uint64_t seed) {
  Random random(seed);
  RandomHistory history(HistoryOptions(arguments, random), random);
  ScriptedSession session(arguments.format);
  session.prices = RandomPrices(random);
  session.policy = AnyPolicy(random);

  std::vector<std::string> appended;
  std::vector<std::size_t> steps;
  std::vector<std::string> lines;
  const std::int64_t step_count = random.Between(1, 40);
  for (std::int64_t i = 1; i <= step_count; ++i) {
    for (std::string& message : history.NextStep()) {
      session.Append(message);
      appended.push_back(std::move(message));
    }
    steps.push_back(appended.size());
    // A client that appends in bulk, but the last view has all.
    if (random.OneIn(6) && i != step_count) continue;
    session.now += random.Between(0, 400) * kMicrosPerSecond;
    if (random.OneIn(15)) session.policy = AnyPolicy(random);
    if (random.OneIn(6)) {
      session.Note(RandomNote(session.session(), session.now, random));
    }
    if (random.OneIn(40)) session.unmasked_tools = RandomTools(random);
    session.Serve();
    lines.push_back(absl::StrCat(
        R"({"format":")", FormatName(arguments.format), R"(","seed":)", seed,
        R"(,"steps":[)", absl::StrJoin(steps, ","), R"(],"history":[)",
        Strings(appended), R"(],"view":[)", Strings(session.view()), "]}"));
  }
  if (lines.size() > 1) std::puts(lines[lines.size() / 2 - 1].c_str());
  std::puts(lines.back().c_str());
}

int Main(const std::vector<absl::string_view>& all) {
  const std::optional<Arguments> arguments = ParseArguments(all);
  if (!arguments.has_value()) return 2;
  for (std::uint64_t i = 0; i < arguments->count; ++i) {
    PrintSession(*arguments, arguments->seed + i);
  }
  // What the session that is driven expects.
  return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) {
  return clerestory::Main(
      std::vector<absl::string_view>(argv + 1, argv + argc));
}
