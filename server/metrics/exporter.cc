// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/exporter.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"

namespace clerestory {
namespace {

// What clients that send nothing may hold; a scrape takes milliseconds.
constexpr char kThreads[] = "4";
constexpr char kTimeoutMillis[] = "5000";

double Exported(std::int64_t value, MetricUnit unit) {
  return static_cast<double>(value) / static_cast<double>(DivisorOf(unit));
}

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram HistogramOf(const MetricSeries& series,
                                                MetricUnit unit) {
  prometheus::ClientMetric::Histogram histogram;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < series.buckets.size(); ++i) {
    count += static_cast<std::uint64_t>(series.buckets[i]);
    histogram.bucket.push_back(
        {.cumulative_count = count,
         .upper_bound = i < kLatencyBounds.size()
                            ? Exported(kLatencyBounds.at(i), unit)
                            : std::numeric_limits<double>::infinity()});
  }
  histogram.sample_count = count;
  histogram.sample_sum = Exported(series.value, unit);
  return histogram;
}

prometheus::MetricFamily FamilyOf(const MetricDefinition& definition,
                                  const std::vector<MetricSeries>& all) {
  prometheus::MetricFamily family;
  family.name = std::string(definition.name);
  family.help = std::string(definition.help);
  family.type = TypeOf(definition.type);
  for (const MetricSeries& series : all) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (std::size_t i = 0; i < series.labels.size(); ++i) {
      metric.label.push_back({.name = std::string(definition.labels.at(i).name),
                              .value = series.labels[i]});
    }
    const double value = Exported(series.value, definition.unit);
    switch (definition.type) {
      case MetricType::kCounter:
        metric.counter.value = value;
        break;
      case MetricType::kGauge:
        metric.gauge.value = value;
        break;
      case MetricType::kHistogram:
        metric.histogram = HistogramOf(series, definition.unit);
        break;
    }
  }
  return family;
}

// The catalogue and its values, each time that they are asked for.
class MetricsCollectable final : public prometheus::Collectable {
 public:
  MetricsCollectable(const ServerMetrics& metrics,
                     std::function<void()> refresh)
      : metrics_(metrics), refresh_(std::move(refresh)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    refresh_();
    const std::vector<std::vector<MetricSeries>> all = metrics_.Read();
    std::vector<prometheus::MetricFamily> families;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].empty()) continue;
      families.push_back(FamilyOf(Catalogue()[i], all[i]));
    }
    return families;
  }

 private:
  const ServerMetrics& metrics_;
  const std::function<void()> refresh_;
};

}  // namespace

struct MetricsExporter::Server {
  // Held weakly by the server, which ends first.
  std::shared_ptr<MetricsCollectable> collectable;
  std::unique_ptr<prometheus::Exposer> exposer;
};

absl::StatusOr<std::unique_ptr<MetricsExporter>> MetricsExporter::Start(
    absl::string_view address, const ServerMetrics& metrics,
    std::function<void()> refresh) {
  auto server = std::make_unique<Server>();
  server->collectable =
      std::make_shared<MetricsCollectable>(metrics, std::move(refresh));
  try {
    server->exposer =
        std::make_unique<prometheus::Exposer>(std::vector<std::string>{
            "listening_ports", std::string(address), "num_threads", kThreads,
            "request_timeout_ms", kTimeoutMillis});
    server->exposer->RegisterCollectable(server->collectable);
  } catch (const std::exception&) {
    return FieldError("metrics_address",
                      absl::StrCat("cannot listen on \"", address,
                                   "\"; is another server running there?"));
  }
  const std::vector<int> ports = server->exposer->GetListeningPorts();
  std::string bound = absl::StrCat(address.substr(0, address.rfind(':') + 1),
                                   ports.empty() ? 0 : ports.front());
  return std::unique_ptr<MetricsExporter>(
      new MetricsExporter(std::move(server), std::move(bound)));
}

MetricsExporter::MetricsExporter(std::unique_ptr<Server> server,
                                 std::string address)
    : server_(std::move(server)), address_(std::move(address)) {}

MetricsExporter::~MetricsExporter() = default;

}  // namespace clerestory
