// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_RECORDS_H_
#define CLERESTORY_TESTS_SUPPORT_RECORDS_H_

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/model/record.h"
#include "server/model/session_totals.h"

namespace clerestory {

// A header of an open session, with nothing at its default.
SessionHeader OpenHeader(const SessionKey& key);

// A record of a message.
Record MessageRecord(std::string message);

// The message of a record; fails the test if it is none.
std::string MessageOf(const Record& record);

// A record of each kind with no field at its default.
std::vector<Record> FullRecords();

// Totals with every field set.
SessionTotals FullTotals();

// A record of each kind with every field at its default, or at zero.
std::vector<Record> DefaultRecords();

// Whether all fields are equal; of messages, the bytes.
bool SameRecord(const Record& a, const Record& b);

// A vector of records equal to those of `expected`.
MATCHER_P(SameRecords, expected, "has the same records") {
  if (arg.size() != expected.size()) {
    *result_listener << "which has " << arg.size() << " records";
    return false;
  }
  for (std::size_t i = 0; i < arg.size(); ++i) {
    if (!SameRecord(arg[i], expected[i])) {
      *result_listener << "which differs at " << i;
      return false;
    }
  }
  return true;
}

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_RECORDS_H_
