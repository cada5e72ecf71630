// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/image_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr std::int64_t kHeaderBytesMax = 64LL << 10;

// "%PDF-" in base64, whatever follows.
constexpr absl::string_view kPdfStart = "JVBERi";

// The six bits of a digit of base64, or -1.
int SixBits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

// Reads the bytes that a base64 text stands for, one after the other. What is
// read beyond the end, the limit or damage is 0, and good() false from then on.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view base64) : base64_(base64) {}

  bool good() const { return good_; }

  std::int64_t Byte() {
    while (good_ && bit_count_ < 8) {
      const int bits = NextDigit();
      if (bits < 0) {
        good_ = false;
        break;
      }
      bits_ = (bits_ << 6 | bits) & 0x3fff;
      bit_count_ += 6;
    }
    if (read_ == kHeaderBytesMax) good_ = false;
    if (!good_) return 0;
    ++read_;
    bit_count_ -= 8;
    return bits_ >> bit_count_ & 0xff;
  }

  // `count` bytes as a number, the first byte the highest.
  std::int64_t BigEndian(int count) {
    std::int64_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 8 | Byte();
    return value;
  }

  // The same, the first byte the lowest.
  std::int64_t LittleEndian(int count) {
    std::int64_t value = 0;
    for (int i = 0; i < count; ++i) value |= Byte() << (8 * i);
    return value;
  }

  void Skip(std::int64_t count) {
    for (std::int64_t i = 0; i < count && good_; ++i) Byte();
  }

  // Whether the next bytes are `expected`.
  bool Reads(absl::string_view expected) {
    for (const char c : expected) {
      if (Byte() != static_cast<std::uint8_t>(c)) return false;
    }
    return good_;
  }

 private:
  // The next digit, past line breaks and the backslash of a JSON `\/`, `\n` or
  // `\r`; -1 at the end and for what is no digit.
  int NextDigit() {
    while (at_ < base64_.size()) {
      const char c = base64_[at_++];
      if (c == '\n' || c == '\r') continue;
      if (c != '\\') return SixBits(c);
      const char escaped = at_ < base64_.size() ? base64_[at_] : '\0';
      if (escaped == 'n' || escaped == 'r') {
        ++at_;
      } else if (escaped != '/') {
        return -1;
      }
    }
    return -1;
  }

  absl::string_view base64_;
  std::size_t at_ = 0;
  int bits_ = 0;
  int bit_count_ = 0;
  std::int64_t read_ = 0;
  bool good_ = true;
};

// These read what follows the first two bytes, which told the format.

ImageSize ReadPng(HeaderReader& reader) {
  if (!reader.Reads("NG\r\n\x1a\n")) return {};
  reader.Skip(4);
  if (!reader.Reads("IHDR")) return {};
  const std::int64_t width = reader.BigEndian(4);
  return {width, reader.BigEndian(4)};
}

ImageSize ReadGif(HeaderReader& reader) {
  if (!reader.Reads("F8")) return {};
  const std::int64_t version = reader.Byte();
  if ((version != '7' && version != '9') || !reader.Reads("a")) return {};
  const std::int64_t width = reader.LittleEndian(2);
  return {width, reader.LittleEndian(2)};
}

ImageSize ReadWebp(HeaderReader& reader) {
  if (!reader.Reads("FF")) return {};
  reader.Skip(4);
  if (!reader.Reads("WEBPVP8")) return {};
  const std::int64_t kind = reader.Byte();
  reader.Skip(4);
  constexpr std::int64_t kFourteenBits = 0x3fff;
  if (kind == ' ') {
    reader.Skip(3);
    if (!reader.Reads("\x9d\x01\x2a")) return {};
    const std::int64_t width = reader.LittleEndian(2) & kFourteenBits;
    return {width, reader.LittleEndian(2) & kFourteenBits};
  }
  if (kind == 'L') {
    if (!reader.Reads("\x2f")) return {};
    const std::int64_t bits = reader.LittleEndian(4);
    return {1 + (bits & kFourteenBits), 1 + (bits >> 14 & kFourteenBits)};
  }
  if (kind == 'X') {
    reader.Skip(4);
    const std::int64_t width = 1 + reader.LittleEndian(3);
    return {width, 1 + reader.LittleEndian(3)};
  }
  return {};
}

// Whether a JPEG segment with this marker is a frame header, which has the
// size: SOF0 to SOF15 without the three that are tables.
bool IsFrame(std::int64_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
         marker != 0xcc;
}

ImageSize ReadJpeg(HeaderReader& reader) {
  while (reader.good()) {
    if (reader.Byte() != 0xff) return {};
    std::int64_t marker = reader.Byte();
    while (marker == 0xff) marker = reader.Byte();
    const std::int64_t length = reader.BigEndian(2);
    // Behind the start of scan are no more headers.
    if (marker == 0xda || length < 2) return {};
    if (IsFrame(marker)) {
      reader.Skip(1);
      const std::int64_t height = reader.BigEndian(2);
      return {reader.BigEndian(2), height};
    }
    reader.Skip(length - 2);
  }
  return {};
}

ImageSize ReadSize(HeaderReader& reader) {
  switch (reader.BigEndian(2)) {
    case 'P' + (0x89 << 8):
      return ReadPng(reader);
    case 'I' + ('G' << 8):
      return ReadGif(reader);
    case 'I' + ('R' << 8):
      return ReadWebp(reader);
    case 0xffd8:
      return ReadJpeg(reader);
    default:
      return {};
  }
}

// How a vendor counts: a picture is scaled down to `edge_max` pixels, and is a
// token for each patch begun, at most `tokens_max`. Without a patch it is
// `tokens_max` whatever its size.
struct FormulaRule {
  std::int64_t patch_pixels = 0;
  std::int64_t edge_max = 0;
  std::int64_t tokens_max = 0;
  std::int64_t pdf_page_tokens = 0;
};

constexpr FormulaRule RuleOf(ImageFormula formula) {
  switch (formula) {
    case ImageFormula::kAnthropic:
      break;
    case ImageFormula::kOpenai:
      return {kOpenaiPatchPixels, kOpenaiEdgePixelsMax, kOpenaiImageTokensMax,
              kPdfPageTokens};
    case ImageFormula::kGemini:
      return {0, 0, kGeminiImageTokens, kGeminiPdfPageTokens};
  }
  return {kImagePatchPixels, kImageEdgePixelsMax, kImageTokensMax,
          kPdfPageTokens};
}

std::int64_t PdfPages(absl::string_view base64) {
  const auto bytes = static_cast<std::int64_t>(base64.size() / 4 * 3);
  return std::min(bytes / kPdfPageBytes + 1, kPdfPagesMax);
}

}  // namespace

ImageSize ReadImageSize(absl::string_view base64) {
  HeaderReader reader(base64);
  const ImageSize size = ReadSize(reader);
  return reader.good() && size.width > 0 && size.height > 0 ? size
                                                            : ImageSize{};
}

std::int64_t TokensOfImageSize(ImageSize size, ImageFormula formula) {
  CLERESTORY_CHECK(size.width > 0 && size.height > 0);
  CLERESTORY_CHECK(std::max(size.width, size.height) < 1LL << 32);
  const FormulaRule rule = RuleOf(formula);
  if (rule.patch_pixels == 0) return rule.tokens_max;
  const std::int64_t longest = std::max(size.width, size.height);
  const auto patches = [longest, &rule](std::int64_t edge) {
    if (longest > rule.edge_max) {
      edge = (edge * rule.edge_max + longest / 2) / longest;
    }
    return std::max<std::int64_t>(
        1, (edge + rule.patch_pixels - 1) / rule.patch_pixels);
  };
  return std::min(patches(size.width) * patches(size.height), rule.tokens_max);
}

std::int64_t UnknownImageTokens(ImageFormula formula) {
  return RuleOf(formula).tokens_max;
}

std::int64_t ImageTokens(absl::string_view base64, ImageFormula formula) {
  if (absl::StartsWith(base64, kPdfStart)) {
    return PdfPages(base64) * RuleOf(formula).pdf_page_tokens;
  }
  const ImageSize size = ReadImageSize(base64);
  return size.width > 0 ? TokensOfImageSize(size, formula)
                        : UnknownImageTokens(formula);
}

}  // namespace clerestory
