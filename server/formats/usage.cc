// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/usage.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

using Count = std::optional<std::int64_t>;

constexpr Count Usage::* kClasses[] = {
    &Usage::input_uncached, &Usage::cache_read, &Usage::cache_write,
    &Usage::output,         &Usage::reasoning,
};

absl::Status InvalidUsage(absl::string_view field, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kUsageInvalid,
                   absl::StrCat(field, ": ", what),
                   {{"field", std::string(field)}});
}

absl::Status CheckCount(const Count& count, absl::string_view field) {
  if (!count.has_value() || (*count >= 0 && *count <= kTokensMax)) {
    return absl::OkStatus();
  }
  return InvalidUsage(
      field, absl::StrCat("expected a whole number from 0 to ", kTokensMax));
}

bool IsAbsent(const json::Value& value) {
  return !value.exists() || value.is(json::Kind::kNull);
}

// An object of the usage, and what it is called in errors.
struct Part {
  json::Value object;
  std::string path;
};

absl::StatusOr<Count> CountAt(const Part& part, absl::string_view name) {
  const json::Value value = part.object[name];
  if (IsAbsent(value)) return Count();
  // What is no integer of 64 bits is out of range too.
  const Count count = value.integer().value_or(-1);
  CLERESTORY_RETURN_IF_ERROR(
      CheckCount(count, absl::StrCat(part.path, ".", name)));
  return count;
}

// The object `name`; one without members if it is absent.
absl::StatusOr<Part> PartAt(const Part& part, absl::string_view name) {
  Part child{.object = part.object[name],
             .path = absl::StrCat(part.path, ".", name)};
  if (!IsAbsent(child.object) && !child.object.is_object()) {
    return InvalidUsage(child.path, "expected an object");
  }
  return child;
}

absl::StatusOr<Count> CountAt(const Part& part, absl::string_view object,
                              absl::string_view name) {
  CLERESTORY_ASSIGN_OR_RETURN(const Part child, PartAt(part, object));
  return CountAt(child, name);
}

// The sum of both, absent if both are.
Count Sum(const Count& a, const Count& b) {
  if (!a.has_value()) return b;
  return *a + b.value_or(0);
}

// --- Anthropic (anthropic-sdk-python, types/usage.py, 2026-08) ---------------

absl::StatusOr<Count> CacheCreation(const Part& part) {
  CLERESTORY_ASSIGN_OR_RETURN(const Count total,
                              CountAt(part, "cache_creation_input_tokens"));
  if (total.has_value()) return total;
  CLERESTORY_ASSIGN_OR_RETURN(const Part by_ttl,
                              PartAt(part, "cache_creation"));
  CLERESTORY_ASSIGN_OR_RETURN(const Count five_minutes,
                              CountAt(by_ttl, "ephemeral_5m_input_tokens"));
  CLERESTORY_ASSIGN_OR_RETURN(const Count one_hour,
                              CountAt(by_ttl, "ephemeral_1h_input_tokens"));
  const Count sum = Sum(five_minutes, one_hour);
  CLERESTORY_RETURN_IF_ERROR(CheckCount(sum, by_ttl.path));
  return sum;
}

// The usage as a whole, or one of its iterations.
absl::StatusOr<Usage> AnthropicPart(const Part& part) {
  Usage usage;
  CLERESTORY_ASSIGN_OR_RETURN(usage.input_uncached,
                              CountAt(part, "input_tokens"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_read,
                              CountAt(part, "cache_read_input_tokens"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_write, CacheCreation(part));
  CLERESTORY_ASSIGN_OR_RETURN(usage.output, CountAt(part, "output_tokens"));
  CLERESTORY_ASSIGN_OR_RETURN(
      usage.reasoning,
      CountAt(part, "output_tokens_details", "thinking_tokens"));
  return usage;
}

// Adds the iterations. A class that none of them tells is taken from the whole.
absl::StatusOr<Usage> AnthropicUsage(const Part& part) {
  CLERESTORY_ASSIGN_OR_RETURN(const Usage whole, AnthropicPart(part));
  const json::Value iterations = part.object["iterations"];
  if (IsAbsent(iterations)) return whole;
  const std::string path = absl::StrCat(part.path, ".iterations");
  if (!iterations.is_array()) return InvalidUsage(path, "expected an array");
  Usage sum;
  std::size_t index = 0;
  for (const json::Value& iteration : iterations.children()) {
    const Part child{.object = iteration,
                     .path = absl::StrCat(path, "[", index, "]")};
    if (!iteration.is_object()) {
      return InvalidUsage(child.path, "expected an object");
    }
    CLERESTORY_ASSIGN_OR_RETURN(const Usage usage, AnthropicPart(child));
    for (const auto member : kClasses) {
      sum.*member = Sum(sum.*member, usage.*member);
      CLERESTORY_RETURN_IF_ERROR(CheckCount(sum.*member, path));
    }
    ++index;
  }
  for (const auto member : kClasses) {
    if (!(sum.*member).has_value()) sum.*member = whole.*member;
  }
  return sum;
}

// --- OpenAI (openai-python, types/completion_usage.py and
// types/responses/response_usage.py, 2026-08)
// -----------------------------------

// How the tokens of a request and of its answer are called: their details have
// the same names.
struct OpenaiNames {
  absl::string_view input;
  absl::string_view output;
};

constexpr OpenaiNames kChatNames = {"prompt_tokens", "completion_tokens"};
constexpr OpenaiNames kResponsesNames = {"input_tokens", "output_tokens"};

// What of `input`, which is `part[name]`, was neither read from a cache nor
// written to it.
absl::StatusOr<Count> Uncached(const Part& part, absl::string_view name,
                               const Count& input, const Usage& usage) {
  if (!input.has_value()) return Count();
  const std::int64_t uncached =
      *input - usage.cache_read.value_or(0) - usage.cache_write.value_or(0);
  if (uncached < 0) {
    return InvalidUsage(absl::StrCat(part.path, ".", name),
                        "fewer than the cached and written ones among them");
  }
  return Count(uncached);
}

absl::StatusOr<Usage> OpenaiUsage(const Part& part, const OpenaiNames& names) {
  Usage usage;
  CLERESTORY_ASSIGN_OR_RETURN(const Count input, CountAt(part, names.input));
  CLERESTORY_ASSIGN_OR_RETURN(
      const Part details, PartAt(part, absl::StrCat(names.input, "_details")));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_read,
                              CountAt(details, "cached_tokens"));
  if (!usage.cache_read.has_value()) {
    // Where Anthropic's endpoint for OpenAI's clients has it.
    CLERESTORY_ASSIGN_OR_RETURN(usage.cache_read,
                                CountAt(part, "cached_tokens"));
  }
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_write,
                              CountAt(details, "cache_write_tokens"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.input_uncached,
                              Uncached(part, names.input, input, usage));
  CLERESTORY_ASSIGN_OR_RETURN(usage.output, CountAt(part, names.output));
  CLERESTORY_ASSIGN_OR_RETURN(
      usage.reasoning, CountAt(part, absl::StrCat(names.output, "_details"),
                               "reasoning_tokens"));
  return usage;
}

// --- Gemini (python-genai, types.py, usageMetadata, and
// _gaos/types/interactions/usage.py, 2026-08) ---------------------------------

// The count `camel`, or `snake` as the client library spells it.
absl::StatusOr<Count> CountAtEither(const Part& part, absl::string_view camel,
                                    absl::string_view snake) {
  return CountAt(part, IsAbsent(part.object[camel]) ? snake : camel);
}

// The same counts as the Interactions API calls them.
constexpr absl::string_view kInteractionsInput = "total_input_tokens";
constexpr absl::string_view kInteractionsOutput = "total_output_tokens";

bool IsOfInteractions(const Part& part) {
  return !IsAbsent(part.object[kInteractionsInput]) ||
         !IsAbsent(part.object[kInteractionsOutput]);
}

absl::StatusOr<Usage> InteractionsUsage(const Part& part) {
  Usage usage;
  CLERESTORY_ASSIGN_OR_RETURN(const Count input,
                              CountAt(part, kInteractionsInput));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_read,
                              CountAt(part, "total_cached_tokens"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.input_uncached,
                              Uncached(part, kInteractionsInput, input, usage));
  CLERESTORY_ASSIGN_OR_RETURN(const Count output,
                              CountAt(part, kInteractionsOutput));
  CLERESTORY_ASSIGN_OR_RETURN(usage.reasoning,
                              CountAt(part, "total_thought_tokens"));
  usage.output = Sum(output, usage.reasoning);
  CLERESTORY_RETURN_IF_ERROR(CheckCount(
      usage.output, absl::StrCat(part.path, ".", kInteractionsOutput)));
  return usage;
}

// The prompt holds what was cached and not what tools brought; the candidates
// leave out the thoughts.
absl::StatusOr<Usage> GeminiUsage(const Part& part) {
  if (IsOfInteractions(part)) return InteractionsUsage(part);
  Usage usage;
  CLERESTORY_ASSIGN_OR_RETURN(
      const Count prompt,
      CountAtEither(part, "promptTokenCount", "prompt_token_count"));
  CLERESTORY_ASSIGN_OR_RETURN(const Count tools,
                              CountAtEither(part, "toolUsePromptTokenCount",
                                            "tool_use_prompt_token_count"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_read,
                              CountAtEither(part, "cachedContentTokenCount",
                                            "cached_content_token_count"));
  CLERESTORY_ASSIGN_OR_RETURN(
      usage.input_uncached,
      Uncached(part, "promptTokenCount", Sum(prompt, tools), usage));
  CLERESTORY_ASSIGN_OR_RETURN(
      const Count candidates,
      CountAtEither(part, "candidatesTokenCount", "candidates_token_count"));
  CLERESTORY_ASSIGN_OR_RETURN(
      usage.reasoning,
      CountAtEither(part, "thoughtsTokenCount", "thoughts_token_count"));
  usage.output = Sum(candidates, usage.reasoning);
  CLERESTORY_RETURN_IF_ERROR(CheckCount(
      usage.input_uncached, absl::StrCat(part.path, ".promptTokenCount")));
  CLERESTORY_RETURN_IF_ERROR(CheckCount(
      usage.output, absl::StrCat(part.path, ".candidatesTokenCount")));
  return usage;
}

// --- Bedrock (botocore, bedrock-runtime, TokenUsage, 2026-08) ----------------

// What was written by the lives of the cache, where their sum is not told.
absl::StatusOr<Count> CacheDetails(const Part& part) {
  const json::Value details = part.object["cacheDetails"];
  if (IsAbsent(details)) return Count();
  const std::string path = absl::StrCat(part.path, ".cacheDetails");
  if (!details.is_array()) return InvalidUsage(path, "expected an array");
  Count sum;
  std::size_t index = 0;
  for (const json::Value& detail : details.children()) {
    const Part child{.object = detail,
                     .path = absl::StrCat(path, "[", index, "]")};
    if (!detail.is_object()) {
      return InvalidUsage(child.path, "expected an object");
    }
    CLERESTORY_ASSIGN_OR_RETURN(const Count count,
                                CountAt(child, "inputTokens"));
    sum = Sum(sum, count);
    CLERESTORY_RETURN_IF_ERROR(CheckCount(sum, path));
    ++index;
  }
  return sum;
}

// The input leaves out what was cached, as Anthropic's does.
absl::StatusOr<Usage> BedrockUsage(const Part& part) {
  Usage usage;
  CLERESTORY_ASSIGN_OR_RETURN(usage.input_uncached,
                              CountAt(part, "inputTokens"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_read,
                              CountAt(part, "cacheReadInputTokens"));
  CLERESTORY_ASSIGN_OR_RETURN(usage.cache_write,
                              CountAt(part, "cacheWriteInputTokens"));
  if (!usage.cache_write.has_value()) {
    CLERESTORY_ASSIGN_OR_RETURN(usage.cache_write, CacheDetails(part));
  }
  CLERESTORY_ASSIGN_OR_RETURN(usage.output, CountAt(part, "outputTokens"));
  return usage;
}

}  // namespace

absl::StatusOr<Usage> ParseUsage(Format format, absl::string_view json) {
  CLERESTORY_CHECK(format != Format::kUnspecified);
  // Down to iterations[].cache_creation.ephemeral_5m_input_tokens.
  const absl::StatusOr<json::Document> document =
      json::Document::Parse(json, {.depth_max = kJsonDepthMax,
                                   .tree_depth = 5,
                                   .tree_size_max = kJsonValuesMax});
  if (!document.ok()) {
    return InvalidUsage("usage", document.status().message());
  }
  const Part root{.object = document->root(), .path = "usage"};
  if (!root.object.is_object()) {
    return InvalidUsage(root.path, "expected a JSON object");
  }
  switch (format) {
    case Format::kUnspecified:
    case Format::kAnthropicMessages:
      break;
    case Format::kOpenaiChat:
      return OpenaiUsage(root, kChatNames);
    case Format::kOpenaiResponses:
      return OpenaiUsage(root, kResponsesNames);
    case Format::kGemini:
      return GeminiUsage(root);
    case Format::kBedrockConverse:
      return BedrockUsage(root);
  }
  return AnthropicUsage(root);
}

absl::Status CheckUsage(const Usage& usage) {
  CLERESTORY_RETURN_IF_ERROR(
      CheckCount(usage.input_uncached, "usage.input_uncached_tokens"));
  CLERESTORY_RETURN_IF_ERROR(
      CheckCount(usage.cache_read, "usage.cache_read_tokens"));
  CLERESTORY_RETURN_IF_ERROR(
      CheckCount(usage.cache_write, "usage.cache_write_tokens"));
  CLERESTORY_RETURN_IF_ERROR(CheckCount(usage.output, "usage.output_tokens"));
  return CheckCount(usage.reasoning, "usage.reasoning_tokens");
}

}  // namespace clerestory
