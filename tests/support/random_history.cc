// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/formats/recall_tool.h"
#include "server/model/message.h"
#include "tests/support/messages.h"
#include "tests/support/random_session.h"

namespace clerestory {
namespace {

// Pieces of the inside of a JSON string: words, wide letters, and every kind of
// escape.
constexpr absl::string_view kPieces[] = {
    "error: ", "0x7f",    "void f() {}", "\\n",       "\\t",
    "\\\"",    "\\\\",    "\\/",         "caf\u00e9", "\\u00e9",
    "漢字",    "パス",    "한국어",      "😀",        "\\ud83d\\ude00",
    " ",       "\\u0000", "path/to",     ", ",        "</tool>"};

}  // namespace

RandomHistory::RandomHistory(const RandomHistoryOptions& options,
                             Random& random)
    : options_(options), random_(random) {}

std::string RandomHistory::Text(std::int64_t size) {
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < size) {
    const auto piece =
        random_.Between(0, static_cast<std::int64_t>(std::size(kPieces)) - 1);
    absl::StrAppend(&text, kPieces[piece]);
    // Most of a large text is plain.
    if (size > 1'000) text.append(static_cast<std::size_t>(size / 20), 'x');
  }
  return text;
}

bool RandomHistory::Marks(std::int64_t one_in) {
  if (!random_.OneIn(one_in)) return false;
  // No provider takes more than four.
  return ++mark_count_ <= 4 || !options_.is_valid;
}

std::string RandomHistory::Respell(absl::string_view json) {
  std::string spelled;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const bool ends = c == '}' || c == ']';
    if (!in_string && ends && random_.OneIn(8)) spelled.push_back(' ');
    spelled.push_back(c);
    if (in_string && c == '\\') {
      spelled.push_back(json[++i]);
    } else if (c == '"') {
      in_string = !in_string;
      const char next = i + 1 < json.size() ? json[i + 1] : '"';
      if (in_string && absl::ascii_isalpha(static_cast<unsigned char>(next)) &&
          random_.OneIn(12)) {
        absl::StrAppend(&spelled, absl::StrFormat("\\u%04x", next));
        ++i;
      }
    } else if (!in_string && (c == '{' || c == '[' || c == ',' || c == ':') &&
               random_.OneIn(8)) {
      spelled.append(random_.OneIn(2) ? " " : "\n\t");
    }
  }
  return spelled;
}

std::string RandomHistory::Part(absl::string_view text) {
  const absl::string_view mark =
      Marks(8) ? R"(,"cache_control":{"ttl":"1h","type":"ephemeral"})" : "";
  return absl::StrCat(random_.OneIn(2) ? R"({"type":"text","text":"x)"
                                       : R"({ "type" : "text" , "text":"x)",
                      text, "\"", mark, "}");
}

std::string RandomHistory::Image() {
  if (is_anthropic()) return ImageBlock();
  return R"({"type":"image_url","image_url":{"url":"https://example.com/i"}})";
}

std::string RandomHistory::Arguments() {
  if (options_.repeats && random_.OneIn(2)) {
    return absl::StrCat(R"({"path":"x)", random_.Between(1, 3), R"("})");
  }
  return absl::StrCat(R"({"path":"x)", Text(random_.Size(100)), R"("})");
}

// The content of a result of the two formats that agree about texts.
std::string RandomHistory::Content() {
  if (!options_.repeats) return NewContent();
  if (!contents_.empty() && random_.OneIn(3)) {
    return contents_[static_cast<std::size_t>(
        random_.Between(0, static_cast<std::int64_t>(contents_.size()) - 1))];
  }
  std::string content = NewContent();
  // A cache mark is not repeated: no provider takes more than four.
  if (!absl::StrContains(content, "cache_control")) {
    contents_.push_back(content);
  }
  return content;
}

std::string RandomHistory::NewContent() {
  const std::int64_t size = random_.Size(options_.result_size_max);
  switch (random_.Between(0, 9)) {
    case 0:
      return R"("")";
    case 1:
      return R"("ok")";
    case 2:
      return absl::StrCat("[", Part(Text(size)), "]");
    case 3:
      return absl::StrCat("[ ", Part(Text(size / 2)), ",\n", Part(Text(size)),
                          " ]");
    case 4:
      if (!options_.has_images) break;
      return absl::StrCat("[", Part(Text(size)), ",", Image(), "]");
    case 5:
      if (!options_.has_images) break;
      return absl::StrCat("[", Image(), "]");
    case 6:
      if (!is_anthropic()) break;
      return R"([{"type":"tool_reference","tool_name":"grep_the_whole_tree"}])";
    default:
      break;
  }
  return absl::StrCat("\"", Text(size), "\"");
}

std::string RandomHistory::ChatResult(const std::string& id) {
  const std::string content = Content();
  if (random_.OneIn(3)) {
    return absl::StrCat(R"({"content":)", content, R"(, "tool_call_id":")", id,
                        R"(","role":"tool")",
                        options_.has_unknown ? R"(,"x":1.50e+3})" : "}");
  }
  return ResultMessages(options_.format, {{.id = id, .content = content}})[0];
}

std::string RandomHistory::AnthropicResult(const std::string& id) {
  const std::string content = Content();
  const absl::string_view error = random_.OneIn(6) ? R"(,"is_error":true)" : "";
  if (random_.OneIn(12)) {
    return absl::StrCat(R"({"type":"tool_result","tool_use_id":")", id, "\"}");
  }
  if (random_.OneIn(3)) {
    return absl::StrCat(
        R"({ "content" : )", content,
        Marks(2) ? R"(,"cache_control":{"type":"ephemeral"})" : "",
        R"(,"tool_use_id":")", id, R"(","type":"tool_result")", error, "}");
  }
  return absl::StrCat(R"({"type":"tool_result","tool_use_id":")", id, "\"",
                      error, R"(,"content":)", content, "}");
}

void RandomHistory::AddResults(std::vector<RandomCall> calls,
                               absl::string_view text,
                               std::vector<std::string>& messages) {
  // Without ids their order tells results apart.
  for (std::size_t i = is_gemini() ? 1 : calls.size(); i > 1; --i) {
    std::swap(calls[i - 1], calls[static_cast<std::size_t>(random_.Between(
                                0, static_cast<std::int64_t>(i) - 1))]);
  }
  std::vector<std::string> parts;
  for (const RandomCall& call : calls) parts.push_back(Result(call));
  if (has_items() && !calls.empty()) {
    messages.insert(messages.end(), parts.begin(), parts.end());
    parts.clear();
  }
  if (is_anthropic() && !calls.empty()) {
    if (random_.OneIn(8)) parts.push_back(TextBlock("go on"));
    if (random_.OneIn(12) && options_.has_unknown) {
      parts.emplace_back(R"({"type":"from_the_future","n":1})");
    }
    if (options_.has_images && random_.OneIn(30)) parts.push_back(ImageBlock());
    // What the provider takes together may come in two messages.
    if (parts.size() > 1 && random_.OneIn(8)) {
      messages.push_back(AnthropicUser({parts[0]}));
      parts.erase(parts.begin());
    }
    messages.push_back(AnthropicUser(parts));
    parts.clear();
  }
  if (is_gemini() || is_converse()) {
    AddUserParts(std::move(parts), text, messages);
  } else if (!text.empty()) {
    messages.push_back(Finish(UserMessage(options_.format, text)));
  }
}

// In Converse a text has to stand in the message with the results.
void RandomHistory::AddUserParts(std::vector<std::string> parts,
                                 absl::string_view text,
                                 std::vector<std::string>& messages) {
  const std::string key = is_gemini() ? "parts" : "content";
  const bool joins = is_converse() || (random_.OneIn(2) && options_.is_valid);
  if (!parts.empty() && options_.has_images && random_.OneIn(12)) {
    parts.push_back(MediaPart());
  }
  if (is_converse() && !parts.empty() && Marks(6)) {
    parts.emplace_back(R"({"cachePoint":{"type":"default","ttl":"1h"}})");
  }
  if (joins && !text.empty()) {
    parts.push_back(absl::StrCat(R"({"text":)", Literal(text), "}"));
  }
  if (!parts.empty()) {
    messages.push_back(Finish(absl::StrCat(
        random_.OneIn(2) ? R"({"role":"user",")" : R"({ "role" : "user", ")",
        key, R"(":[)", absl::StrJoin(parts, ","), "]}")));
  }
  if (!joins && !text.empty()) {
    messages.push_back(Finish(UserMessage(options_.format, text)));
  }
}

void RandomHistory::AddAssistant(const std::vector<RandomCall>& calls,
                                 std::vector<std::string>& messages) {
  std::string text =
      calls.empty() || random_.OneIn(2) ? "x" + Text(random_.Size(300)) : "";
  std::vector<CallSpec> specs;
  for (const RandomCall& call : calls) {
    specs.push_back(
        {.id = call.id, .tool = call.tool, .arguments = Arguments()});
  }
  const bool thinks =
      options_.has_thinking && random_.OneIn(options_.thinking_one_in);
  if (thinks && options_.has_lone_thinking && calls.empty() &&
      random_.OneIn(2)) {
    text.clear();
  }
  if (options_.format == Format::kOpenaiResponses) {
    AddItems(calls, text, specs, thinks, messages);
    return;
  }
  if (is_gemini() || is_converse()) {
    messages.push_back(Finish(PartsOf(text, specs, thinks)));
    return;
  }
  if (!thinks || !is_anthropic()) {
    // The text is the inside of a literal already; what it shows is as good.
    messages.push_back(AssistantMessage(options_.format, text, specs));
    return;
  }
  std::vector<std::string> blocks = {Thinking()};
  if (!text.empty()) blocks.push_back(TextBlock(text));
  for (const CallSpec& call : specs) {
    blocks.push_back(absl::StrCat(R"({"type":"tool_use","id":")", call.id,
                                  R"(","name":"read","input":)", call.arguments,
                                  "}"));
  }
  messages.push_back(AnthropicAssistant(blocks));
}

std::string RandomHistory::Thinking() {
  const std::int64_t n = item_count_++;
  if (is_converse()) {
    return absl::StrCat(R"({"reasoningContent":{"reasoningText":)",
                        R"({"text":"hm","signature":"Eq)", n, R"("}}})");
  }
  if (n % 4 == 3) {
    return absl::StrCat(R"({"type":"redacted_thinking","data":"Eq)", n,
                        R"("})");
  }
  return absl::StrCat(R"({"type":"thinking","thinking":"hm","signature":"Eq)",
                      n, R"("})");
}

RandomHistory::RandomCall RandomHistory::NewCall(std::int64_t index) {
  constexpr absl::string_view kKinds[] = {
      "function_call",    "function_call", "function_call",
      "custom_tool_call", "shell_call",    "local_shell_call",
      "apply_patch_call", "computer_call"};
  RandomCall call;
  call.index = index;
  // Some servers number the calls of each turn from 0.
  call.id = random_.OneIn(is_gemini() ? 3 : 10)
                ? absl::StrCat("call_", index)
                : absl::StrCat("c", call_count_++);
  if (is_gemini() && random_.OneIn(2)) call.id.clear();
  call.tool = random_.OneIn(2) ? "read" : "bash";
  if (options_.has_recall_tool && random_.OneIn(4)) {
    call.tool = std::string(kRecallToolName);
  }
  call.kind = "function_call";
  if (options_.format == Format::kOpenaiResponses) {
    call.kind =
        std::string(kKinds[random_.Between(0, options_.has_images ? 7 : 6)]);
  }
  return call;
}

std::vector<std::string> RandomHistory::NextStep() {
  std::vector<std::string> messages;
  if (!begun_) {
    begun_ = true;
    if (has_items()) {
      messages.emplace_back(R"({"role":"system","content":"be brief"})");
    }
    messages.push_back(UserMessage(options_.format, "x" + Text(50)));
    return messages;
  }
  std::vector<RandomCall> calls;
  const std::int64_t count =
      random_.OneIn(3) ? random_.Between(0, 5) : random_.Between(0, 1);
  for (std::int64_t i = 0; i < count; ++i) calls.push_back(NewCall(i));
  AddAssistant(calls, messages);
  std::vector<RandomCall> now = calls;
  if (!options_.is_valid) {
    now.clear();
    for (const RandomCall& call : calls) {
      (random_.OneIn(4) ? unanswered_ : now).push_back(call);
    }
    if (!unanswered_.empty() && random_.OneIn(3)) {
      now.push_back(unanswered_.back());  // Late.
      unanswered_.pop_back();
    }
    if (!answered_.empty() && random_.OneIn(6)) now.push_back(answered_.back());
    answered_.insert(answered_.end(), now.begin(), now.end());
  }
  std::string text;
  if (count == 0 || random_.OneIn(10)) text = "x" + Text(random_.Size(800));
  AddResults(std::move(now), text, messages);
  return messages;
}

}  // namespace clerestory
