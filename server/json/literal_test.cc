// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/json/literal.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/json/document.h"

namespace clerestory::json {
namespace {

constexpr std::uint64_t kSeed = 20261130;

// A text, and the literal of it that escapes some of its characters.
struct Spelling {
  std::string text;
  std::string literal;
};

// Adds the character `code`, with size `bytes` as UTF-8, spelled as `rng`
// likes.
void AddCharacter(std::uint32_t code, absl::string_view bytes,
                  std::mt19937_64& rng, Spelling& out) {
  absl::StrAppend(&out.text, bytes);
  const bool must = code < 0x20 || code == '"' || code == '\\';
  if (!must && rng() % 2 == 0) {
    absl::StrAppend(&out.literal, bytes);
    return;
  }
  constexpr absl::string_view kShort = "\"\\/\b\f\n\r\t";
  constexpr absl::string_view kShortNames = "\"\\/bfnrt";
  const std::size_t at =
      code < 0x80 ? kShort.find(static_cast<char>(code)) : kShort.npos;
  if (at != kShort.npos && rng() % 2 == 0) {
    absl::StrAppend(&out.literal, "\\", kShortNames.substr(at, 1));
  } else if (code < 0x10000) {
    absl::StrAppend(&out.literal, rng() % 2 == 0
                                      ? absl::StrFormat("\\u%04x", code)
                                      : absl::StrFormat("\\u%04X", code));
  } else {
    absl::StrAppendFormat(&out.literal, "\\u%04x\\u%04X",
                          0xD800 + ((code - 0x10000) >> 10),
                          0xDC00 + ((code - 0x10000) & 0x3FF));
  }
}

std::string Utf8(std::uint32_t code) {
  std::string out;
  const auto add = [&out](std::uint32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 + code / 64);
    add(0x80 + code % 64);
  } else if (code < 0x10000) {
    add(0xE0 + code / 4096);
    add(0x80 + code / 64 % 64);
    add(0x80 + code % 64);
  } else {
    add(0xF0 + code / 262144);
    add(0x80 + code / 4096 % 64);
    add(0x80 + code / 64 % 64);
    add(0x80 + code % 64);
  }
  return out;
}

// A character of any length, those with a meaning in JSON often among them.
std::uint32_t RandomCode(std::mt19937_64& rng) {
  constexpr std::uint32_t kEdges[] = {
      0x00,  0x1F,   '"',    '\\',   '/',    0x7F,    0x80,    0x7FF,
      0x800, 0xD7FF, 0xE000, 0xFEFF, 0xFFFF, 0x10000, 0x10FFFF};
  constexpr std::uint32_t kBelow[] = {0x80, 0x800, 0xD800, 0x110000};
  const std::uint64_t choice = rng() % 5;
  if (choice == 4) return kEdges[rng() % std::size(kEdges)];
  const auto code = static_cast<std::uint32_t>(rng() % kBelow[choice]);
  return code >= 0xD800 && code < 0xE000 ? code + 0x2000 : code;
}

TEST(LiteralTest, AnySpellingOfRandomTextUnquotesToIt) {
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 3'000; ++round) {
    Spelling spelling;
    for (std::uint64_t size = rng() % 40; size > 0; --size) {
      const std::uint32_t code = RandomCode(rng);
      AddCharacter(code, Utf8(code), rng, spelling);
    }
    const std::string literal = absl::StrCat("\"", spelling.literal, "\"");
    ASSERT_EQ(Unquote(literal), spelling.text)
        << "seed " << kSeed << " round " << round << ": " << literal;
    // It is valid, too, and read the same inside a document.
    const std::string text = absl::StrCat("{", literal, ":", literal, "}");
    const absl::StatusOr<Document> document = Document::Parse(text);
    ASSERT_TRUE(document.ok()) << document.status() << ": " << text;
    const Value value = document->root()[spelling.text];
    ASSERT_TRUE(value.exists());
    ASSERT_EQ(value.key(), spelling.text);
    ASSERT_EQ(value.string(), spelling.text);
    ASSERT_TRUE(value.equals(spelling.text));
  }
}

TEST(LiteralTest, QuoteIsUndoneByUnquoteAndValid) {
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 3'000; ++round) {
    std::string text;
    for (std::uint64_t size = rng() % 40; size > 0; --size) {
      absl::StrAppend(&text, Utf8(RandomCode(rng)));
    }
    const std::string literal = Quote(text);
    ASSERT_EQ(Unquote(literal), text)
        << "seed " << kSeed << " round " << round << ": " << literal;
    const std::string array = absl::StrCat("[", literal, "]");
    ASSERT_TRUE(Document::Parse(array).ok()) << array;
  }
}

TEST(LiteralTest, QuoteEscapesOnlyWhatMustBe) {
  EXPECT_EQ(Quote(""), R"("")");
  EXPECT_EQ(Quote("say \"hi\" \\ / <\x7F> é 😀"),
            "\"say \\\"hi\\\" \\\\ / <\x7F> é 😀\"");
  EXPECT_EQ(Quote(absl::string_view("\0\x01\b\t\n\f\r\x1F", 8)),
            R"("\u0000\u0001\u0008\t\n\u000c\r\u001f")");
}

TEST(LiteralTest, UnquoteKnowsEveryEscape) {
  EXPECT_EQ(Unquote(R"("")"), "");
  EXPECT_EQ(Unquote(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(Unquote(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(Unquote(R"("\u00e9\u00E9\u20aC\ud83d\uDE00")"), "éé€😀");
  EXPECT_EQ(Unquote(R"("a\\u0041")"), "a\\u0041");
}

}  // namespace
}  // namespace clerestory::json
