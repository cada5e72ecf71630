// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/digest.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/base/utf8.h"

namespace clerestory {
namespace {

struct ModeRule {
  absl::string_view name;
  Mode mode = Mode::kOff;
};

constexpr ModeRule kModes[] = {
    {"off", Mode::kOff},
    {"adaptive", Mode::kAdaptive},
    {"block", Mode::kBlock},
    {"threshold", Mode::kThreshold},
    {"every_turn", Mode::kEveryTurn},
    {"delegate", Mode::kDelegate},
};

struct ErrorName {
  absl::string_view name;
  ErrorRule rule = ErrorRule::kMask;
};

constexpr ErrorName kErrorRules[] = {
    {"keep", ErrorRule::kKeep},
    {"mask", ErrorRule::kMask},
    {"drop", ErrorRule::kDrop},
};

// The rule that the default one departs from, by its name in the literature.
constexpr absl::string_view kRentOrBuy = "rent_or_buy";

constexpr std::int64_t kCountMax = kSessionMessagesMax;

constexpr PolicyField kFields[] = {
    {"keep_observations", &Policy::keep_observations, kKeepObservationsMin,
     kCountMax, "newest observations that are never masked"},
    {"keep_turns", &Policy::keep_turns, 0, kCountMax,
     "newest turns of which no observation is masked"},
    {"reclaim_tokens_min", &Policy::reclaim_tokens_min, 0, kTokensMax,
     "fewest tokens that a break must remove"},
    {"first_break_percent", &Policy::first_break_percent, 1, 10'000,
     "mode adaptive: rent in percent of its price for a session's first break"},
    {"later_break_percent", &Policy::later_break_percent, 1, 10'000,
     "mode adaptive: rent in percent of its price for later breaks"},
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
    {"argument_tokens_min", &Policy::argument_tokens_min, 0, kTokensMax,
     "tokens from which a string in a masked call's arguments is masked; 0: "
     "none"},
};

struct TextField {
  absl::string_view name;
  std::string Policy::* member = nullptr;
};

constexpr TextField kTextFields[] = {
    {"placeholder", &Policy::placeholder},
    {"error_placeholder", &Policy::error_placeholder},
    {"argument_placeholder", &Policy::argument_placeholder},
};
constexpr std::size_t kTemplateBytesMax = 200;

// Providers refuse text that is empty or blank, and all that is not UTF-8.
absl::Status CheckTemplate(absl::string_view name, absl::string_view value) {
  if (value.size() > kTemplateBytesMax ||
      absl::StripAsciiWhitespace(value).empty()) {
    return FieldError(name, absl::StrCat("expected 1 to ", kTemplateBytesMax,
                                         " bytes, not all of them blank"));
  }
  if (!IsUtf8(value)) return FieldError(name, "not valid UTF-8");
  return absl::OkStatus();
}

absl::Status SetMode(absl::string_view value, Policy& policy) {
  std::string known;
  for (const ModeRule& rule : kModes) {
    if (rule.name == value) {
      policy.mode = rule.mode;
      return absl::OkStatus();
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", rule.name);
  }
  return FieldError("mode",
                    absl::StrCat("unknown value \"", value, "\"; use ", known));
}

absl::Status SetErrorRule(absl::string_view value, Policy& policy) {
  for (const ErrorName& rule : kErrorRules) {
    if (rule.name != value) continue;
    policy.errors = rule.rule;
    return absl::OkStatus();
  }
  return FieldError("errors", absl::StrCat("unknown value \"", value,
                                           "\"; use keep, mask, drop"));
}

absl::string_view ErrorRuleName(ErrorRule rule) {
  for (const ErrorName& known : kErrorRules) {
    if (known.rule == rule) return known.name;
  }
  return "unknown";
}

}  // namespace

std::span<const PolicyField> PolicyFields() { return kFields; }

absl::Status SetPolicyField(absl::string_view name, absl::string_view value,
                            Policy& policy) {
  if (name == "mode") return SetMode(value, policy);
  if (name == "errors") return SetErrorRule(value, policy);
  for (const TextField& field : kTextFields) {
    if (field.name != name) continue;
    CLERESTORY_RETURN_IF_ERROR(CheckTemplate(name, value));
    policy.*field.member = std::string(value);
    return absl::OkStatus();
  }
  std::string known = "mode, errors";
  for (const PolicyField& field : kFields) {
    absl::StrAppend(&known, ", ", field.name);
    if (field.name != name) continue;
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number < field.min ||
        number > field.max) {
      return FieldError(
          name, absl::StrCat("expected a whole number from ", field.min, " to ",
                             field.max, ", got \"", value, "\""));
    }
    policy.*field.member = number;
    return absl::OkStatus();
  }
  return FieldError(name, absl::StrCat("no such field of a policy; use ", known,
                                       ", placeholder, error_placeholder, "
                                       "argument_placeholder"));
}

absl::Status CheckPolicy(const Policy& policy) {
  if (policy.mode == Mode::kThreshold &&
      policy.low_water_tokens > policy.threshold_tokens) {
    return FieldError("low_water_tokens", "above threshold_tokens");
  }
  if (policy.window_tokens > 0 &&
      policy.reserve_tokens >= policy.window_tokens) {
    return FieldError("reserve_tokens", "leaves nothing of window_tokens");
  }
  return absl::OkStatus();
}

absl::StatusOr<Policy> ParsePolicy(absl::string_view text) {
  Policy policy;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts[0] == kRentOrBuy) {
    policy.first_break_percent = 100;
    policy.later_break_percent = 100;
  } else {
    CLERESTORY_RETURN_IF_ERROR(SetMode(parts[0], policy));
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
  for (const ModeRule& rule : kModes) {
    if (rule.mode == mode) return rule.name;
  }
  return "unknown";
}

std::string PolicyDigest(const Policy& policy) {
  std::string text = absl::StrCat("mode=", ModeName(policy.mode),
                                  "\nerrors=", ErrorRuleName(policy.errors));
  for (const PolicyField& field : kFields) {
    absl::StrAppend(&text, "\n", field.name, "=", policy.*field.member);
  }
  // With its size, since a template may hold what looks like the next field.
  for (const TextField& field : kTextFields) {
    const std::string& value = policy.*field.member;
    absl::StrAppend(&text, "\n", field.name, "=", value.size(), ":", value);
  }
  return Digest::Of(text).ToHex().substr(0, 16);
}

}  // namespace clerestory
