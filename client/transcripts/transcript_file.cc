// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/transcript_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/json/document.h"

namespace clerestory {
namespace {

constexpr json::ParseOptions kOptions = {.tree_depth = 8};

}  // namespace

TranscriptFile::TranscriptFile(absl::string_view text) : text_(text) {
  line_starts_.push_back(0);
  for (std::size_t at = text.find('\n'); at != absl::string_view::npos;
       at = text.find('\n', at + 1)) {
    line_starts_.push_back(at + 1);
  }
}

absl::StatusOr<TranscriptFile> TranscriptFile::Parse(
    absl::string_view contents) {
  absl::ConsumePrefix(&contents, "\xEF\xBB\xBF");
  TranscriptFile file(contents);
  const auto add = [&file](absl::string_view text) -> absl::Status {
    absl::StatusOr<json::Document> document =
        json::Document::Parse(text, kOptions);
    if (!document.ok()) return document.status();
    file.documents_.push_back(
        std::make_unique<const json::Document>(*std::move(document)));
    file.values_.push_back(file.documents_.back()->root());
    return absl::OkStatus();
  };

  const absl::Status whole = add(contents);
  if (whole.ok()) return file;
  for (std::size_t i = 0; i < file.line_starts_.size(); ++i) {
    const std::size_t start = file.line_starts_[i];
    const std::size_t end = i + 1 < file.line_starts_.size()
                                ? file.line_starts_[i + 1]
                                : contents.size();
    const absl::string_view line =
        absl::StripAsciiWhitespace(contents.substr(start, end - start));
    if (line.empty()) continue;
    if (const absl::Status status = add(line); !status.ok()) {
      file.damaged_lines_.push_back(
          {.line = static_cast<std::int64_t>(i) + 1,
           .what = absl::StrCat("skipped: ", std::string(status.message()))});
    }
  }
  if (file.values_.empty()) {
    return FieldError("contents", absl::StrCat("not JSON: ", whole.message()));
  }
  return file;
}

std::int64_t TranscriptFile::LineOf(const json::Value& value) const {
  const auto offset =
      static_cast<std::size_t>(value.raw().data() - text_.data());
  return std::ranges::upper_bound(line_starts_, offset) - line_starts_.begin();
}

TimeMicros TimeOf(const json::Value& timestamp) {
  absl::Time time;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, timestamp.string(), &time, &error)
             ? absl::ToUnixMicros(time)
             : 0;
}

TimeMicros TimeOf(std::int64_t count, std::int64_t unit_micros) {
  constexpr TimeMicros kTimeMax = 253'402'300'800 * kMicrosPerSecond;
  if (count < 0 || count >= kTimeMax / unit_micros) return 0;
  return count * unit_micros;
}

}  // namespace clerestory
