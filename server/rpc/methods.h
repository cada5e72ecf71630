// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_METHODS_H_
#define CLERESTORY_SERVER_RPC_METHODS_H_

#include <vector>

#include "server/metrics/server_metrics.h"

namespace clerestory {

// The methods of all our services, as their descriptors have them.
std::vector<RpcMethod> RpcMethods();

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_METHODS_H_
