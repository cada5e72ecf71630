// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_RANDOM_NOTES_H_
#define CLERESTORY_TESTS_SUPPORT_RANDOM_NOTES_H_

#include <set>
#include <string>

#include "server/base/time.h"
#include "server/model/record.h"
#include "server/view/session.h"
#include "tests/support/random_session.h"

namespace clerestory {

// What may be noted of `session` between two views: that one of its
// observations repeats another, by any kind; that one was recalled; that one,
// or a tool, is pinned or is not any more.
Record RandomNote(const Session& session, TimeMicros now, Random& random);

// Some of the tools that random sessions have.
std::set<std::string> RandomTools(Random& random);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_RANDOM_NOTES_H_
