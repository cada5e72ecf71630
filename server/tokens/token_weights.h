// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_TOKEN_WEIGHTS_H_
#define CLERESTORY_SERVER_TOKENS_TOKEN_WEIGHTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "server/tokens/token_states.h"

// What the pieces of token_states.h cost, in hundredths of a token: the least
// squares fit to o200k_base of server/decisions/2026-11-30-token-estimate.md.
// Changing one changes views: counts decide what is masked.
namespace clerestory::internal {

// By Before and Case. The letters cost kLetterPrices besides; together a word
// costs at least kWordPriceMin, but after a kLatinLetter.
inline constexpr std::array<std::array<std::int16_t, kCaseCount>, kBeforeCount>
    kWordPrices = {{
        {41, 94, 62},     // kNothing
        {11, 64, 32},     // kOneSpace
        {64, 117, 85},    // kOneDot
        {96, 149, 117},   // kOneDash
        {121, 174, 142},  // kOneMark
        {40, 93, 61},     // kManyMarks
        {19, 72, 40},     // kLatinLetter
        {-2, 13, 30},     // kRun0
        {51, 66, 83},     // kRun1
        {72, 87, 104},    // kRun2
        {85, 100, 117},   // kRun3
        {73, 88, 105},    // kRun4
    }};

inline constexpr std::int16_t kWordPriceMin = 100;

inline constexpr std::int16_t kWordBeforeLatinPrice = 89;

inline constexpr std::int16_t kDigitsPrice = 98;
inline constexpr std::int16_t kDigitsAfterSpacesPrice = 197;

inline constexpr std::int16_t kMarkInRunPrice = 99;
inline constexpr std::int16_t kLineInRunPrice = 99;
inline constexpr std::int16_t kOneSpacePrice = 99;
inline constexpr std::int16_t kSpacesPrice = 94;
inline constexpr std::int16_t kOneTabPrice = 99;
inline constexpr std::int16_t kTabsPrice = 131;
inline constexpr std::int16_t kTabIndentPrice = 190;
inline constexpr std::array<std::int16_t, 2> kLinesPrices = {95, 96};
inline constexpr std::array<std::int16_t, 2> kIndentPrices = {98, 194};

// By MarkRun and length, 1 to kMarksMax.
inline constexpr std::array<std::array<std::int16_t, kMarksMax>, kMarkRunCount>
    kMarksPrices = {{
        {99, 98, 99, 138},    // kJsonMarks
        {98, 99, 133, 186},   // kMixedMarks
        {95, 109, 139, 203},  // kEscapes
        {0, 94, 100, 113},    // kSameMarks
    }};

// The same, of those with a space before them.
inline constexpr std::array<std::array<std::int16_t, kMarksMax>, kMarkRunCount>
    kMarksAfterSpacePrices = {{
        {98, 97, 98, 137},     // kJsonMarks
        {98, 99, 133, 186},    // kMixedMarks
        {107, 121, 151, 215},  // kEscapes
        {0, 97, 103, 116},     // kSameMarks
    }};

// By MarkRun, for each mark beyond kMarksMax.
inline constexpr std::array<std::int16_t, kMarkRunCount> kLongMarksPrices = {
    11, 36, 35, 0};

// By MarkRun and length.
inline constexpr std::array<std::array<std::int16_t, kMarksMax>, kMarkRunCount>
    kMarksAndLinePrices = {{
        {96, 95, 117, 168},    // kJsonMarks
        {98, 97, 119, 170},    // kMixedMarks
        {151, 150, 172, 223},  // kEscapes
        {0, 112, 134, 185},    // kSameMarks
    }};

// By script and Beside.
inline constexpr std::array<std::array<std::int16_t, kBesideCount>,
                            kScriptCount>
    kCharacterPrices = {{
        {96, 97, 13, 43, 86},       // kLatin
        {143, 101, 22, 50, 144},    // kLatinExtended
        {100, 97, 28, 133, 149},    // kGreek
        {90, 97, 11, 120, 122},     // kCyrillic
        {97, 97, 29, 144, 151},     // kHebrew
        {101, 97, 15, 122, 45},     // kArabic
        {97, 96, 30, 77, 88},       // kIndic
        {90, 96, 28, 22, 19},       // kVietnamese
        {97, 142, 38, 107, 100},    // kSymbol
        {93, 115, 57, 99, 95},      // kKana
        {100, 135, 72, 103, 82},    // kHan
        {97, 98, 61, 101, 101},     // kHangul
        {101, 179, 70, 118, 94},    // kFullWidth
        {215, 223, 207, 175, 206},  // kEmoji
    }};

inline constexpr std::int16_t kBrokenBytePrice = 100;

// By the letters at two places that follow each other, 1 to 26 in either case,
// 0 for any other byte, at 27 times the first plus the second: the rarer the
// pair, the likelier a token ends inside it. Row 0 is for the first letter of a
// word. Two bytes that are no letters cost a hundredth, so that no run is free
// however long it is.
inline constexpr std::size_t kLetterCount = 27;
inline constexpr std::array<std::int8_t, kLetterCount * kLetterCount>
    kLetterPrices = {
        1,   -9,  -20, -19, -41, -22, -19, 0,   -34, 4,   -6,  3,   -36, -26,
        -39, 11,  -14, 25,  -18, -44, -22, 1,   7,   -9,  1,   -19, 6,  // start
        0,   32,  13,  23,  -24, 54,  45,  7,   68,  30,  45,  42,  -29, -4,
        -24, 98,  0,   101, -12, -5,  -28, 34,  20,  35,  24,  -24, 52,  // a
        0,   55,  59,  65,  58,  2,   77,  82,  57,  82,  45,  66,  -1,  70,
        72,  23,  72,  105, 38,  55,  65,  6,   76,  63,  50,  54,  94,  // b
        0,   40,  53,  36,  49,  -27, 82,  97,  -2,  20,  98,  6,   27,  60,
        57,  42,  84,  78,  -15, 44,  -20, 11,  81,  71,  99,  -2,  61,  // c
        0,   57,  72,  89,  34,  9,   69,  64,  76,  49,  64,  44,  44,  34,
        80,  33,  81,  102, 75,  51,  62,  72,  71,  95,  77,  31,  83,  // d
        0,   60,  72,  45,  27,  36,  38,  48,  39,  80,  84,  82,  27,  32,
        0,   78,  56,  58,  20,  10,  25,  90,  60,  54,  4,   47,  100,  // e
        0,   42,  59,  59,  52,  10,  17,  34,  73,  18,  88,  55,  17,  27,
        46,  34,  68,  89,  36,  61,  15,  51,  76,  80,  55,  11,  90,  // f
        0,   48,  39,  59,  65,  -2,  69,  32,  19,  53,  58,  84,  8,   54,
        29,  20,  59,  102, 14,  14,  -6,  40,  54,  55,  57,  31,  44,  // g
        0,   42,  28,  60,  65,  1,   86,  74,  80,  40,  70,  82,  62,  52,
        23,  43,  55,  90,  43,  78,  -2,  49,  73,  84,  69,  48,  58,  // h
        0,   28,  5,   -16, -14, -30, -7,  -20, 53,  55,  19,  25,  -29, 3,
        -54, 17,  6,   50,  29,  -23, -38, 63,  19,  63,  39,  66,  -18,  // i
        0,   32,  57,  70,  53,  -30, 56,  74,  58,  78,  63,  39,  38,  57,
        38,  57,  68,  69,  82,  28,  67,  56,  72,  69,  85,  43,  99,  // j
        0,   8,   62,  34,  26,  -11, 45,  4,   37,  40,  75,  62,  31,  50,
        -7,  81,  82,  86,  74,  10,  20,  51,  53,  38,  58,  93,  86,  // k
        0,   57,  34,  105, 35,  9,   58,  92,  57,  56,  97,  115, 21,  91,
        50,  35,  64,  127, 60,  17,  52,  -15, 67,  94,  111, -24, 121,  // l
        0,   31,  17,  108, 67,  -24, 78,  62,  62,  69,  68,  75,  36,  2,
        62,  60,  31,  87,  75,  34,  53,  63,  98,  76,  63,  70,  74,  // m
        0,   64,  89,  46,  24,  27,  74,  49,  76,  88,  69,  75,  77,  31,
        30,  66,  80,  127, 98,  13,  26,  59,  78,  111, 83,  94,  80,  // n
        0,   4,   1,   21,  -15, 51,  -8,  21,  40,  28,  27,  35,  -10, -3,
        -53, 6,   6,   86,  -23, 21,  3,   8,   15,  8,   22,  25,  54,  // o
        0,   38,  70,  22,  25,  -9,  43,  79,  40,  46,  65,  88,  -18, -19,
        26,  8,   40,  77,  1,   41,  -6,  24,  60,  64,  66,  38,  81,  // p
        0,   48,  38,  27,  36,  48,  86,  52,  55,  41,  78,  88,  -29, 34,
        39,  56,  48,  52,  -3,  33,  24,  -52, 55,  76,  52,  59,  85,  // q
        0,   27,  81,  45,  12,  1,   42,  29,  57,  40,  107, 62,  74,  21,
        -16, 25,  102, 79,  32,  30,  29,  41,  65,  107, 80,  7,   81,  // r
        0,   61,  84,  43,  46,  -2,  41,  89,  35,  63,  88,  62,  87,  72,
        59,  70,  48,  79,  10,  13,  7,   55,  69,  59,  101, 55,  90,  // s
        0,   46,  77,  66,  53,  12,  56,  74,  12,  56,  115, 77,  68,  25,
        51,  59,  56,  127, 33,  44,  27,  53,  79,  51,  40,  -25, 92,  // t
        0,   20,  -27, 23,  6,   1,   24,  43,  55,  46,  64,  58,  -69, 5,
        -31, 82,  -6,  99,  -26, 0,   -20, 58,  38,  59,  -5,  39,  46,  // u
        0,   12,  70,  55,  53,  -24, 62,  46,  56,  18,  78,  67,  67,  47,
        60,  32,  46,  89,  46,  44,  65,  49,  63,  44,  64,  38,  63,  // v
        0,   19,  53,  75,  42,  -18, 68,  77,  27,  21,  79,  63,  38,  60,
        -17, -10, 55,  104, 18,  14,  45,  74,  61,  38,  11,  27,  89,  // w
        0,   48,  57,  45,  48,  37,  67,  100, 60,  70,  86,  91,  52,  33,
        64,  105, 44,  95,  95,  26,  27,  95,  90,  103, 14,  32,  72,  // x
        0,   67,  81,  95,  86,  38,  90,  108, 87,  70,  92,  84,  91,  48,
        -2,  69,  77,  127, -2,  38,  7,   96,  103, 70,  82,  60,  73,  // y
        0,   27,  69,  61,  31,  12,  62,  57,  40,  71,  62,  74,  75,  44,
        25,  54,  75,  104, 64,  65,  58,  58,  70,  44,  53,  37,  45,  // z
};

}  // namespace clerestory::internal

#endif  // CLERESTORY_SERVER_TOKENS_TOKEN_WEIGHTS_H_
