// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/class_token_counter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/tokens/byte_class.h"
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"
#include "server/tokens/token_states.h"
#include "server/tokens/token_weights.h"
#include "server/tokens/unescape.h"

namespace clerestory {
namespace internal {
namespace {

constexpr std::int64_t kHundredthsPerToken = 100;

// A piece costs its price and its letters' together, and at least `least`.
struct Price {
  std::int16_t price = 0;
  std::int16_t least = 0;
};

constexpr Price PriceOf(State state) {
  const auto a = static_cast<std::size_t>(state.a);
  const auto b = static_cast<std::size_t>(state.b);
  const auto c = static_cast<std::size_t>(state.c);
  switch (state.shape) {
    case kWord:
      return {kWordPrices[a][b],
              state.a == kLatinLetter ? std::int16_t{0} : kWordPriceMin};
    case kWordBeforeLatin:
      return {kWordBeforeLatinPrice};
    case kDigits:
      return {state.a == kDigitsAfterSpaces ? kDigitsAfterSpacesPrice
                                            : kDigitsPrice};
    case kMarkInRun:
      return {kMarkInRunPrice};
    case kLineInRun:
      return {kLineInRunPrice};
    case kOneSpaceSoFar:
      return {kOneSpacePrice};
    case kSpaces:
      return {kSpacesPrice};
    case kOneTab:
      return {kOneTabPrice};
    case kTabs:
      return {kTabsPrice};
    case kTabIndent:
      return {kTabIndentPrice};
    case kLines:
      return {kLinesPrices[a]};
    case kIndent:
      return {kIndentPrices[a]};
    case kSingleMark: {
      const MarkRun run = RunOfMark(static_cast<ByteClass>(kComma + state.b));
      return {a == 0 ? kMarksPrices[run][0] : kMarksAfterSpacePrices[run][0]};
    }
    case kMarks:
      return {a == 0 ? kMarksPrices[b][c + 1]
                     : kMarksAfterSpacePrices[b][c + 1]};
    case kLongMarks:
      return {kLongMarksPrices[a]};
    case kMarksAndLine:
      return {kMarksAndLinePrices[a][b]};
    case kCharacter:
      return {kCharacterPrices[a][b]};
    case kBrokenByte:
      return {kBrokenBytePrice};
    case kStart:
    case kShapeCount:
      break;
  }
  return {};
}

// What is known of a byte alone. One that is equal to the byte before it has
// the second class.
struct alignas(8) ByteTraits {
  std::array<std::uint8_t, 2> classes = {};
  std::uint8_t letter = 0;       // Its column of kLetterPrices.
  std::uint16_t letter_row = 0;  // The first index of its row there.
};

// Of every byte, and behind them of what stands before the first one.
constexpr std::size_t kNoByte = 256;
constexpr auto kBytes = [] {
  std::array<ByteTraits, kNoByte + 1> bytes = {};
  for (std::size_t byte = 0; byte < kNoByte; ++byte) {
    const ByteClass byte_class = ClassOf(static_cast<int>(byte));
    // Letters count from 1 in their last five bits, in either case.
    const auto letter =
        static_cast<std::uint8_t>(IsLetter(byte_class) ? byte & 31 : 0);
    bytes[byte] = {{byte_class, IsMark(byte_class) ? kRepeat : byte_class},
                   letter,
                   static_cast<std::uint16_t>(letter * kLetterCount)};
  }
  return bytes;
}();

// What a byte does in a state: Follow and PriceOf as a table with one row for
// each state.
struct Step {
  std::uint16_t next_row = 0;
  std::uint16_t end = 0;  // An index of kEnds.
};

// How a piece ends: the first not at all, and whatever its letters cost that
// adds nothing, the others as the states do.
struct alignas(32) End {
  std::int64_t price = 0;
  std::int64_t least = 0;
  std::int64_t goes_on = 0;  // All bits if it does, else none.
};

// Below what the letters of any text cost.
constexpr std::int64_t kFree = std::numeric_limits<std::int64_t>::min() / 2;

constexpr std::size_t kStepRow = 32;
static_assert(kByteClassCount <= kStepRow);
static_assert(kStateCount * kStepRow <= 1 << 16);

constexpr auto kEnds = [] {
  std::array<End, kStateCount + 1> ends = {};
  ends[0] = {kFree, 0, -1};
  for (int i = 0; i < kStateCount; ++i) {
    const Price price = PriceOf(StateAt(i));
    ends[static_cast<std::size_t>(i) + 1] = {price.price, price.least, 0};
  }
  return ends;
}();

constexpr std::array<Step, kStepRow> RowOf(const State& state) {
  std::array<Step, kStepRow> row = {};
  for (int c = 0; c < kByteClassCount; ++c) {
    const Transition transition = Follow(state, static_cast<ByteClass>(c));
    Step& step = row[static_cast<std::size_t>(c)];
    step.next_row =
        static_cast<std::uint16_t>(IndexOf(transition.next) * int{kStepRow});
    if (transition.cuts) {
      step.end = static_cast<std::uint16_t>(IndexOf(transition.ended) + 1);
    }
  }
  return row;
}

// Each row is a constant of its own: clang evaluates only so much for one.
template <int kState>
constexpr std::array<Step, kStepRow> kRow = RowOf(StateAt(kState));

constexpr auto kSteps =
    []<int... kStates>(std::integer_sequence<int, kStates...> /*all*/) {
      std::array<Step, kStateCount * kStepRow> steps = {};
      Step* end = steps.data();
      for (const auto* row : {&kRow<kStates>...}) {
        end = std::copy(row->begin(), row->end(), end);
      }
      return steps;
    }(std::make_integer_sequence<int, kStateCount>());

// Adds up the pieces of a text.
class Sum {
 public:
  // Without a branch that depends on the text, which would be mispredicted at
  // every other piece. The tables are indexed by pointer since every index is
  // within them, whatever the bytes: rows and columns come from the tables.
  void Add(absl::string_view run) {
    Sum sum = *this;
    for (const char c : run) sum.AddByte(static_cast<std::uint8_t>(c));
    *this = sum;
  }

  // The tokens of what was added.
  std::int64_t Tokens() const {
    const std::int64_t total = total_ + Cost(kEnds[row_ / kStepRow + 1]);
    return std::max<std::int64_t>(
        1, (total + kHundredthsPerToken / 2) / kHundredthsPerToken);
  }

 private:
  std::int64_t Cost(const End& end) const {
    return std::max(end.price + letters_, end.least);
  }

  void AddByte(std::uint8_t byte) {
    const ByteTraits* traits = kBytes.data() + byte;
    const Step* column =
        kSteps.data() + traits->classes.data()[traits == before_];
    const Step& step = column[row_];
    row_ = step.next_row;
    const End& end = kEnds.data()[step.end];
    total_ += Cost(end);
    const std::size_t letter_row =
        before_->letter_row & static_cast<std::size_t>(end.goes_on);
    letters_ = (letters_ & end.goes_on) +
               kLetterPrices.data()[letter_row + traits->letter];
    before_ = traits;
  }

  // All in hundredths of a token: the pieces so far, and the letters of the
  // piece that has not ended.
  std::int64_t total_ = 0;
  std::int64_t letters_ = 0;
  std::size_t row_ = static_cast<std::size_t>(IndexOf({kStart})) * kStepRow;
  const ByteTraits* before_ = kBytes.data() + kNoByte;
};

}  // namespace
}  // namespace internal

namespace {

class ClassCounter final : public TokenCounter {
 public:
  std::int64_t CountText(absl::string_view text, TextForm form) const override {
    if (text.empty()) return 0;
    internal::Sum sum;
    ForEachRun(text, form, [&sum](absl::string_view run) { sum.Add(run); });
    return sum.Tokens();
  }

  std::int64_t CountImage(absl::string_view base64,
                          ImageFormula formula) const override {
    return ImageTokens(base64, formula);
  }
};

}  // namespace

const TokenCounter& ClassTokenCounter() {
  static const ClassCounter counter;
  return counter;
}

}  // namespace clerestory
