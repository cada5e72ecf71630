// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_IMAGE_TOKENS_H_
#define CLERESTORY_SERVER_TOKENS_IMAGE_TOKENS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// --- Anthropic ---------------------------------------------------------------

// The side of the square of pixels that is one token.
inline constexpr std::int64_t kImagePatchPixels = 28;

// The longest edge and the most tokens of a picture, which is scaled down to
// them. Of Anthropic's two tiers this is the smaller: newer models take up to
// 2,576 pixels and 4,784 tokens, and reported usage corrects for that, while
// the larger one would overrate what masking a picture saves on the others.
inline constexpr std::int64_t kImageEdgePixelsMax = 1568;
inline constexpr std::int64_t kImageTokensMax = 1568;

// What a picture of unknown size counts: that of a whole screen, which is what
// agents mostly look at, and which reaches the limit.
inline constexpr std::int64_t kUnknownImageTokens = kImageTokensMax;

// A PDF is read as the text and the picture of each page, 3,000 tokens in all,
// and its pages are not counted but taken to have 50 KB.
inline constexpr std::int64_t kPdfPageBytes = 50'000;
inline constexpr std::int64_t kPdfPageTokens = 3'000;
inline constexpr std::int64_t kPdfPagesMax = 600;

// --- OpenAI: the models since GPT-5.4, with `detail` high --------------------

inline constexpr std::int64_t kOpenaiPatchPixels = 32;
inline constexpr std::int64_t kOpenaiEdgePixelsMax = 2048;
inline constexpr std::int64_t kOpenaiImageTokensMax = 2500;

// A picture with `detail` low, whatever its size.
inline constexpr std::int64_t kOpenaiLowDetailTokens = 70;

// --- Gemini 3 and later ------------------------------------------------------

// A picture, whatever its size, unless the part asks for another resolution;
// and a page of a PDF.
inline constexpr std::int64_t kGeminiImageTokens = 1120;
inline constexpr std::int64_t kGeminiPdfPageTokens = 560;

// Width and height in pixels.
struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Returns the size of the PNG, JPEG, GIF or WebP picture whose data begin with
// `base64`, or 0 times 0 if they are of another kind, damaged, or do not say it
// in their first 64 KB. Decodes no further than that. Accepts both alphabets of
// base64, and the escapes that a JSON string may have.
ImageSize ReadImageSize(absl::string_view base64);

// Returns the tokens of a picture of `size`, at least 1. Anthropic and OpenAI:
// one for each patch begun, after scaling. REQUIRES: both edges are in
// [1, 2^32).
std::int64_t TokensOfImageSize(ImageSize size, ImageFormula formula);

// Returns the tokens of a picture of which the size is not known: the most that
// one has.
std::int64_t UnknownImageTokens(ImageFormula formula);

// Returns the tokens of the picture or PDF with the data `base64`, of which
// only the header is decoded; UnknownImageTokens where that says nothing.
std::int64_t ImageTokens(absl::string_view base64, ImageFormula formula);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOKENS_IMAGE_TOKENS_H_
