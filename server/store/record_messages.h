// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_RECORD_MESSAGES_H_
#define CLERESTORY_SERVER_STORE_RECORD_MESSAGES_H_

#include <optional>

#include "clerestory/storage/v1/record.pb.h"
#include "clerestory/storage/v1/session_totals.pb.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/session_totals.h"

namespace clerestory {

// Records as the messages that a store keeps, field for field. Pure; safe from
// any thread.

storage::v1::Format ToStored(Format format);
storage::v1::Outcome ToStored(Outcome outcome);
storage::v1::Record ToStored(const Record& record);
storage::v1::SessionTotals ToStored(const SessionTotals& totals);

// Nothing if `from` is none that ToStored makes. Takes what it can out of
// `from`.
std::optional<Record> FromStored(storage::v1::Record& from);
std::optional<SessionTotals> FromStored(storage::v1::SessionTotals& from);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_RECORD_MESSAGES_H_
