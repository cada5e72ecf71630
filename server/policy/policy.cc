// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/base/utf8.h"
#include "server/policy/presets.h"
#include "server/policy/tool_glob.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

template <typename T>
struct Word {
  absl::string_view name;
  T value = T();
};

constexpr Word<Mode> kModes[] = {
    {"off", Mode::kOff},
    {"adaptive", Mode::kAdaptive},
    {"block", Mode::kBlock},
    {"threshold", Mode::kThreshold},
    {"every_turn", Mode::kEveryTurn},
    {"delegate", Mode::kDelegate},
};
constexpr Word<ErrorRule> kErrorRules[] = {
    {"keep", ErrorRule::kKeep},
    {"mask", ErrorRule::kMask},
    {"drop", ErrorRule::kDrop},
};
constexpr Word<DuplicateRule> kDuplicateRules[] = {
    {"off", DuplicateRule::kOff},
    {"identical", DuplicateRule::kIdentical},
    {"superseded", DuplicateRule::kSuperseded},
};
constexpr Word<ThinkingRule> kThinkingRules[] = {
    {"auto", ThinkingRule::kAuto},
    {"strip", ThinkingRule::kStrip},
    {"drop_block", ThinkingRule::kDropBlock},
    {"avoid", ThinkingRule::kAvoid},
};
constexpr Word<CacheLife> kCacheLives[] = {
    {"short", CacheLife::kShort},
    {"long", CacheLife::kLong},
};

template <typename T>
std::vector<absl::string_view> NamesOf(std::span<const Word<T>> words) {
  std::vector<absl::string_view> names;
  for (const Word<T>& word : words) names.push_back(word.name);
  return names;
}

template <typename T>
absl::Status SetWord(absl::string_view field, std::span<const Word<T>> words,
                     absl::string_view value, T& target) {
  for (const Word<T>& word : words) {
    if (word.name != value) continue;
    target = word.value;
    return absl::OkStatus();
  }
  return FieldError(field,
                    absl::StrCat("unknown value \"", value, "\"; use ",
                                 absl::StrJoin(NamesOf<T>(words), ", ")));
}

template <typename T>
std::string WordOf(std::span<const Word<T>> words, T value) {
  for (const Word<T>& word : words) {
    if (word.value == value) return std::string(word.name);
  }
  return "unknown";
}

// A field that is one of some words, whatever its type.
struct WordField {
  absl::string_view name;
  absl::Status (*set)(absl::string_view value, Policy& policy) = nullptr;
  std::string (*text)(const Policy& policy) = nullptr;
  std::vector<absl::string_view> (*words)() = nullptr;
};

constexpr WordField kWordFields[] = {
    {"mode",
     [](absl::string_view value, Policy& policy) {
       return SetWord<Mode>("mode", kModes, value, policy.mode);
     },
     [](const Policy& policy) { return WordOf<Mode>(kModes, policy.mode); },
     [] { return NamesOf<Mode>(kModes); }},
    {"errors",
     [](absl::string_view value, Policy& policy) {
       return SetWord<ErrorRule>("errors", kErrorRules, value, policy.errors);
     },
     [](const Policy& policy) {
       return WordOf<ErrorRule>(kErrorRules, policy.errors);
     },
     [] { return NamesOf<ErrorRule>(kErrorRules); }},
    {"duplicates",
     [](absl::string_view value, Policy& policy) {
       return SetWord<DuplicateRule>("duplicates", kDuplicateRules, value,
                                     policy.duplicates);
     },
     [](const Policy& policy) {
       return WordOf<DuplicateRule>(kDuplicateRules, policy.duplicates);
     },
     [] { return NamesOf<DuplicateRule>(kDuplicateRules); }},
    {"thinking",
     [](absl::string_view value, Policy& policy) {
       return SetWord<ThinkingRule>("thinking", kThinkingRules, value,
                                    policy.thinking);
     },
     [](const Policy& policy) {
       return WordOf<ThinkingRule>(kThinkingRules, policy.thinking);
     },
     [] { return NamesOf<ThinkingRule>(kThinkingRules); }},
    {"cache_life",
     [](absl::string_view value, Policy& policy) {
       return SetWord<CacheLife>("cache_life", kCacheLives, value,
                                 policy.cache_life);
     },
     [](const Policy& policy) {
       return WordOf<CacheLife>(kCacheLives, policy.cache_life);
     },
     [] { return NamesOf<CacheLife>(kCacheLives); }},
};

constexpr std::int64_t kCountMax = kSessionMessagesMax;
constexpr std::int64_t kMinutesMax = 366 * 24 * 60;

constexpr PolicyField kFields[] = {
    {"keep_observations", &Policy::keep_observations, kKeepObservationsMin,
     kCountMax, "newest observations that are never masked"},
    {"keep_turns", &Policy::keep_turns, 0, kCountMax,
     "newest turns of which no observation is masked"},
    {"keep_tokens", &Policy::keep_tokens, 0, kTokensMax,
     "tokens of the newest observations that are never masked"},
    {"reclaim_tokens_min", &Policy::reclaim_tokens_min, 0, kTokensMax,
     "fewest tokens that a break must remove"},
    {"first_break_percent", &Policy::first_break_percent, 1, 10'000,
     "mode adaptive: rent in percent of its price for a session's first break"},
    {"later_break_percent", &Policy::later_break_percent, 1, 10'000,
     "mode adaptive: rent in percent of its price for later breaks"},
    {"look_ahead_calls", &Policy::look_ahead_calls, 0, 100,
     "mode adaptive: calls that a break may wait for large observations; 0: "
     "none"},
    {"block_size", &Policy::block_size, 1, kCountMax,
     "mode block: eligible observations for a break"},
    {"threshold_tokens", &Policy::threshold_tokens, 1, kTokensMax,
     "mode threshold: tokens of a view above which it is masked"},
    {"low_water_tokens", &Policy::low_water_tokens, 0, kTokensMax,
     "mode threshold: tokens down to which it is masked"},
    {"window_tokens", &Policy::window_tokens, 0, kTokensMax,
     "most tokens of a request; 0: the model's"},
    {"reserve_tokens", &Policy::reserve_tokens, 0, kTokensMax,
     "tokens kept free for the answer; 0: the model's answer limit"},
    {"control_permille", &Policy::control_permille, 0, 1'000,
     "thousandths of the sessions that are never masked, to compare with"},
    {"refetch_session_limit", &Policy::refetch_session_limit, 0, kCountMax,
     "re-fetches in a session after which a tool is no longer masked in it; 0: "
     "none"},
    {"refetch_rate_permille", &Policy::refetch_rate_permille, 0, 1'000,
     "thousandths of a tool's masked observations that may be re-fetched; 0: "
     "as many as pay"},
    {"refetch_samples_min", &Policy::refetch_samples_min, 1, 100'000,
     "masked observations that it takes to judge a tool"},
    {"refetch_confidence_percent", &Policy::refetch_confidence_percent, 50, 99,
     "how sure the judgement on a tool has to be"},
    {"refetch_cool_off_minutes", &Policy::refetch_cool_off_minutes, 1,
     kMinutesMax, "minutes until an unmasked tool is tried again"},
    {"refetch_probe_permille", &Policy::refetch_probe_permille, 1, 1'000,
     "thousandths of the sessions in which it is tried"},
    {"recall_keep_turns", &Policy::recall_keep_turns, 0, kCountMax,
     "turns for which a recalled observation is not masked"},
    {"argument_tokens_min", &Policy::argument_tokens_min, 0, kTokensMax,
     "tokens from which a string in a masked call's arguments is masked; 0: "
     "none"},
};

struct TextField {
  absl::string_view name;
  std::string Policy::* member = nullptr;
  // What stands for something in it.
  absl::string_view parameters;
};

constexpr TextField kTextFields[] = {
    {"placeholder", &Policy::placeholder, "{size} {tokens}"},
    {"error_placeholder", &Policy::error_placeholder, "{size} {tokens}"},
    {"argument_placeholder", &Policy::argument_placeholder, "{tokens}"},
};
constexpr std::size_t kTemplateBytesMax = 200;

struct GlobField {
  absl::string_view name;
  std::vector<std::string> Policy::* member = nullptr;
};

constexpr GlobField kGlobFields[] = {
    {"include", &Policy::include},
    {"exclude", &Policy::exclude},
};
constexpr char kGlobSeparator = '|';

constexpr std::size_t kFieldCount =
    std::size(kWordFields) + std::size(kFields) + std::size(kTextFields) +
    std::size(kGlobFields);

constexpr std::array<absl::string_view, kFieldCount> MakeFieldNames() {
  std::array<absl::string_view, kFieldCount> names;
  std::size_t count = 0;
  for (const WordField& field : kWordFields) names[count++] = field.name;
  for (const PolicyField& field : kFields) names[count++] = field.name;
  for (const TextField& field : kTextFields) names[count++] = field.name;
  for (const GlobField& field : kGlobFields) names[count++] = field.name;
  return names;
}

constexpr std::array<absl::string_view, kFieldCount> kFieldNames =
    MakeFieldNames();

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Refuses `{word}` that would be shown to models as it stands. Other braces may
// be meant.
absl::Status CheckParameters(const TextField& field, absl::string_view value) {
  for (std::size_t open = value.find('{'); open != absl::string_view::npos;
       open = value.find('{', open + 1)) {
    std::size_t end = open + 1;
    while (end < value.size() && IsNameCharacter(value[end])) ++end;
    if (end == open + 1 || end == value.size() || value[end] != '}') continue;
    const absl::string_view parameter = value.substr(open, end - open + 1);
    if (absl::StrContains(field.parameters, parameter)) continue;
    return FieldError(
        field.name,
        absl::StrCat("unknown ", parameter, "; use ",
                     absl::StrReplaceAll(field.parameters, {{" ", ", "}})));
  }
  return absl::OkStatus();
}

// Providers refuse text that is empty or blank, and all that is not UTF-8.
absl::Status CheckTemplate(const TextField& field, absl::string_view value) {
  if (value.size() > kTemplateBytesMax ||
      absl::StripAsciiWhitespace(value).empty()) {
    return FieldError(field.name,
                      absl::StrCat("expected 1 to ", kTemplateBytesMax,
                                   " bytes, not all of them blank"));
  }
  if (!IsUtf8(value)) return FieldError(field.name, "not valid UTF-8");
  return CheckParameters(field, value);
}

absl::Status SetNumber(const PolicyField& field, absl::string_view value,
                       Policy& policy) {
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < field.min ||
      number > field.max) {
    return FieldError(field.name,
                      absl::StrCat("expected a whole number from ", field.min,
                                   " to ", field.max, ", got \"", value, "\""));
  }
  policy.*field.member = number;
  return absl::OkStatus();
}

absl::Status SetGlobs(const GlobField& field, absl::string_view value,
                      Policy& policy) {
  std::vector<std::string> globs;
  if (!value.empty()) globs = absl::StrSplit(value, kGlobSeparator);
  for (const std::string& glob : globs) {
    CLERESTORY_RETURN_IF_ERROR(CheckGlob(field.name, glob));
  }
  policy.*field.member = std::move(globs);
  return absl::OkStatus();
}

// The entry of `table` called `name`, or null.
template <typename Field>
const Field* Find(std::span<const Field> table, absl::string_view name) {
  const auto at =
      std::find_if(table.begin(), table.end(),
                   [&](const Field& field) { return field.name == name; });
  return at == table.end() ? nullptr : &*at;
}

}  // namespace

std::span<const PolicyField> PolicyFields() { return kFields; }

std::span<const absl::string_view> PolicyFieldNames() { return kFieldNames; }

absl::Status SetPolicyField(absl::string_view name, absl::string_view value,
                            Policy& policy) {
  if (const auto* field = Find<WordField>(kWordFields, name)) {
    return field->set(value, policy);
  }
  if (const auto* field = Find<PolicyField>(kFields, name)) {
    return SetNumber(*field, value, policy);
  }
  if (const auto* field = Find<TextField>(kTextFields, name)) {
    CLERESTORY_RETURN_IF_ERROR(CheckTemplate(*field, value));
    policy.*field->member = std::string(value);
    return absl::OkStatus();
  }
  if (const auto* field = Find<GlobField>(kGlobFields, name)) {
    return SetGlobs(*field, value, policy);
  }
  return FieldError(name, absl::StrCat("no such field of a policy; use ",
                                       absl::StrJoin(kFieldNames, ", ")));
}

std::string PolicyFieldText(absl::string_view name, const Policy& policy) {
  if (const auto* field = Find<WordField>(kWordFields, name)) {
    return field->text(policy);
  }
  if (const auto* field = Find<PolicyField>(kFields, name)) {
    return absl::StrCat(policy.*field->member);
  }
  if (const auto* field = Find<TextField>(kTextFields, name)) {
    return policy.*field->member;
  }
  const auto* field = Find<GlobField>(kGlobFields, name);
  CLERESTORY_CHECK(field != nullptr);
  return absl::StrJoin(policy.*field->member,
                       absl::string_view(&kGlobSeparator, 1));
}

std::vector<absl::string_view> PolicyFieldWords(absl::string_view name) {
  const auto* field = Find<WordField>(kWordFields, name);
  return field == nullptr ? std::vector<absl::string_view>() : field->words();
}

absl::StatusOr<Policy> ParsePolicy(absl::string_view text) {
  Policy policy;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (const Preset* preset = FindPreset(parts[0])) {
    policy = preset->policy;
  } else {
    std::vector<absl::string_view> known = PolicyFieldWords("mode");
    for (const Preset& each : Presets()) known.push_back(each.name);
    if (!SetPolicyField("mode", parts[0], policy).ok()) {
      return FieldError("mode",
                        absl::StrCat("unknown value \"", parts[0], "\"; use ",
                                     absl::StrJoin(known, ", ")));
    }
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::vector<absl::string_view> pair =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    if (pair.size() != 2) {
      return FieldError(parts[i], "expected name=value");
    }
    CLERESTORY_RETURN_IF_ERROR(SetPolicyField(pair[0], pair[1], policy));
  }
  CLERESTORY_RETURN_IF_ERROR(CheckPolicy(policy));
  return policy;
}

absl::string_view ModeName(Mode mode) {
  const auto* word = std::find_if(
      std::begin(kModes), std::end(kModes),
      [&](const Word<Mode>& known) { return known.value == mode; });
  return word == std::end(kModes) ? "unknown" : word->name;
}

std::string PolicyDigest(const Policy& policy) {
  // Each with its size, since a text may hold what looks like the next field.
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&text, name, "=", value.size(), ":", value, "\n");
  };
  for (const absl::string_view name : kFieldNames) {
    if (const auto* field = Find<GlobField>(kGlobFields, name)) {
      for (const std::string& glob : policy.*field->member) add(name, glob);
    } else {
      add(name, PolicyFieldText(name, policy));
    }
  }
  for (const ToolRule& rule : policy.tools) {
    add("tool", rule.tool);
    add("never_mask", rule.is_never_masked ? "true" : "false");
    add("keep_observations", absl::StrCat(rule.keep_observations));
    const ToolAccess& access = rule.access;
    if (access == ToolAccess()) continue;
    add("class", access.access_class.has_value()
                     ? AccessClassName(*access.access_class)
                     : "");
    add("resource", access.resource_argument);
    add("first", access.first_line_argument);
    add("last", access.last_line_argument);
    add("count", access.line_count_argument);
  }
  return Digest::Of(text).ToHex().substr(0, 16);
}

}  // namespace clerestory
