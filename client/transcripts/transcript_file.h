// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_TRANSCRIPT_FILE_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_TRANSCRIPT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/base/time.h"
#include "server/json/document.h"

namespace clerestory {

// The JSON values of a file: the only one, or one to a line.
//
// Does not own the text, which must outlive it. Safe to read from any thread.
class TranscriptFile {
 public:
  // Returns INVALID_ARGUMENT with kFieldInvalid and field `contents` if there
  // is no JSON object or array in it.
  static absl::StatusOr<TranscriptFile> Parse(absl::string_view contents);

  // In order. Eight levels of each can be walked, which reaches the name of a
  // tool call in an array of sessions.
  const std::vector<json::Value>& values() const { return values_; }

  // The only value; does not exist if there are several.
  json::Value single() const {
    return values_.size() == 1 ? values_.front() : json::Value();
  }

  // The lines that hold no JSON.
  const std::vector<ReadIssue>& damaged_lines() const { return damaged_lines_; }

  // The line where `value`, a part of the file, begins.
  std::int64_t LineOf(const json::Value& value) const;

 private:
  explicit TranscriptFile(absl::string_view text);

  absl::string_view text_;
  std::vector<std::size_t> line_starts_;
  // Values point to their document.
  std::vector<std::unique_ptr<const json::Document>> documents_;
  std::vector<json::Value> values_;
  std::vector<ReadIssue> damaged_lines_;
};

// The time that `timestamp`, a string of RFC 3339, tells; 0 if it is none.
TimeMicros TimeOf(const json::Value& timestamp);

// `count` units of `unit_micros` since 1970; 0 if that is before or after the
// years of four digits.
TimeMicros TimeOf(std::int64_t count, std::int64_t unit_micros);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_TRANSCRIPT_FILE_H_
