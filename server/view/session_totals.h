// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_SESSION_TOTALS_H_
#define CLERESTORY_SERVER_VIEW_SESSION_TOTALS_H_

#include "server/model/session_totals.h"
#include "server/view/session.h"

namespace clerestory {

// What is to be kept of `session` when it is closed, as it stands. Reads the
// whole history (FindOverreading). Deterministic and pure.
SessionTotals TotalsOf(const Session& session);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_SESSION_TOTALS_H_
