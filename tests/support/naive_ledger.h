// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_NAIVE_LEDGER_H_
#define CLERESTORY_TESTS_SUPPORT_NAIVE_LEDGER_H_

#include <string>
#include <utility>
#include <vector>

#include "server/model/record.h"
#include "server/view/session_parts.h"

namespace clerestory {

// What the ledger of a session has to say to which `views` were served, of
// messages alone: neither calls nor their arguments were masked. `reports` come
// with the view that was served last before each.
Ledger NaiveLedger(
    const std::vector<ViewServed>& views,
    const std::vector<std::pair<UsageReported, ViewServed>>& reports);

// What a view decides, in one line.
std::string DecisionText(const ViewServed& view);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_NAIVE_LEDGER_H_
