// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/session_store.h"

#include <string>

#include "absl/strings/string_view.h"
#include "server/base/digest.h"

namespace clerestory {

std::string PolicyEtag(absl::string_view yaml) {
  return Digest::Of(yaml).ToHex().substr(0, 32);
}

}  // namespace clerestory
