// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/image_tokens.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr ImageFormula kAnthropic = ImageFormula::kAnthropic;
constexpr std::uint64_t kSeed = 20261130;

std::string Number(std::uint64_t value, int size) {
  std::string out;
  for (int i = size - 1; i >= 0; --i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
  return out;
}

std::string Reversed(std::string bytes) {
  std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

std::string Little(std::uint64_t value, int size) {
  return Reversed(Number(value, size));
}

std::string Png(std::uint64_t width, std::uint64_t height) {
  return absl::StrCat("\x89PNG\r\n\x1a\n", Number(13, 4), "IHDR",
                      Number(width, 4), Number(height, 4), "more");
}

std::string Gif(std::uint64_t width, std::uint64_t height) {
  return absl::StrCat("GIF89a", Little(width, 2), Little(height, 2), "more");
}

std::string Webp(absl::string_view chunk) {
  return absl::StrCat("RIFF", Little(1000, 4), "WEBP", chunk, "more");
}

std::string WebpLossy(std::uint64_t width, std::uint64_t height) {
  return Webp(absl::StrCat("VP8 ", Little(99, 4), "abc\x9d\x01\x2a",
                           Little(width, 2), Little(height, 2)));
}

std::string WebpLossless(std::uint64_t width, std::uint64_t height) {
  return Webp(absl::StrCat("VP8L", Little(99, 4), "\x2f",
                           Little((width - 1) | (height - 1) << 14, 4)));
}

std::string WebpExtended(std::uint64_t width, std::uint64_t height) {
  return Webp(absl::StrCat("VP8X", Little(10, 4), Number(0, 4),
                           Little(width - 1, 3), Little(height - 1, 3)));
}

std::string Segment(std::uint64_t marker, absl::string_view content) {
  return absl::StrCat(Number(0xff00 | marker, 2), Number(content.size() + 2, 2),
                      content);
}

// A JPEG with `before` between its start and its frame header.
std::string Jpeg(std::uint64_t marker, std::uint64_t width,
                 std::uint64_t height, absl::string_view before = "") {
  return absl::StrCat(
      Number(0xffd8, 2), before,
      Segment(marker, absl::StrCat(Number(8, 1), Number(height, 2),
                                   Number(width, 2), "abc")),
      "more");
}

ImageSize SizeOf(absl::string_view bytes) {
  return ReadImageSize(absl::Base64Escape(bytes));
}

constexpr ImageSize kUnknown = {};
constexpr ImageSize kWide = {640, 480};

TEST(ImageTokensTest, ReadsTheSizeOfEveryFormat) {
  EXPECT_EQ(SizeOf(Png(640, 480)), kWide);
  EXPECT_EQ(SizeOf(Gif(640, 480)), kWide);
  EXPECT_EQ(SizeOf(WebpLossy(640, 480)), kWide);
  EXPECT_EQ(SizeOf(WebpLossless(640, 480)), kWide);
  EXPECT_EQ(SizeOf(WebpExtended(640, 480)), kWide);
  EXPECT_EQ(SizeOf(Png(0xffffffff, 1)), (ImageSize{0xffffffff, 1}));
}

TEST(ImageTokensTest, ReadsEveryKindOfJpegFrame) {
  for (std::uint64_t marker = 0xc0; marker <= 0xcf; ++marker) {
    const bool frame = marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    EXPECT_EQ(SizeOf(Jpeg(marker, 640, 480)), frame ? kWide : kUnknown)
        << marker;
  }
}

TEST(ImageTokensTest, FindsTheJpegFrameBehindOtherSegments) {
  const std::string before =
      absl::StrCat(Segment(0xe1, std::string(3'000, '\xff')), "\xff\xff",
                   Segment(0xc4, "table"), Segment(0xfe, ""));
  EXPECT_EQ(SizeOf(Jpeg(0xc2, 640, 480, before)), kWide);
}

TEST(ImageTokensTest, ReadsNoFurtherThanTheFirst64KB) {
  const std::string half = Segment(0xe1, std::string(32'000, 'x'));
  EXPECT_EQ(SizeOf(Jpeg(0xc0, 640, 480, half + half)), kWide);
  EXPECT_EQ(SizeOf(Jpeg(0xc0, 640, 480, half + half + half)), kUnknown);
}

TEST(ImageTokensTest, DamagedHeadersSayNothing) {
  EXPECT_EQ(SizeOf(Png(0, 480)), kUnknown);
  EXPECT_EQ(SizeOf(Gif(640, 0)), kUnknown);
  EXPECT_EQ(SizeOf(Jpeg(0xc0, 640, 480, Segment(0xda, "scan"))), kUnknown);
  EXPECT_EQ(SizeOf(Jpeg(0xc0, 640, 480, "junk")), kUnknown);
  EXPECT_EQ(SizeOf(Jpeg(0xc0, 640, 480, "\xff\xe0" + Number(1, 2))), kUnknown);
  EXPECT_EQ(SizeOf("BM an older format"), kUnknown);
  EXPECT_EQ(ReadImageSize("not base64!"), kUnknown);
  EXPECT_EQ(ReadImageSize("iVBORw0KGgo[REDACTED]"), kUnknown);
  EXPECT_EQ(ReadImageSize(""), kUnknown);
}

TEST(ImageTokensTest, CutHeadersSayNothing) {
  for (const std::string& whole :
       {Png(640, 480), Gif(640, 480), WebpLossy(640, 480),
        WebpLossless(640, 480), WebpExtended(640, 480), Jpeg(0xc0, 640, 480)}) {
    const std::string base64 = absl::Base64Escape(whole);
    for (std::size_t size = 0; size < base64.size(); ++size) {
      const std::vector<char> bytes(base64.data(), base64.data() + size);
      const ImageSize found = ReadImageSize({bytes.data(), bytes.size()});
      EXPECT_TRUE(found == kUnknown || found == kWide) << size;
    }
  }
}

TEST(ImageTokensTest, AnyBytesAreRead) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 rng(kSeed);
  const std::vector<std::string> wholes = {
      Png(640, 480), Gif(640, 480), WebpLossy(640, 480),
      Jpeg(0xc0, 640, 480, Segment(0xe1, "abc"))};
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes = wholes[rng() % wholes.size()];
    for (std::uint64_t i = rng() % 4; i > 0; --i) {
      bytes[rng() % bytes.size()] = static_cast<char>(rng());
    }
    const std::int64_t count =
        ImageTokens(absl::Base64Escape(bytes), kAnthropic);
    EXPECT_GE(count, 1);
    EXPECT_LE(count, kImageTokensMax);
  }
}

TEST(ImageTokensTest, ReadsBothAlphabetsLineBreaksAndEscapes) {
  // Has, at any alignment, the digits that the other alphabet and JSON spell
  // differently.
  constexpr absl::string_view kDigits =
      "\xff\xff\xff\xff\xfb\xef\xbe\x01\xfb\xef\xbe\x01\xfb\xef\xbe";
  const std::string bytes = Jpeg(0xc0, 640, 480, Segment(0xe1, kDigits));
  const std::string base64 = absl::Base64Escape(bytes);
  ASSERT_NE(base64.find('/'), std::string::npos);
  ASSERT_NE(base64.find('+'), std::string::npos);
  EXPECT_EQ(ReadImageSize(absl::WebSafeBase64Escape(bytes)), kWide);
  EXPECT_EQ(ReadImageSize(absl::StrReplaceAll(base64, {{"/", "\\/"}})), kWide);
  for (const absl::string_view line_break : {"\n", "\r\n", "\\n", "\\r\\n"}) {
    EXPECT_EQ(ReadImageSize(absl::StrCat(base64.substr(0, 10), line_break,
                                         base64.substr(10))),
              kWide);
  }
}

struct Priced {
  ImageSize size;
  std::int64_t token_count;
};

TEST(ImageTokensTest, CountsPatchesOf28PixelsAfterScaling) {
  for (const Priced& priced : std::vector<Priced>{
           {{1, 1}, 1},
           {{28, 28}, 1},
           {{29, 28}, 2},
           {{29, 29}, 4},
           {{200, 200}, 64},
           {{1000, 1000}, 1296},
           {{1092, 1092}, 1521},
           {{1280, 800}, 1334},
           // At the limit of the edge, then scaled to it.
           {{1568, 28}, 56},
           {{1569, 28}, 56},
           {{3136, 56}, 56},
           {{28, 15680}, 56},
           {{1920, 1080}, 1568},
           // At the limit of the tokens.
           {{1568, 784}, 1568},
           {{1568, 785}, 1568},
           {{1568, 1568}, 1568},
           // As thin and as large as a header can say.
           {{1, 0xffffffff}, 56},
           {{0xffffffff, 0xffffffff}, 1568},
       }) {
    EXPECT_EQ(TokensOfImageSize(priced.size, kAnthropic), priced.token_count)
        << priced.size.width << " by " << priced.size.height;
  }
}

TEST(ImageTokensTest, OpenaiCountsPatchesOf32PixelsAfterScaling) {
  for (const Priced& priced : std::vector<Priced>{
           {{1, 1}, 1},
           {{32, 32}, 1},
           {{33, 32}, 2},
           {{1024, 1024}, 1024},
           {{1280, 800}, 1000},
           {{2048, 32}, 64},
           {{4096, 64}, 64},
           {{1600, 1600}, 2500},
           {{2048, 2048}, 2500},
           {{0xffffffff, 0xffffffff}, 2500},
       }) {
    EXPECT_EQ(TokensOfImageSize(priced.size, ImageFormula::kOpenai),
              priced.token_count)
        << priced.size.width << " by " << priced.size.height;
  }
}

TEST(ImageTokensTest, GeminiCountsEveryPictureAlike) {
  constexpr ImageFormula kGemini = ImageFormula::kGemini;
  EXPECT_EQ(TokensOfImageSize({.width = 1, .height = 1}, kGemini), 1120);
  EXPECT_EQ(ImageTokens(absl::Base64Escape(Png(640, 480)), kGemini), 1120);
  EXPECT_EQ(ImageTokens("", kGemini), 1120);
}

TEST(ImageTokensTest, CountsAPictureByItsHeader) {
  const std::string png = absl::Base64Escape(Png(640, 480));
  EXPECT_EQ(ImageTokens(png, kAnthropic), 23 * 18);
  EXPECT_EQ(ImageTokens(png, ImageFormula::kOpenai), 20 * 15);
  EXPECT_EQ(ImageTokens(absl::Base64Escape(Png(1, 0xffffffff)), kAnthropic),
            56);
  EXPECT_EQ(ImageTokens("iVBORw0KGgo=", kAnthropic), kUnknownImageTokens);
  EXPECT_EQ(ImageTokens("", kAnthropic), kUnknownImageTokens);
  EXPECT_EQ(ImageTokens("", ImageFormula::kOpenai), 2500);
}

TEST(ImageTokensTest, CountsAPdfByItsSize) {
  const auto pdf = [](std::size_t size) {
    std::string bytes = "%PDF-1.7\n";
    bytes.resize(size);
    return absl::Base64Escape(bytes);
  };
  EXPECT_EQ(ImageTokens(pdf(900), kAnthropic), kPdfPageTokens);
  EXPECT_EQ(ImageTokens(pdf(900), ImageFormula::kOpenai), kPdfPageTokens);
  EXPECT_EQ(ImageTokens(pdf(3 * kPdfPageBytes), kAnthropic),
            4 * kPdfPageTokens);
  EXPECT_EQ(ImageTokens(pdf(3 * kPdfPageBytes), ImageFormula::kGemini),
            4 * 560);
  EXPECT_EQ(ImageTokens(absl::StrCat("JVBERi", std::string(64 << 20, 'A')),
                        kAnthropic),
            kPdfPagesMax * kPdfPageTokens);
}

}  // namespace
}  // namespace clerestory
