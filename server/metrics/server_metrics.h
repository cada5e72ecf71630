// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_METRICS_SERVER_METRICS_H_
#define CLERESTORY_SERVER_METRICS_SERVER_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"
#include "server/metrics/bounded_names.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/tenant_sums.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {

// A method of a service, as gRPC names it.
struct RpcMethod {
  bool is_stream = false;    // Of the server.
  std::string service = {};  // clerestory.v1.ViewService
  std::string method = {};   // BuildView; no two services have the same.
};

// What happened to an observation of a tool, or what it repeats. In the order
// of the catalogue.
enum class ToolEvent {
  kMasked,
  kRefetch,
  kRecall,
  kDuplicate,
  kRefresh,
  kPaging,
  kPoll,
};

// States of a breaker, in the order of the catalogue and by what they are
// exported as.
enum class BreakerLabel { kClosed = 0, kHalfOpen = 1, kOpen = 2 };

// One series, as it is.
struct MetricSeries {
  // By the labels of the definition.
  std::vector<std::string> labels;
  // Of a histogram, the sum of what was observed.
  std::int64_t value = 0;
  // Of a histogram: how many observations are in each of kLatencyBounds, and
  // behind the last; not added up.
  std::vector<std::int64_t> buckets = {};
};

// The values of all metrics, as whole numbers. Nothing of what is counted goes
// beyond the catalogue's bounds, whatever callers send. Nothing here can fail,
// and sums stay at the largest number instead of going beyond it.
//
// Safe from any thread. Nothing blocks on anything but other callers.
class ServerMetrics {
 public:
  // Series whose labels are closed lists are there at once, at 0.
  ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // --- what is known before the first call

  // A method whose calls will be counted. REQUIRES: of up to kRpcMethodsMax.
  void DeclareRpc(const RpcMethod& method) CLERESTORY_EXCLUDES(mutex_);
  void SetBuildInfo(absl::string_view version, absl::string_view compiler,
                    absl::string_view storage) CLERESTORY_EXCLUDES(mutex_);
  // Gives a tenant with policies and the tools that these name places of their
  // own, if there are some left.
  void NameTenant(absl::string_view tenant,
                  const std::vector<std::string>& tools)
      CLERESTORY_EXCLUDES(mutex_);

  // --- calls; one that was not declared is not counted

  void RpcStarted(absl::string_view method) CLERESTORY_EXCLUDES(mutex_);
  void RpcHandled(absl::string_view method, absl::StatusCode code,
                  std::int64_t micros) CLERESTORY_EXCLUDES(mutex_);

  // --- metrics with at most one label, of a closed list

  // Adds to a counter. `value` is that of its label; "" if it has none.
  // REQUIRES: the catalogue has it.
  void Add(Metric metric, absl::string_view value, std::int64_t amount)
      CLERESTORY_EXCLUDES(mutex_);
  // Sets a gauge, or a counter that is counted elsewhere.
  void Set(Metric metric, absl::string_view value, std::int64_t amount)
      CLERESTORY_EXCLUDES(mutex_);

  // --- sessions

  // Adds to what sessions of `tenant` used.
  void AddToTenant(absl::string_view tenant, const TenantSums& amounts)
      CLERESTORY_EXCLUDES(mutex_);
  // A session ended. REQUIRES: `outcome` is not kOpen.
  void SessionEnded(absl::string_view tenant, Outcome outcome, bool is_control,
                    PicoUsd cost, PicoUsd full_cost)
      CLERESTORY_EXCLUDES(mutex_);

  // --- tools

  // `event` happened to `observations` of a tool, of so many tokens in all.
  void CountTool(absl::string_view tenant, absl::string_view tool,
                 ToolEvent event, std::int64_t observations,
                 std::int64_t tokens) CLERESTORY_EXCLUDES(mutex_);
  // The breaker of a tool is in `state`: when it was loaded, say.
  void SetBreaker(absl::string_view tenant, absl::string_view tool,
                  BreakerLabel state) CLERESTORY_EXCLUDES(mutex_);
  // It changed its state. Gives the tool a place, if one is left: few do.
  void BreakerChanged(absl::string_view tenant, absl::string_view tool,
                      BreakerLabel from, BreakerLabel to)
      CLERESTORY_EXCLUDES(mutex_);

  // All series by Metric, in the order of their labels.
  std::vector<std::vector<MetricSeries>> Read() const
      CLERESTORY_EXCLUDES(mutex_);

 private:
  struct Cell {
    std::int64_t value = 0;
    std::vector<std::int64_t> buckets = {};
  };
  using Labels = std::vector<std::string>;
  struct Rpc {
    Cell* started = nullptr;
    Cell* seconds = nullptr;
    std::vector<Cell*> handled = {};  // By absl::StatusCode.
  };
  struct Tenant {
    explicit Tenant(std::string tenant_label)
        : label(std::move(tenant_label)), tools(kToolPlacesPerTenant, 16) {}

    const std::string label;
    std::array<Cell*, kTenantSumCount> sums = {};
    BoundedNames tools;
  };

  // The series; made if it is not there. Stays where it is.
  Cell& At(Metric metric, Labels labels) CLERESTORY_REQUIRES(mutex_);
  // The one of a metric with at most one label, of a closed list.
  Cell& AtValue(Metric metric, absl::string_view value)
      CLERESTORY_REQUIRES(mutex_);
  // The tenant, or `other`.
  Tenant& TenantOf(absl::string_view tenant) CLERESTORY_REQUIRES(mutex_);
  // The label of a tool that was seen so often.
  std::string ToolLabel(Tenant& tenant, absl::string_view tool,
                        std::int64_t count) CLERESTORY_REQUIRES(mutex_);
  // Gives the tool a place; `kOther` if none is left.
  std::string NamedToolLabel(Tenant& tenant, absl::string_view tool)
      CLERESTORY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::array<std::map<Labels, Cell>, kMetricCount> series_
      CLERESTORY_GUARDED_BY(mutex_);
  std::map<std::string, Rpc> rpcs_ CLERESTORY_GUARDED_BY(mutex_);
  BoundedNames tenant_names_ CLERESTORY_GUARDED_BY(mutex_);
  std::int64_t tenant_places_left_ CLERESTORY_GUARDED_BY(mutex_) =
      kTenantPlaces;
  std::int64_t tool_places_left_ CLERESTORY_GUARDED_BY(mutex_) = kToolPlaces;
  // By label.
  std::map<std::string, Tenant> tenants_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_METRICS_SERVER_METRICS_H_
