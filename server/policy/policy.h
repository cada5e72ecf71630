// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_POLICY_POLICY_H_
#define CLERESTORY_SERVER_POLICY_POLICY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {

// When observations are masked.
enum class Mode {
  // Never.
  kOff,
  // When a break is free, has paid for itself in rent, or is forced.
  kAdaptive,
  // When `block_size` observations are eligible.
  kBlock,
  // When the view has more than `threshold_tokens`.
  kThreshold,
  // As soon as an observation is eligible: for providers without a cache.
  kEveryTurn,
  // Never by the service: the view comes with a value of Anthropic's request
  // field `context_management` that has the provider do it.
  kDelegate,
};

// What is done with observations that are errors.
enum class ErrorRule {
  kKeep,  // They stay.
  kMask,  // They are masked like others, with a text of their own.
  // They are left out with their calls where the format stays valid, and masked
  // where it would not.
  kDrop,
};

// Which earlier observations are eligible at once, however new they are,
// because a later one that the view shows has what they had.
enum class DuplicateRule {
  kOff,
  // Those whose content is, byte for byte, that of a later observation.
  kIdentical,
  // Those also whose tool was called again with the same arguments.
  kSuperseded,
};

// What is done on a model whose reasoning is bound to its prefix
// (ModelPrices::reasoning_prefix_bound) when a break would edit that prefix.
enum class ThinkingRule {
  // kStrip.
  kAuto,
  // The view leaves out the reasoning behind the first change, for ever.
  kStrip,
  // The view keeps it, and says that the client has to send the provider's
  // control that drops it.
  kDropBlock,
  // No break is made in front of reasoning.
  kAvoid,
};

// How long the client asks its provider to cache, where it has a choice.
enum class CacheLife {
  kShort,  // Five minutes with Anthropic.
  kLong,   // An hour.
};

// What is done with the observations of some tools.
struct ToolRule {
  // A glob over the tool's name: `*` is any run of characters, `?` any one. The
  // name of an MCP tool is matched as it stands (`mcp__github__get_issue`) and
  // as `github/get_issue`.
  std::string tool;
  // Whether they are never masked, not even when the window forces a break.
  bool is_never_masked = false;
  // How many of the newest observations of these tools are kept, beside what
  // the policy keeps of all.
  std::int64_t keep_observations = 0;
  // What their calls do, over what the tables of known tools say.
  ToolAccess access = {};

  friend bool operator==(const ToolRule&, const ToolRule&) = default;
};

// How a session's observations are masked. A value; equal policies have equal
// digests.
struct Policy {
  Mode mode = Mode::kAdaptive;

  // What is never masked, but for the window: the newest observations, and the
  // observations of the newest turns. A batch is kept whole.
  std::int64_t keep_observations = 10;
  std::int64_t keep_turns = 0;
  // And the newest observations of together at most so many tokens.
  std::int64_t keep_tokens = 0;

  // A break that would remove fewer tokens is not made, unless forced.
  std::int64_t reclaim_tokens_min = 0;

  // Mode kAdaptive: the rent, in percent of its price, at which a break is
  // made: the first of a session, and later ones. 100 and 100 are the plain
  // rule of rent or buy, if nothing is looked ahead.
  std::int64_t first_break_percent = 140;
  std::int64_t later_break_percent = 60;
  // Mode kAdaptive: for how many calls a break that is ripe may wait for large
  // observations that will be old enough by then; 0 never waits.
  std::int64_t look_ahead_calls = 12;

  // Mode kBlock.
  std::int64_t block_size = 10;

  // Mode kThreshold: the view is brought down to the low-water mark, or as far
  // as it goes.
  std::int64_t threshold_tokens = 100'000;
  std::int64_t low_water_tokens = 0;

  // The most tokens of a view with its preamble and the reserve for the answer;
  // 0 takes the model's window.
  std::int64_t window_tokens = 0;
  // The reserve for the answer; 0 takes the model's answer limit, but at most a
  // fifth of the window.
  std::int64_t reserve_tokens = 0;

  ErrorRule errors = ErrorRule::kMask;
  DuplicateRule duplicates = DuplicateRule::kOff;
  ThinkingRule thinking = ThinkingRule::kAuto;
  CacheLife cache_life = CacheLife::kShort;

  // Which tools' observations are masked, as globs: those that `include`
  // matches, or all if it is empty, less those that `exclude` matches.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  // The first rule that matches a tool is its rule. It is asked after `include`
  // and `exclude`.
  std::vector<ToolRule> tools;

  // The share of sessions, in thousandths, that is never masked, so that what
  // masking does can be seen. Which ones follows from their ids alone.
  std::int64_t control_permille = 0;

  // After so many re-fetches of a tool's masked observations, the tool's are no
  // longer masked in the session; 0: however many.
  std::int64_t refetch_session_limit = 2;
  // The share of a tool's masked observations, in thousandths, above which
  // re-fetches of them cost more than masking saves: then the tool is no longer
  // masked in the tenant's sessions. 0 takes what the prices of what was saved
  // and lost say.
  std::int64_t refetch_rate_permille = 0;
  // How many masked observations it takes to judge a tool, and how sure the
  // judgement has to be, in percent.
  std::int64_t refetch_samples_min = 20;
  std::int64_t refetch_confidence_percent = 95;
  // How long a tool stays unmasked before it is tried again, in so many of a
  // thousand sessions.
  std::int64_t refetch_cool_off_minutes = 1'440;
  std::int64_t refetch_probe_permille = 100;
  // For so many turns what a call of the recall tool gave is not masked, unless
  // the window forces it; what was recalled stays masked itself.
  std::int64_t recall_keep_turns = 10;

  // String values of at least so many tokens in the arguments of the call of a
  // masked observation are masked with it; 0 for none. Off by default, since
  // models copy what they see in their own calls.
  std::int64_t argument_tokens_min = 0;

  // What stands in place of a masked observation: UTF-8, not blank. `{size}` is
  // what was there ("47 lines", "1 image"), `{tokens}` its tokens.
  std::string placeholder = "[tool output masked: {size}, {tokens} tokens]";
  std::string error_placeholder =
      "[tool error masked: {size}, {tokens} tokens]";
  // What stands in place of a string in arguments; has no `{size}`.
  std::string argument_placeholder = "[argument masked: {tokens} tokens]";

  friend bool operator==(const Policy&, const Policy&) = default;
};

// The fewest newest observations that may be kept: the window can force a break
// to go down to it, and no policy below it.
inline constexpr std::int64_t kKeepObservationsMin = 3;

// A whole number of a policy: its name on the command line and in the server's
// configuration, and the values that are allowed.
struct PolicyField {
  absl::string_view name;
  std::int64_t Policy::* member = nullptr;
  std::int64_t min = 0;
  std::int64_t max = 0;
  absl::string_view help;
};
std::span<const PolicyField> PolicyFields();

// The names of all fields but `tools`, in the order of the digest.
std::span<const absl::string_view> PolicyFieldNames();

// Sets the field called `name`: a whole number, a word (`mode`, `errors`,
// `duplicates`, `thinking`, `cache_life`), a template (`placeholder`,
// `error_placeholder`, `argument_placeholder`) or globs between `|` (`include`,
// `exclude`; none is the empty text). INVALID_ARGUMENT with kFieldInvalid, and
// an unchanged policy, if there is none of that name or the value is not
// allowed; it says what is.
absl::Status SetPolicyField(absl::string_view name, absl::string_view value,
                            Policy& policy);

// The value of the field as SetPolicyField takes it. REQUIRES: `name` is one of
// PolicyFieldNames.
std::string PolicyFieldText(absl::string_view name, const Policy& policy);

// The words that the field takes; none if it takes something else.
std::vector<absl::string_view> PolicyFieldWords(absl::string_view name);

// INVALID_ARGUMENT with kFieldInvalid, and the field that is to be changed, if
// fields contradict each other or one can have no effect:
// - mode threshold with a low-water mark above the threshold, or a threshold
//   above the window, which always comes first;
// - a window that the reserve, what is kept or the fewest tokens of a break
//   fill;
// - mode off with a control group;
// - mode delegate with what the provider cannot be told: turns, tokens or the
//   observations of some tools to keep, duplicates, what is done with errors;
// - an `exclude` that leaves nothing of `include`, or of all tools;
// - a tool rule that never applies, since `exclude` or an earlier rule matches
//   whatever it does, or that keeps observations which it never masks.
// Whether a glob matches whatever another does is decided where it can be seen
// from their text; a contradiction that cannot be is let through.
absl::Status CheckPolicy(const Policy& policy);

// Returns the policy that `text` describes: a mode or the name of a preset
// (server/policy/presets.h), then fields that differ from it, as in
// `block,block_size=20,keep_observations=5`. Values hold no comma.
// INVALID_ARGUMENT with kFieldInvalid as above.
absl::StatusOr<Policy> ParsePolicy(absl::string_view text);

// `adaptive`, `every_turn` and so on.
absl::string_view ModeName(Mode mode);

// 16 hexadecimal digits that differ, as good as surely, when policies do.
std::string PolicyDigest(const Policy& policy);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_POLICY_POLICY_H_
