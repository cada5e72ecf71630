// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a transcript of one kind: reading ends, and every message that
// comes out is JSON.

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "server/base/check.h"
#include "server/json/document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace clerestory;
  const absl::string_view contents(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ReadResult> result =
      ReadTranscript(contents, CLERESTORY_FUZZ_SOURCE);
  if (!result.ok()) return 0;
  CLERESTORY_CHECK(!result->transcripts.empty());
  for (const Transcript& transcript : result->transcripts) {
    for (const TranscriptMessage& message : transcript.messages) {
      CLERESTORY_CHECK(json::Document::Parse(message.bytes).ok());
    }
  }
  return 0;
}
