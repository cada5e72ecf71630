// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_METRICS_DESCRIBE_METRICS_H_
#define CLERESTORY_SERVER_METRICS_DESCRIBE_METRICS_H_

#include <string>

namespace clerestory {

// METRICS.md: the catalogue as a table.
std::string DescribeMetrics();

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_METRICS_DESCRIBE_METRICS_H_
