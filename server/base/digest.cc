// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/digest.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace clerestory {

Digest Digest::Of(absl::string_view bytes) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         digest.bytes_.data());
  return digest;
}

Digest Digest::Then(const Digest& element) const {
  std::array<std::uint8_t, 64> both;
  std::copy(bytes_.begin(), bytes_.end(), both.begin());
  std::copy(element.bytes_.begin(), element.bytes_.end(), both.begin() + 32);
  Digest digest;
  SHA256(both.data(), both.size(), digest.bytes_.data());
  return digest;
}

std::string Digest::ToHex() const {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(bytes_.data()), bytes_.size()));
}

}  // namespace clerestory
