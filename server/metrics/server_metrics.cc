// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/server_metrics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/mutex.h"
#include "server/metrics/bounded_names.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/tenant_sums.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

using Place = BoundedNames::Place;

// The value at `index` of the closed list of the label at `label`.
template <typename Index>
std::string ValueOf(Metric metric, std::size_t label, Index index) {
  const auto& values = DefinitionOf(metric).labels.at(label).values;
  const auto at = static_cast<std::size_t>(index);
  CLERESTORY_CHECK(at < values.size());
  return std::string(values[at]);
}

void AddTo(std::int64_t amount, std::int64_t& sum) {
  sum = SaturatingAdd(sum, amount);
}

}  // namespace

ServerMetrics::ServerMetrics() : tenant_names_(kTenantPlaces, 1) {
  const MutexLock lock(mutex_);
  for (const MetricDefinition& definition : Catalogue()) {
    if (definition.label_count() == 0) At(definition.id, {});
    const MetricLabel& label = definition.labels[0];
    if (definition.label_count() != 1) continue;
    for (const absl::string_view value : label.values) {
      At(definition.id, {std::string(value)});
    }
  }
}

ServerMetrics::Cell& ServerMetrics::At(Metric metric, Labels labels) {
  return series_.at(static_cast<std::size_t>(metric))[std::move(labels)];
}

ServerMetrics::Cell& ServerMetrics::AtValue(Metric metric,
                                            absl::string_view value) {
  Labels labels;
  if (!value.empty()) labels.emplace_back(value);
  auto& there = series_.at(static_cast<std::size_t>(metric));
  const auto it = there.find(labels);
  // They all were made at the start.
  CLERESTORY_CHECK(it != there.end());
  return it->second;
}

void ServerMetrics::DeclareRpc(const RpcMethod& method) {
  const MutexLock lock(mutex_);
  CLERESTORY_CHECK(static_cast<std::int64_t>(rpcs_.size()) < kRpcMethodsMax);
  const Labels labels = {
      ValueOf(Metric::kRpcStarted, 0, method.is_stream ? 1 : 0), method.service,
      method.method};
  Rpc& rpc = rpcs_[method.method];
  rpc.started = &At(Metric::kRpcStarted, labels);
  rpc.seconds = &At(Metric::kRpcHandlingSeconds, labels);
  rpc.seconds->buckets.resize(kLatencyBounds.size() + 1);
  rpc.handled.clear();
  for (const absl::string_view code :
       DefinitionOf(Metric::kRpcHandled).labels[3].values) {
    Labels with_code = labels;
    with_code.emplace_back(code);
    rpc.handled.push_back(&At(Metric::kRpcHandled, std::move(with_code)));
  }
}

void ServerMetrics::SetBuildInfo(absl::string_view version,
                                 absl::string_view compiler,
                                 absl::string_view storage) {
  const MutexLock lock(mutex_);
  At(Metric::kBuildInfo,
     {std::string(version), std::string(compiler), std::string(storage)})
      .value = 1;
}

void ServerMetrics::NameTenant(absl::string_view tenant,
                               const std::vector<std::string>& tools) {
  const MutexLock lock(mutex_);
  tenant_names_.Give(tenant, tenant_places_left_);
  if (!tenant_names_.Has(tenant)) return;
  Tenant& named = TenantOf(tenant);
  for (const std::string& tool : tools) {
    named.tools.Give(tool, tool_places_left_);
  }
}

void ServerMetrics::RpcStarted(absl::string_view method) {
  const MutexLock lock(mutex_);
  const auto it = rpcs_.find(std::string(method));
  if (it != rpcs_.end()) ++it->second.started->value;
}

void ServerMetrics::RpcHandled(absl::string_view method, absl::StatusCode code,
                               std::int64_t micros) {
  const MutexLock lock(mutex_);
  const auto it = rpcs_.find(std::string(method));
  if (it == rpcs_.end()) return;
  const Rpc& rpc = it->second;
  auto index = static_cast<std::size_t>(code);
  if (index >= rpc.handled.size()) {
    index = static_cast<std::size_t>(absl::StatusCode::kUnknown);
  }
  ++rpc.handled[index]->value;
  const auto bucket = std::ranges::lower_bound(kLatencyBounds, micros);
  ++rpc.seconds
        ->buckets[static_cast<std::size_t>(bucket - kLatencyBounds.begin())];
  AddTo(micros, rpc.seconds->value);
}

void ServerMetrics::Add(Metric metric, absl::string_view value,
                        std::int64_t amount) {
  const MutexLock lock(mutex_);
  AddTo(amount, AtValue(metric, value).value);
}

void ServerMetrics::Set(Metric metric, absl::string_view value,
                        std::int64_t amount) {
  const MutexLock lock(mutex_);
  AtValue(metric, value).value = amount;
}

ServerMetrics::Tenant& ServerMetrics::TenantOf(absl::string_view tenant) {
  const bool has_place =
      tenant_names_.See(tenant, 1, tenant_places_left_) == Place::kOwn;
  if (!has_place) {
    ++AtValue(Metric::kLabelOverflow, "tenant").value;
    tenant = kOther;
  }
  const std::string label(tenant);
  const auto [it, is_new] = tenants_.try_emplace(label, label);
  Tenant& found = it->second;
  if (!is_new) return found;
  for (std::size_t i = 0; i < kTenantSumCount; ++i) {
    const TenantSeries series = SeriesOf(i);
    Labels labels = {label};
    if (!series.value.empty()) labels.emplace_back(series.value);
    found.sums.at(i) = &At(series.metric, std::move(labels));
  }
  for (const Metric metric :
       {Metric::kSessionsClosed, Metric::kClosedSessionCost,
        Metric::kClosedSessionFullCost}) {
    for (const absl::string_view outcome :
         DefinitionOf(metric).labels[1].values) {
      for (const absl::string_view arm :
           DefinitionOf(metric).labels[2].values) {
        At(metric, {label, std::string(outcome), std::string(arm)});
      }
    }
  }
  return found;
}

void ServerMetrics::AddToTenant(absl::string_view tenant,
                                const TenantSums& amounts) {
  const MutexLock lock(mutex_);
  const Tenant& found = TenantOf(tenant);
  for (std::size_t i = 0; i < kTenantSumCount; ++i) {
    AddTo(amounts.amounts().at(i), found.sums.at(i)->value);
  }
}

void ServerMetrics::SessionEnded(absl::string_view tenant, Outcome outcome,
                                 bool is_control, PicoUsd cost,
                                 PicoUsd full_cost) {
  CLERESTORY_CHECK(outcome != Outcome::kOpen);
  const MutexLock lock(mutex_);
  const Labels labels = {
      TenantOf(tenant).label,
      ValueOf(Metric::kSessionsClosed, 1, static_cast<int>(outcome) - 1),
      ValueOf(Metric::kSessionsClosed, 2, is_control ? 1 : 0)};
  ++At(Metric::kSessionsClosed, labels).value;
  AddTo(cost, At(Metric::kClosedSessionCost, labels).value);
  AddTo(full_cost, At(Metric::kClosedSessionFullCost, labels).value);
}

std::string ServerMetrics::ToolLabel(Tenant& tenant, absl::string_view tool,
                                     std::int64_t count) {
  Place place = Place::kNoneLeft;
  if (tenant.label != kOther) {
    place = tenant.tools.See(tool, count, tool_places_left_);
  }
  if (place == Place::kOwn) return std::string(tool);
  if (place == Place::kNoneLeft) {
    ++AtValue(Metric::kLabelOverflow, "tool").value;
  }
  return std::string(kOther);
}

std::string ServerMetrics::NamedToolLabel(Tenant& tenant,
                                          absl::string_view tool) {
  if (tenant.label != kOther) tenant.tools.Give(tool, tool_places_left_);
  // What has a place needs none, and what has none is counted as such.
  return ToolLabel(tenant, tool, 1);
}

void ServerMetrics::CountTool(absl::string_view tenant, absl::string_view tool,
                              ToolEvent event, std::int64_t observations,
                              std::int64_t tokens) {
  const MutexLock lock(mutex_);
  Tenant& found = TenantOf(tenant);
  const Labels labels = {found.label, ToolLabel(found, tool, observations),
                         ValueOf(Metric::kToolObservations, 2, event)};
  AddTo(observations, At(Metric::kToolObservations, labels).value);
  AddTo(tokens, At(Metric::kToolTokens, labels).value);
}

void ServerMetrics::SetBreaker(absl::string_view tenant, absl::string_view tool,
                               BreakerLabel state) {
  const MutexLock lock(mutex_);
  Tenant& found = TenantOf(tenant);
  std::string label = NamedToolLabel(found, tool);
  if (label == kOther) return;
  At(Metric::kBreakerState, {found.label, std::move(label)}).value =
      static_cast<std::int64_t>(state);
}

void ServerMetrics::BreakerChanged(absl::string_view tenant,
                                   absl::string_view tool, BreakerLabel from,
                                   BreakerLabel to) {
  const MutexLock lock(mutex_);
  Tenant& found = TenantOf(tenant);
  const std::string label = NamedToolLabel(found, tool);
  ++At(Metric::kBreakerTransitions,
       {found.label, label, ValueOf(Metric::kBreakerTransitions, 2, from),
        ValueOf(Metric::kBreakerTransitions, 3, to)})
        .value;
  if (label == kOther) return;
  At(Metric::kBreakerState, {found.label, label}).value =
      static_cast<std::int64_t>(to);
}

std::vector<std::vector<MetricSeries>> ServerMetrics::Read() const {
  const MutexLock lock(mutex_);
  std::vector<std::vector<MetricSeries>> all;
  all.reserve(series_.size());
  for (const auto& of_metric : series_) {
    std::vector<MetricSeries>& read = all.emplace_back();
    for (const auto& [labels, cell] : of_metric) {
      read.push_back(
          {.labels = labels, .value = cell.value, .buckets = cell.buckets});
    }
  }
  return all;
}

}  // namespace clerestory
