// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/presets.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

Policy RentOrBuy() {
  Policy policy;
  policy.first_break_percent = 100;
  policy.later_break_percent = 100;
  policy.look_ahead_calls = 0;
  return policy;
}

Policy Jetbrains() {
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  policy.keep_observations = kKeepObservationsMin;
  policy.keep_turns = 10;
  policy.placeholder = "Old environment output: ({size} omitted)";
  policy.error_placeholder = policy.placeholder;
  return policy;
}

Policy SweAgentPolling() {
  Policy policy;
  policy.mode = Mode::kBlock;
  policy.keep_observations = 5;
  policy.block_size = 5;
  policy.placeholder = "Old environment output: ({size} omitted)";
  policy.error_placeholder = policy.placeholder;
  return policy;
}

Policy Anthropic() {
  Policy policy;
  policy.mode = Mode::kThreshold;
  policy.threshold_tokens = 100'000;
  policy.keep_observations = 3;
  policy.reclaim_tokens_min = 5'000;
  return policy;
}

Policy GeminiCli() {
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  policy.keep_observations = kKeepObservationsMin;
  policy.keep_turns = 1;
  policy.keep_tokens = 50'000;
  policy.reclaim_tokens_min = 30'000;
  return policy;
}

Policy Opencode() {
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  policy.keep_observations = kKeepObservationsMin;
  policy.keep_tokens = 40'000;
  policy.reclaim_tokens_min = 20'000;
  policy.errors = ErrorRule::kKeep;
  policy.exclude = {"skill"};
  policy.placeholder = "[Old tool result content cleared]";
  return policy;
}

Policy Strands() {
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  policy.keep_observations = kKeepObservationsMin;
  policy.keep_turns = 20;
  return policy;
}

Policy MiniClaudeCode() {
  Policy policy;
  policy.mode = Mode::kThreshold;
  policy.threshold_tokens = 8'000;
  policy.keep_observations = 4;
  return policy;
}

}  // namespace

std::span<const Preset> Presets() {
  static const std::vector<Preset> presets = {
      {"rent_or_buy", RentOrBuy(),
       "the rule of ski rental: buy when the rent paid is the price",
       "It has no settings."},
      {"jetbrains", Jetbrains(),
       "Recursive-Safeguarding/the-complexity-trap at 1b07dec, a fork of the "
       "study's code: observations of the last 10 turns (M = 10)",
       "The study never masks the first observation, and here at least 3 "
       "observations are kept however few turns they fill."},
      {"swe-agent-polling", SweAgentPolling(),
       "SWE-agent at 3ea751c0, sweagent/agent/history_processors.py: "
       "LastNObservations with n = 5 and polling = 5",
       "It never masks the first observation, and keeps or removes by tags of "
       "its own; n and polling are each user's choice."},
      {"anthropic", Anthropic(),
       "Anthropic, context editing, clear_tool_uses_20250919, as documented on "
       "2026-08-21: trigger 100,000 input tokens, keep 3 tool uses; "
       "clear_at_least has no default, and is 5,000 here since clearing less "
       "costs the cache more than it saves",
       "The provider clears on its side, with a text of its own, counts with "
       "its own tokenizer, and may be told to clear after a number of tool "
       "uses; mode delegate has it do so."},
      {"gemini-cli", GeminiCli(),
       "google-gemini/gemini-cli at 5411f113ca, "
       "packages/core/src/services/toolOutputMaskingService.ts: the newest "
       "50,000 tool tokens and the latest turn protected, batches of 30,000",
       "It keeps the first and last 250 characters and a shell's error and "
       "exit code, and exempts tools of its own that ask the user or plan."},
      {"opencode", Opencode(),
       "opencode at 31e22f65, packages/opencode/src/session/compaction.ts: the "
       "newest 40,000 tokens protected, at least 20,000 pruned",
       "It also protects all since the user spoke last but one, which is no "
       "number of turns here."},
      {"strands", Strands(),
       "Strands Agents, sdk-python at 1232230d, SlidingWindow: the newest 40 "
       "messages, taken as 20 turns of a call and its result",
       "It drops whole messages in front of the window, and truncates results "
       "to their first and last 200 characters; here they are masked, and "
       "messages stay."},
      {"mini-claude-code", MiniClaudeCode(),
       "mini-claude-code: the newest 4 tool results above 8,000 tokens, as its "
       "settings are quoted; many repositories bear the name, and none was "
       "read",
       "What else it does is not known."},
  };
  return presets;
}

std::string PresetNames() {
  return absl::StrJoin(Presets(), ", ",
                       [](std::string* out, const Preset& preset) {
                         absl::StrAppend(out, preset.name);
                       });
}

const Preset* FindPreset(absl::string_view name) {
  const std::span<const Preset> presets = Presets();
  const auto at =
      std::find_if(presets.begin(), presets.end(),
                   [&](const Preset& preset) { return preset.name == name; });
  return at == presets.end() ? nullptr : &*at;
}

}  // namespace clerestory
