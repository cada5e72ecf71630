// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_DIGEST_H_
#define CLERESTORY_SERVER_BASE_DIGEST_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// A SHA-256 value.
class Digest {
 public:
  // All bytes zero: the digest of a view without messages.
  constexpr Digest() = default;

  // The SHA-256 of `bytes`.
  static Digest Of(absl::string_view bytes);

  // The digest of a sequence that is `this` followed by an element with digest
  // `element`: the SHA-256 of the 64 bytes of both. So the digest of every
  // leading part of a sequence is known once the whole one is.
  Digest Then(const Digest& element) const;

  // 64 lower-case hexadecimal digits.
  std::string ToHex() const;

  friend bool operator==(const Digest&, const Digest&) = default;

 private:
  std::array<std::uint8_t, 32> bytes_ = {};
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_DIGEST_H_
