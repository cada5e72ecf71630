// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/model/labels.h"

#include <string>

#include "gtest/gtest.h"
#include "server/base/limits.h"

namespace clerestory {
namespace {

TEST(LabelsTest, KeysAndValuesAreNamesOfACertainLength) {
  for (const char* const key : {"a", "team/name", "A-Z_0.9"}) {
    EXPECT_EQ(LabelKeyProblem(key), "");
  }
  for (const char* const value : {"1", "a@b.c:8080/x+y_z-0"}) {
    EXPECT_EQ(LabelValueProblem(value), "");
  }
  EXPECT_EQ(LabelKeyProblem(std::string(kLabelKeyBytesMax, 'k')), "");
  EXPECT_EQ(LabelValueProblem(std::string(kLabelValueBytesMax, 'v')), "");
  for (const char* const text :
       {"", "a b", "a*", "\xC3\xA4", "a\n", "=", "%"}) {
    EXPECT_EQ(LabelKeyProblem(text),
              "the name of a label has 1 to 63 letters, digits, _, -, . and /; "
              "write another");
    EXPECT_EQ(LabelValueProblem(text),
              "expected 1 to 128 letters, digits, _, -, ., /, :, @ and +");
  }
  EXPECT_NE(LabelKeyProblem(std::string(kLabelKeyBytesMax + 1, 'k')), "");
  EXPECT_NE(LabelValueProblem(std::string(kLabelValueBytesMax + 1, 'v')), "");
  EXPECT_NE(LabelKeyProblem("a:b"), "");
}

}  // namespace
}  // namespace clerestory
