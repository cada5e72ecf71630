// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_FORMAT_H_
#define CLERESTORY_SERVER_FORMATS_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// A value to put in place of a part of a message.
struct Replacement {
  ByteSpan at;
  std::string value;
};

// What is particular to one provider's messages: where calls, results and the
// rest stand, and what may stand in place of a result. Stateless and pure; safe
// from any thread.
class FormatAdapter {
 public:
  FormatAdapter() = default;
  FormatAdapter(const FormatAdapter&) = delete;
  FormatAdapter& operator=(const FormatAdapter&) = delete;
  virtual ~FormatAdapter() = default;

  // Finds the parts of one message. Unknown blocks and fields are no error.
  //
  // Returns INVALID_ARGUMENT with kMessageInvalid if `message` is not JSON, not
  // an object, has a role that the format does not know, or lacks what a known
  // block must have; the text says what and where and quotes nothing.
  virtual absl::StatusOr<ParsedMessage> Parse(
      absl::string_view message, const TokenCounter& counter) const = 0;

  // What to replace in `message`, in order, so that the model reads
  // `placeholder` instead of `result`: its content, and its attachments if it
  // has any. REQUIRES: `result` is of this message, and maskable.
  virtual std::vector<Replacement> Mask(
      absl::string_view message, const ParsedResult& result,
      absl::string_view placeholder) const = 0;
};

// What a provider that binds reasoning to its prefix does with reasoning of
// which the prefix was edited.
enum class StaleReasoning {
  // It has none that is bound.
  kNone,
  // It refuses the request; the reasoning has to be left out.
  kRefused,
  // It passes over the reasoning and says nothing. The item has to stay, since
  // the items that came with it name it.
  kDropped,
};
StaleReasoning StaleReasoningOf(Format format);

// The adapter of `format`, which lives for ever. REQUIRES: not kUnspecified.
const FormatAdapter& AdapterFor(Format format);

// `ANTHROPIC_MESSAGES` and so on.
absl::string_view FormatName(Format format);

// Returns `message` with its parts replaced and every other byte as it was.
// REQUIRES: `replacements` are in order and do not overlap.
std::string Splice(absl::string_view message,
                   const std::vector<Replacement>& replacements);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_FORMAT_H_
