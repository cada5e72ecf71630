// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_METRICS_EXPORTER_H_
#define CLERESTORY_SERVER_METRICS_EXPORTER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/metrics/server_metrics.h"

namespace clerestory {

// Serves the metrics over HTTP, as `/metrics`, to whoever can connect. The one
// place that sees prometheus-cpp.
class MetricsExporter {
 public:
  // Listens on `address`, "HOST:PORT"; port 0 takes a free one. Before each
  // answer it calls `refresh`, by any thread, for what is known elsewhere.
  // kFieldInvalid of the field `metrics_address` if it cannot be listened on.
  // `metrics`, and what `refresh` uses, must outlive it.
  static absl::StatusOr<std::unique_ptr<MetricsExporter>> Start(
      absl::string_view address, const ServerMetrics& metrics,
      std::function<void()> refresh);
  MetricsExporter(const MetricsExporter&) = delete;
  MetricsExporter& operator=(const MetricsExporter&) = delete;
  // Ends what is being answered first; that takes up to two seconds.
  ~MetricsExporter();

  // Where it listens, with the port that it was given.
  const std::string& address() const { return address_; }

 private:
  struct Server;
  MetricsExporter(std::unique_ptr<Server> server, std::string address);

  const std::unique_ptr<Server> server_;
  const std::string address_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_METRICS_EXPORTER_H_
