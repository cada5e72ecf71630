// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/shell_output.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/formats/content.h"
#include "server/formats/format.h"
#include "server/json/document.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr absl::string_view kStdout = "stdout";
constexpr absl::string_view kStderr = "stderr";

bool HasFailed(const json::Value& outcome) {
  const json::Value code = outcome["exit_code"];
  return outcome["type"].equals("timeout") ||
         (!IsAbsentOrNull(code) && code.integer() != 0);
}

}  // namespace

absl::Status MeasureShellOutput(const json::Value& output,
                                const TokenCounter& counter,
                                ParsedResult& result) {
  if (!output.is_array()) return InvalidMessage("output", "expected an array");
  result.content = ToByteSpan(output.span());
  bool has_place = false;
  std::size_t index = 0;
  for (const json::Value& entry : output.children()) {
    const std::string path = absl::StrCat("output[", index, "]");
    if (!entry.is_object()) return InvalidMessage(path, "expected an object");
    for (const absl::string_view stream : {kStdout, kStderr}) {
      CLERESTORY_RETURN_IF_ERROR(
          CheckKind(entry, stream, path, json::Kind::kString));
      result.token_count += StringTokens(entry[stream], counter);
      result.line_count += LineCount(entry[stream]);
    }
    has_place = has_place || entry[kStdout].is_string();
    result.is_error = result.is_error || HasFailed(entry["outcome"]);
    ++index;
  }
  result.maskable = has_place && result.line_count > 0;
  return absl::OkStatus();
}

std::vector<Replacement> MaskShellOutput(const json::Value& output,
                                         absl::string_view placeholder) {
  std::vector<Replacement> replacements;
  bool is_placed = false;
  for (const json::Value& entry : output.children()) {
    for (const json::Value& value : entry.children()) {
      const bool is_stdout = value.key() == kStdout;
      if (!value.is_string() || (!is_stdout && value.key() != kStderr)) {
        continue;
      }
      const bool takes_text = is_stdout && !is_placed;
      replacements.push_back(
          {.at = ToByteSpan(value.span()),
           .value = json::Quote(takes_text ? placeholder : "")});
      is_placed = is_placed || is_stdout;
    }
  }
  return replacements;
}

}  // namespace clerestory
