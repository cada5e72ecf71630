// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_POLICY_CHECK_POLICY_H_
#define CLERESTORY_SERVER_POLICY_CHECK_POLICY_H_

#include <string>
#include <vector>

#include "server/policy/policy.h"

namespace clerestory {

// What CheckPolicy refuses.
struct Contradiction {
  // The field that is to be changed, as in PolicyFieldNames, `tools[0]` or
  // `tools[0].keep_observations`.
  std::string field;
  // What is wrong and what to write instead; other fields by those names.
  std::string what;
};

// All contradictions in `policy`; none if CheckPolicy takes it. Pure.
std::vector<Contradiction> FindContradictions(const Policy& policy);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_POLICY_CHECK_POLICY_H_
