// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_COST_BUILT_IN_PRICES_H_
#define CLERESTORY_SERVER_COST_BUILT_IN_PRICES_H_

#include "absl/strings/string_view.h"

namespace clerestory {

// The text of deploy/prices.yaml.
absl::string_view BuiltInPricesYaml();

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_COST_BUILT_IN_PRICES_H_
