// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/token_states.h"

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/tokens/byte_class.h"

namespace clerestory::internal {
namespace {

TEST(TokenStatesTest, StatesAreNumberedWithoutGaps) {
  for (int i = 0; i < kStateCount; ++i) {
    EXPECT_EQ(IndexOf(StateAt(i)), i);
    EXPECT_LT(StateAt(i).shape, kShapeCount);
  }
}

TEST(TokenStatesTest, EveryByteLeadsFromEveryStateToAState) {
  for (int i = 0; i < kStateCount; ++i) {
    for (int c = 0; c < kByteClassCount; ++c) {
      const Transition transition =
          Follow(StateAt(i), static_cast<ByteClass>(c));
      for (const State& state : {transition.next, transition.ended}) {
        const auto& size = kStateSizes.at(state.shape);
        EXPECT_TRUE(state.a >= 0 && state.a < size[0]) << i << " " << c;
        EXPECT_TRUE(state.b >= 0 && state.b < size[1]) << i << " " << c;
        EXPECT_TRUE(state.c >= 0 && state.c < size[2]) << i << " " << c;
      }
      EXPECT_NE(transition.next.shape, kStart);
      EXPECT_NE(transition.next.shape, kWordBeforeLatin);
    }
  }
}

// How many pieces `text` is cut into.
int PieceCount(absl::string_view text) {
  State state;
  int count = 1;
  char previous = '\0';
  for (const char c : text) {
    ByteClass byte_class = ClassOf(static_cast<std::uint8_t>(c));
    if (IsMark(byte_class) && c == previous) byte_class = kRepeat;
    previous = c;
    const Transition transition = Follow(state, byte_class);
    state = transition.next;
    count += transition.cuts ? 1 : 0;
  }
  return count;
}

struct Cut {
  absl::string_view text;
  int piece_count;
};

TEST(TokenStatesTest, PiecesAreThoseOfTheVocabularysPattern) {
  for (const Cut& cut : std::vector<Cut>{
           {"word", 1},
           {" word", 1},
           {"(word", 1},
           {"\tword", 1},
           {"two words", 2},
           {"camelCase", 2},
           {"HTTPServer", 1},
           {"snake_case", 2},
           {"path/to/file.txt", 4},
           {"utf8", 2},
           {"123", 1},
           {"1234567", 3},
           {"a 1", 3},
           {"a = b", 3},
           {"f(x);\n", 3},
           {"f((x", 3},
           {"    word", 2},
           {"a\n    b", 3},
           {"a\n\n\n", 2},
           {"a  \n  \nb", 3},
           {"----------", 1},
           {"\xe4\xbd\xa0\xe5\xa5\xbd", 2},
       }) {
    EXPECT_EQ(PieceCount(cut.text), cut.piece_count) << cut.text;
  }
}

}  // namespace
}  // namespace clerestory::internal
