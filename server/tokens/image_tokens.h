// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_IMAGE_TOKENS_H_
#define CLERESTORY_SERVER_TOKENS_IMAGE_TOKENS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace clerestory {

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

// Returns the tokens of a picture of `size`, at least 1, by Anthropic's
// formula: one for each patch of 28 times 28 pixels begun, after scaling.
// REQUIRES: both edges are in [1, 2^32).
std::int64_t TokensOfImageSize(ImageSize size);

// Returns the tokens of the picture or PDF with the data `base64`, of which
// only the header is decoded; kUnknownImageTokens where that says nothing.
std::int64_t ImageTokens(absl::string_view base64);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOKENS_IMAGE_TOKENS_H_
