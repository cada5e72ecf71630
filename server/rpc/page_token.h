// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_PAGE_TOKEN_H_
#define CLERESTORY_SERVER_RPC_PAGE_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clerestory {

// Where a list goes on. A token is opaque to clients, holds nothing that they
// do not know, and authorises nothing: it is tied to the list it comes from so
// that one cannot be taken for another's.

// The token for going on after `position` in the list `scope` (the method, the
// tenant, and what else the list depends on).
std::string MakePageToken(absl::string_view scope, absl::string_view position);

// The position in `token`, "" for the empty token. INVALID_ARGUMENT with
// kPageTokenInvalid if it was not made for `scope`.
absl::StatusOr<std::string> ReadPageToken(absl::string_view scope,
                                          absl::string_view token);

// The page size that `asked` stands for. kFieldInvalid if it is negative.
absl::StatusOr<std::int64_t> PageSize(std::int32_t asked);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_PAGE_TOKEN_H_
