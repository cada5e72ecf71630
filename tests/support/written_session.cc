// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/written_session.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/model/record.h"
#include "tests/support/records.h"

namespace clerestory {

std::int64_t WrittenRecords(std::int64_t write) { return write % 3 + 1; }

Record WrittenRecord(const SessionKey& key, std::int64_t number) {
  // Of some hundred bytes to some hundred kilobytes, and hard to compress.
  const std::int64_t size =
      number % 16 == 15 ? 300'000 : 100 + number % 7 * 800;
  std::string message = absl::StrCat(key.session, " ", number, " ");
  auto state = static_cast<std::uint64_t>(number) + 1;
  while (static_cast<std::int64_t>(message.size()) < size) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    message.push_back(static_cast<char>(state >> 56));
  }
  return MessageRecord(message);
}

}  // namespace clerestory
