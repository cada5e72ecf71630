// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_TOKEN_STATES_H_
#define CLERESTORY_SERVER_TOKENS_TOKEN_STATES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "server/tokens/byte_class.h"

// The automaton that cuts a text, byte by byte, into the pieces inside of which
// a byte-pair encoder looks for tokens: words with the space or mark before
// them, up to three digits, runs of marks with the line break behind them,
// indentation. It cuts as the pattern of o200k_base does for ASCII, and
// characters of other scripts one by one. What a piece costs is
// token_weights.h.
namespace clerestory::internal {

// What stands before the first letter of a word, and belongs to it (a space, a
// single mark) or not. The runs are for words inside a run of letters and
// digits: how much it looks like base64 or hexadecimal so far.
enum Before : std::uint8_t {
  kNothing,
  kOneSpace,
  kOneDot,  // Or kComma.
  kOneDash,
  kOneMark,  // Or a tab.
  kManyMarks,
  kLatinLetter,
  kRun0,
  kRun1,
  kRun2,
  kRun3,
  kRun4,
  kBeforeCount,
};
inline constexpr int kRunMax = kRun4 - kRun0;

enum Case : std::uint8_t { kLowerCase, kUpperCase, kCapitals, kCaseCount };

// Digits know the run that they are in, or that more than one space is before
// them: the last of those is a token by itself.
inline constexpr int kDigitsAfterSpaces = kRunMax + 1;

enum MarkRun : std::uint8_t {
  kJsonMarks,  // Only kComma and kBrace.
  kMixedMarks,
  kEscapes,    // With a kBackslash.
  kSameMarks,  // Of one mark.
  kMarkRunCount,
};
inline constexpr int kMarksMax = 4;

// What stands before a character of another script.
enum Beside : std::uint8_t {
  kBesideNothing,
  kBesideSpace,
  kBesideSame,
  kBesideWord,
  kBesideOther,
  kBesideCount,
};

// What the bytes since the last cut are.
enum Shape : std::uint8_t {
  kStart,
  kWord,       // Before, Case, length - 1
  kDigits,     // run or kDigitsAfterSpaces, length - 1
  kMarkInRun,  // A mark after a word that looks like base64.
  kLineInRun,
  kOneSpaceSoFar,
  kSpaces,
  kOneTab,
  kTabs,    // And spaces.
  kLines,   // 0: one, 1: more
  kIndent,  // A line break, then 0: one space, 1: more
  kTabIndent,
  kSingleMark,    // 1 if after a space, ByteClass - kComma
  kMarks,         // 1 if after a space, MarkRun, length - 2
  kLongMarks,     // MarkRun
  kMarksAndLine,  // MarkRun, length - 1
  kCharacter,     // ByteClass - kLatin, Beside
  kBrokenByte,
  // Never a state: the price of a word that a kLatinLetter continues.
  kWordBeforeLatin,
  kShapeCount,
};

struct State {
  Shape shape = kStart;
  int a = 0;
  int b = 0;
  int c = 0;
};

// How many values `a`, `b` and `c` have for each shape.
inline constexpr std::array<std::array<int, 3>, kShapeCount> kStateSizes = {{
    {1, 1, 1},
    {kBeforeCount, kCaseCount, 4},
    {kDigitsAfterSpaces + 1, 3, 1},
    {1, 1, 1},
    {1, 1, 1},
    {1, 1, 1},
    {1, 1, 1},
    {1, 1, 1},
    {1, 1, 1},
    {2, 1, 1},
    {2, 1, 1},
    {1, 1, 1},
    {2, kRepeat - kComma, 1},
    {2, kMarkRunCount, kMarksMax - 1},
    {kMarkRunCount, 1, 1},
    {kMarkRunCount, kMarksMax, 1},
    {kScriptCount, kBesideCount, 1},
    {1, 1, 1},
    {1, 1, 1},
}};

// The number of the first state of each shape, and of all states.
inline constexpr auto kFirstStates = [] {
  std::array<int, kShapeCount + 1> first = {};
  for (std::size_t shape = 0; shape < kShapeCount; ++shape) {
    const auto& size = kStateSizes[shape];
    first[shape + 1] = first[shape] + size[0] * size[1] * size[2];
  }
  return first;
}();
inline constexpr int kStateCount = kFirstStates[kShapeCount];

// The number of a state, from 0.
constexpr int IndexOf(const State& state) {
  const auto& size = kStateSizes[state.shape];
  return kFirstStates[state.shape] + (state.a * size[1] + state.b) * size[2] +
         state.c;
}

// The state with the number `index`.
constexpr State StateAt(int index) {
  std::size_t shape = 0;
  while (kFirstStates[shape + 1] <= index) ++shape;
  const auto& size = kStateSizes[shape];
  const int rest = index - kFirstStates[shape];
  return {static_cast<Shape>(shape), rest / (size[1] * size[2]),
          rest / size[2] % size[1], rest % size[2]};
}

// What a byte does: leads to a state and, where it begins a piece, ends the one
// before, which is paid for as `ended`.
struct Transition {
  State next;
  bool cuts = false;
  State ended = {};
};

constexpr State WordAfter(Before before, ByteClass c) {
  return {kWord, before, c == kLower ? kLowerCase : kUpperCase, 0};
}

constexpr State WordInRun(int run, ByteClass c) {
  return WordAfter(static_cast<Before>(kRun0 + run), c);
}

constexpr State CharacterBeside(ByteClass c, Beside beside) {
  return {kCharacter, c - kLatin, beside};
}

// The state after `c` as the first byte of a piece, or the second after a space
// that belongs to it.
constexpr State Begin(ByteClass c, bool after_space = false) {
  if (IsLetter(c)) return WordAfter(after_space ? kOneSpace : kNothing, c);
  if (c == kRepeat) c = kMark;
  if (IsMark(c)) return {kSingleMark, after_space ? 1 : 0, c - kComma};
  if (IsScript(c)) {
    return CharacterBeside(c, after_space ? kBesideSpace : kBesideNothing);
  }
  if (c == kDigit) return {kDigits};
  if (c == kSpace) return {kOneSpaceSoFar};
  if (c == kTab) return {kOneTab};
  if (c == kLine) return {kLines};
  return {kBrokenByte};
}

// Whether a space before `c` belongs to what `c` begins.
constexpr bool TakesSpace(ByteClass c) {
  return IsLetter(c) || IsMark(c) || IsScript(c);
}

// Random letters and digits change case and kind at almost every byte, names
// every few.
constexpr int RunAfter(int run, int length, bool capital_follows) {
  if (length <= 2) return std::min(run + 1, kRunMax);
  return capital_follows && length > 3 ? std::max(run - 1, 0) : run;
}

constexpr Transition FollowWord(State state, ByteClass c) {
  const int run = std::max(state.a - kRun0, 0);
  const int length = state.c + 1;
  const State longer = {kWord, state.a, state.b, std::min(state.c + 1, 3)};
  if (c == kLower) {
    State next = longer;
    if (state.b == kUpperCase) next.b = kCapitals;
    return {next};
  }
  if (c == kUpper) {
    if (state.b == kUpperCase) return {longer};
    return {WordInRun(RunAfter(run, length, true), c), true, state};
  }
  if (c == kDigit) {
    return {{kDigits, RunAfter(run, length, false)}, true, state};
  }
  if (IsMark(c) && run == kRunMax) return {{kMarkInRun}, true, state};
  if (c == kLine && run == kRunMax) return {{kLineInRun}, true, state};
  if (IsScript(c)) {
    return {CharacterBeside(c, kBesideWord), true,
            IsLatin(c) ? State{kWordBeforeLatin} : state};
  }
  return {Begin(c), true, state};
}

constexpr Transition FollowDigits(State state, ByteClass c) {
  const int run = state.a == kDigitsAfterSpaces ? 0 : state.a;
  if (c == kDigit) {
    if (state.b < 2) return {{kDigits, state.a, state.b + 1}};
    return {{kDigits, run}, true, state};
  }
  if (IsLetter(c)) {
    return {WordInRun(std::min(run + 1, kRunMax), c), true, state};
  }
  if (IsMark(c) && run == kRunMax) return {{kMarkInRun}, true, state};
  if (c == kLine && run == kRunMax) return {{kLineInRun}, true, state};
  return {Begin(c), true, state};
}

// Spaces, tabs and line breaks: all up to the last line break are one piece;
// the last space is the next piece's.
constexpr Transition FollowBlank(State state, ByteClass c) {
  const bool indent = state.shape == kIndent || state.shape == kTabIndent;
  const bool lines = state.shape == kLines || state.shape == kLineInRun;
  const bool tabs = state.shape == kOneTab || state.shape == kTabs ||
                    state.shape == kTabIndent;
  const bool spaces = state.shape == kOneSpaceSoFar || state.shape == kSpaces ||
                      state.shape == kIndent;
  if (c == kLine) return {{kLines, indent || lines ? 1 : 0}};
  if (lines && c == kSpace) return {{kIndent}};
  if (lines && c == kTab) return {{kTabIndent}};
  if (state.shape == kTabIndent && c == kSpace) return {state};
  if (indent && c == kTab) return {{kTabIndent}};
  if (indent && c == kSpace) return {{kIndent, 1}};
  if (tabs && (c == kTab || c == kSpace)) return {{kTabs}};
  if (spaces && c == kTab) return {{kTabs}};
  if (spaces && c == kSpace) return {{kSpaces}};
  if (state.shape == kLineInRun) {
    if (IsLetter(c)) return {WordInRun(kRunMax - 1, c), true, state};
    if (c == kDigit) return {{kDigits, kRunMax - 1}, true, state};
  }
  if (tabs && IsLetter(c)) {
    return {WordAfter(kOneMark, c), state.shape != kOneTab, state};
  }
  if (!spaces) return {Begin(c), true, state};
  if (state.shape == kOneSpaceSoFar) {
    return {Begin(c, TakesSpace(c)), !TakesSpace(c), state};
  }
  if (c == kDigit) return {{kDigits, kDigitsAfterSpaces}, true, state};
  return {Begin(c, TakesSpace(c)), true, state};
}

constexpr MarkRun RunOfMark(ByteClass c) {
  if (c == kBackslash) return kEscapes;
  return c == kComma || c == kBrace ? kJsonMarks : kMixedMarks;
}

constexpr Before BeforeOfMark(ByteClass c) {
  if (c == kComma || c == kDot) return kOneDot;
  return c == kDash ? kOneDash : kOneMark;
}

// The kind of a run of marks of kind `run` and `length` that `c` continues.
constexpr MarkRun Continue(MarkRun run, int length, ByteClass c) {
  if (run == kEscapes && length > 1) return kEscapes;
  if (c == kRepeat) return length == 1 ? kSameMarks : run;
  if (c == kBackslash || run == kEscapes) return kEscapes;
  return run == kJsonMarks && RunOfMark(c) == kJsonMarks ? kJsonMarks
                                                         : kMixedMarks;
}

constexpr Transition FollowMarks(State state, ByteClass c) {
  const bool single = state.shape == kSingleMark;
  const auto mark = static_cast<ByteClass>(kComma + state.b);
  const MarkRun run = single ? RunOfMark(mark) : static_cast<MarkRun>(state.b);
  const int length = single ? 1 : state.c + 2;
  if (IsMark(c)) {
    const MarkRun next = Continue(run, length, c);
    if (length == kMarksMax && next != kSameMarks) {
      return {{kLongMarks, next}, true, state};
    }
    return {{kMarks, state.a, next, std::min(length + 1, kMarksMax) - 2}};
  }
  if (c == kLine) return {{kMarksAndLine, run, length - 1}};
  if (single && state.a == 0 && IsLetter(c)) {
    return {WordAfter(BeforeOfMark(mark), c)};
  }
  if (IsLetter(c)) return {WordAfter(kManyMarks, c), true, state};
  return {Begin(c), true, state};
}

constexpr Transition FollowLongMarks(State state, ByteClass c) {
  const auto run = static_cast<MarkRun>(state.a);
  if (c == kRepeat) return {state};
  if (IsMark(c)) {
    return {{kLongMarks, Continue(run, kMarksMax, c)}, true, state};
  }
  if (c == kLine) return {{kMarksAndLine, kMixedMarks, 1}, true, state};
  if (IsLetter(c)) return {WordAfter(kManyMarks, c), true, state};
  return {Begin(c), true, state};
}

constexpr Transition FollowMarkInRun(State state, ByteClass c) {
  if (IsLetter(c)) return {WordInRun(kRunMax - 1, c)};
  if (c == kDigit) return {{kDigits, kRunMax - 1}, true, state};
  if (IsMark(c)) return {{kMarks, 0, kMixedMarks, 0}};
  if (c == kLine) return {{kMarksAndLine, kMixedMarks, 0}};
  return {Begin(c), true, state};
}

constexpr Transition FollowCharacter(State state, ByteClass c) {
  const auto script = static_cast<ByteClass>(kLatin + state.a);
  if (c == kContinuation) return {state};
  if (IsScript(c)) {
    return {CharacterBeside(c, c == script ? kBesideSame : kBesideOther), true,
            state};
  }
  if (IsLetter(c)) {
    return {WordAfter(IsLatin(script) ? kLatinLetter : kManyMarks, c), true,
            state};
  }
  return {Begin(c), true, state};
}

// What a byte of class `c` does in `state`.
constexpr Transition Follow(State state, ByteClass c) {
  switch (state.shape) {
    case kStart:
      return {Begin(c)};
    case kWord:
      return FollowWord(state, c);
    case kDigits:
      return FollowDigits(state, c);
    case kMarkInRun:
      return FollowMarkInRun(state, c);
    case kLineInRun:
    case kOneSpaceSoFar:
    case kSpaces:
    case kOneTab:
    case kTabs:
    case kLines:
    case kIndent:
    case kTabIndent:
      return FollowBlank(state, c);
    case kSingleMark:
    case kMarks:
      return FollowMarks(state, c);
    case kLongMarks:
      return FollowLongMarks(state, c);
    case kMarksAndLine:
      if (c == kLine) return {state};
      break;
    case kCharacter:
      return FollowCharacter(state, c);
    case kBrokenByte:
    case kWordBeforeLatin:
    case kShapeCount:
      break;
  }
  return {Begin(c), true, state};
}

}  // namespace clerestory::internal

#endif  // CLERESTORY_SERVER_TOKENS_TOKEN_STATES_H_
