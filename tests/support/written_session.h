// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_WRITTEN_SESSION_H_
#define CLERESTORY_TESTS_SUPPORT_WRITTEN_SESSION_H_

#include <cstdint>

#include "server/model/record.h"

namespace clerestory {

// What store_writer writes, so that others can tell what should be there.

// How many records its write `write` of a session has.
std::int64_t WrittenRecords(std::int64_t write);

// Record `number` of the session.
Record WrittenRecord(const SessionKey& key, std::int64_t number);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_WRITTEN_SESSION_H_
