// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/digest.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace clerestory {
namespace {

// The examples of FIPS 180-2, appendix B.
TEST(DigestTest, IsSha256) {
  EXPECT_EQ(Digest::Of("").ToHex(),
            "e3b0c44298fc1c149afbf4c8996fb924"
            "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Digest::Of("abc").ToHex(),
            "ba7816bf8f01cfea414140de5dae2223"
            "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Digest::Of(std::string(1'000'000, 'a')).ToHex(),
            "cdc76e5c9914fb9281a1c7e284d73e67"
            "f1809a48a497200e046d39ccc7112cd0");
}

TEST(DigestTest, TakesAnyBytes) {
  const std::string zero(1, '\0');
  EXPECT_NE(Digest::Of(zero), Digest::Of(""));
  EXPECT_NE(Digest::Of("a" + zero + "b"), Digest::Of("a" + zero + "c"));
}

TEST(DigestTest, OfNothingIsZero) {
  EXPECT_EQ(Digest().ToHex(), std::string(64, '0'));
  EXPECT_NE(Digest(), Digest::Of(""));
}

TEST(DigestTest, ThenIsTheDigestOfBothOneBehindTheOther) {
  const Digest a = Digest::Of("a");
  const Digest b = Digest::Of("b");
  EXPECT_EQ(a.Then(b),
            Digest::Of(absl::HexStringToBytes(a.ToHex() + b.ToHex())));
}

TEST(DigestTest, ThenTellsOrderAndBordersApart) {
  const Digest a = Digest::Of("a");
  const Digest b = Digest::Of("b");
  const Digest ab = Digest().Then(a).Then(b);
  EXPECT_EQ(ab, Digest().Then(a).Then(b));
  EXPECT_NE(ab, Digest().Then(b).Then(a));
  EXPECT_NE(ab, Digest().Then(Digest::Of("ab")));
  EXPECT_NE(ab, Digest().Then(a));
}

}  // namespace
}  // namespace clerestory
