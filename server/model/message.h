// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_MESSAGE_H_
#define CLERESTORY_SERVER_MODEL_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace clerestory {

// The bytes of one message, shared by the history and the views that contain
// it, and never changed.
using Bytes = std::shared_ptr<const std::string>;

// A part of a message: `size` bytes from `offset`.
struct ByteSpan {
  std::size_t offset = 0;
  std::size_t size = 0;

  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

// The wire formats of the providers, one to a session. The numbers are stored.
enum class Format {
  kUnspecified = 0,
  kAnthropicMessages = 1,
  kOpenaiChat = 2,
  kOpenaiResponses = 3,
  kGemini = 4,
  kBedrockConverse = 5,
};

// Who speaks. Tool results are `kTool` in formats that have such messages, and
// parts of `kUser` in those that do not.
enum class Role { kUser, kAssistant, kTool, kSystem };

// Tokens by what they are for. The preamble, which the client owns, is counted
// beside them.
struct StageTokens {
  std::int64_t user = 0;
  std::int64_t assistant = 0;
  std::int64_t calls = 0;
  std::int64_t observations = 0;

  std::int64_t total() const { return user + assistant + calls + observations; }

  StageTokens& operator+=(const StageTokens& other) {
    user += other.user;
    assistant += other.assistant;
    calls += other.calls;
    observations += other.observations;
    return *this;
  }
  friend bool operator==(const StageTokens&, const StageTokens&) = default;
};

// A tool call in a message.
struct ParsedCall {
  std::string id;    // As the provider gave it; may be empty or repeated.
  std::string tool;  // The tool's name.
  // The JSON value with the arguments: an object, or a string that holds one.
  // Empty if there is none.
  ByteSpan arguments;
  // What goes with the call when it is dropped: the block, part or entry of an
  // array that it is, or the whole message.
  ByteSpan element;
  // Whether it may be dropped or its arguments replaced, as far as it says
  // itself: false if it carries a signature or a cache mark, or belongs to
  // something that must find it again.
  bool is_removable = false;
  std::int64_t token_count = 0;
  // Tokens of the message before the call.
  std::int64_t tokens_before = 0;
};

// A tool result in a message.
struct ParsedResult {
  std::string call_id;  // Which call it says that it answers; may be empty.
  std::string tool;     // The tool's name, if the result has it; or empty.
  // The JSON value that masking replaces, quotes or brackets included. Empty if
  // there is none.
  ByteSpan content;
  // A second JSON value, an array, that masking empties: pictures and files
  // that stand beside the content. Behind or before it; empty if there is none.
  ByteSpan attachments;
  // What goes with the result when it is dropped, as in ParsedCall.
  ByteSpan element;
  // The JSON value of a cache mark inside the content, which a placeholder must
  // carry on. Empty if there is none.
  ByteSpan cache_mark;
  bool is_error = false;
  // Whether the format lets a placeholder stand here.
  bool maskable = false;
  // Whether it may be dropped with its call, as in ParsedCall.
  bool is_removable = false;
  std::int64_t image_count = 0;
  std::int64_t document_count = 0;
  std::int64_t line_count = 0;
  std::int64_t token_count = 0;
  // Tokens of the message before the result.
  std::int64_t tokens_before = 0;
};

// Reasoning in a message that its provider signed or encrypted.
struct ParsedReasoning {
  // What is left out with it: the block of an array that it is, or the whole
  // message.
  ByteSpan element;
  // Whether it may be left out, as far as the message says itself: false if
  // that would leave a message that is not valid, and none that could go, or
  // would part it from what its provider keeps with it.
  bool is_removable = false;
  std::int64_t token_count = 0;
  // Tokens of the message before it.
  std::int64_t tokens_before = 0;
};

// What the service keeps of a message beside its bytes. Everything that a view
// needs is found once, when the message is appended.
struct ParsedMessage {
  Role role = Role::kUser;
  StageTokens tokens;
  std::vector<ParsedCall> calls;
  std::vector<ParsedResult> results;
  // The reasoning that its provider may bind to what stands before it, in
  // order.
  std::vector<ParsedReasoning> reasoning;
  // The blocks, parts or entries that it consists of, calls, results and
  // reasoning included: if these are all, the message goes when they are
  // dropped.
  std::int64_t part_count = 0;
  // Whether it holds reasoning that its provider signed or encrypted.
  bool has_thinking = false;
  // Images outside tool results.
  std::int64_t image_count = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_MESSAGE_H_
