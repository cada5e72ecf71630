// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_BYTE_CLASS_H_
#define CLERESTORY_SERVER_TOKENS_BYTE_CLASS_H_

#include <array>
#include <cstdint>

namespace clerestory::internal {

// What a byte is.
enum ByteClass : std::uint8_t {
  kLower,
  kUpper,
  kDigit,
  kSpace,
  kTab,
  kLine,
  // Marks, by how they merge with what stands beside them.
  kComma,      // , [
  kBrace,      // " { } : ]
  kDot,        // _ . ( < >
  kDash,       // - # = /
  kMark,       // Any other.
  kBackslash,  // And control characters.
  kRepeat,     // A mark equal to the byte before it.
  kContinuation,
  // First bytes of characters beyond ASCII.
  kLatin,          // C2, C3
  kLatinExtended,  // C4 to CD
  kGreek,          // CE, CF
  kCyrillic,       // D0 to D3
  kHebrew,         // D4 to D7
  kArabic,         // D8 to DF
  kIndic,          // E0
  kVietnamese,     // E1
  kSymbol,         // E2
  kKana,           // E3
  kHan,            // E4 to E9
  kHangul,         // EA to ED
  kFullWidth,      // EE, EF
  kEmoji,          // F0 to F4
  kInvalid,
  kByteClassCount,
};

inline constexpr int kScriptCount = kInvalid - kLatin;

constexpr bool IsLetter(ByteClass c) { return c == kLower || c == kUpper; }
constexpr bool IsMark(ByteClass c) { return c >= kComma && c <= kRepeat; }
constexpr bool IsScript(ByteClass c) { return c >= kLatin && c < kInvalid; }
// Letters of such scripts stand inside words of ASCII letters.
constexpr bool IsLatin(ByteClass c) {
  return c == kLatin || c == kLatinExtended || c == kVietnamese;
}

// The class of `byte`, 0 to 255, which is kRepeat only by what is before it.
constexpr ByteClass ClassOf(int byte) {
  if (byte >= 'a' && byte <= 'z') return kLower;
  if (byte >= 'A' && byte <= 'Z') return kUpper;
  if (byte >= '0' && byte <= '9') return kDigit;
  if (byte < 0x80) {
    switch (byte) {
      case ' ':
        return kSpace;
      case '\t':
      case '\v':
      case '\f':
        return kTab;
      case '\n':
      case '\r':
        return kLine;
      case ',':
      case '[':
        return kComma;
      case '"':
      case '{':
      case '}':
      case ':':
      case ']':
        return kBrace;
      case '_':
      case '.':
      case '(':
      case '<':
      case '>':
        return kDot;
      case '-':
      case '#':
      case '=':
      case '/':
        return kDash;
      default:
        return byte == '\\' || byte < ' ' || byte == 0x7f ? kBackslash : kMark;
    }
  }
  struct Range {
    int last;
    ByteClass byte_class;
  };
  constexpr std::array<Range, 17> kRanges = {{
      {0xbf, kContinuation},
      {0xc1, kInvalid},
      {0xc3, kLatin},
      {0xcd, kLatinExtended},
      {0xcf, kGreek},
      {0xd3, kCyrillic},
      {0xd7, kHebrew},
      {0xdf, kArabic},
      {0xe0, kIndic},
      {0xe1, kVietnamese},
      {0xe2, kSymbol},
      {0xe3, kKana},
      {0xe9, kHan},
      {0xed, kHangul},
      {0xef, kFullWidth},
      {0xf4, kEmoji},
      {0xff, kInvalid},
  }};
  for (const Range& range : kRanges) {
    if (byte <= range.last) return range.byte_class;
  }
  return kInvalid;
}

}  // namespace clerestory::internal

#endif  // CLERESTORY_SERVER_TOKENS_BYTE_CLASS_H_
