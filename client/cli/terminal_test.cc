// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/terminal.h"

#include "gtest/gtest.h"

namespace clerestory {
namespace {

TEST(TerminalTest, TheFirstColumnIsAlignedLeftAndTheOthersRight) {
  EXPECT_EQ(FormatTable({{"policy", "cost", "x"},
                         {"off", "1.00", "1"},
                         {"every_turn", "12345.00", "100"}}),
            "policy          cost    x\n"
            "off             1.00    1\n"
            "every_turn  12345.00  100\n");
}

TEST(TerminalTest, NoLineEndsInSpaces) {
  EXPECT_EQ(FormatTable({{"a", ""}, {"long", "1"}, {"b", ""}}),
            "a\nlong  1\nb\n");
}

TEST(TerminalTest, RowsMayHaveFewerCells) {
  EXPECT_EQ(FormatTable({{"a", "b", "c"}, {"dd"}, {}, {"e", "ff"}}),
            "a    b  c\ndd\n\ne   ff\n");
}

TEST(TerminalTest, NoRowsAreNoText) { EXPECT_EQ(FormatTable({}), ""); }

}  // namespace
}  // namespace clerestory
