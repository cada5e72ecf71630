// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/naive_ledger.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/model/record.h"
#include "server/view/session_parts.h"

namespace clerestory {
namespace {

std::string CallText(const CallTokens& call) {
  return absl::StrCat(call.read, "+", call.written, "+", call.uncached);
}

void Add(const CallTokens& call, CallTokens& sum) {
  sum.read += call.read;
  sum.written += call.written;
  sum.uncached += call.uncached;
}

void Add(const std::optional<std::int64_t>& part,
         std::optional<std::int64_t>& sum) {
  if (part.has_value()) sum = sum.value_or(0) + *part;
}

void AddView(const ViewServed& view, Ledger& sum) {
  if (view.break_reason != BreakReason::kNone) {
    ++sum.breaks.at(static_cast<std::size_t>(view.break_reason));
  }
  for (const Mask& mask : view.masks) {
    sum.mask_count += mask.is_restored ? -1 : 1;
    sum.restore_count += mask.is_restored ? 1 : 0;
  }
  if (!view.is_new_call) return;
  ++sum.call_count;
  sum.preamble_tokens += view.preamble_tokens;
  sum.raw_tokens += view.raw_tokens;
  sum.view_tokens += view.view_tokens;
  Add(view.raw_call, sum.raw_call);
  Add(view.view_call, sum.view_call);
  Add(view.every_turn_call, sum.every_turn_call);
  sum.raw_cost += view.raw_cost;
  sum.view_cost += view.view_cost;
  sum.every_turn_cost += view.every_turn_cost;
  sum.output_tokens += view.output_tokens;
  sum.output_cost += view.output_cost;
}

void AddReport(const UsageReported& report, const ViewServed& view,
               Ledger& sum) {
  const Usage& usage = report.usage;
  ++sum.usage_count;
  Add(usage.input_uncached, sum.usage.input_uncached);
  Add(usage.cache_read, sum.usage.cache_read);
  Add(usage.cache_write, sum.usage.cache_write);
  Add(usage.output, sum.usage.output);
  sum.usage_cost += report.cost.value_or(0);
  if (report.model != view.model || !usage.input_uncached) return;
  const std::int64_t reported = *usage.input_uncached +
                                usage.cache_read.value_or(0) +
                                usage.cache_write.value_or(0);
  if (reported == 0) return;
  ++sum.compared_count;
  sum.estimated_tokens += view.view_call.total();
  sum.reported_tokens += reported;
  sum.error_tokens += std::abs(view.view_call.total() - reported);
}

}  // namespace

Ledger NaiveLedger(
    const std::vector<ViewServed>& views,
    const std::vector<std::pair<UsageReported, ViewServed>>& reports) {
  Ledger sum;
  for (const ViewServed& view : views) AddView(view, sum);
  for (const auto& [report, view] : reports) AddReport(report, view, sum);
  return sum;
}

std::string DecisionText(const ViewServed& view) {
  std::string text = absl::StrCat(
      "reason ", static_cast<int>(view.break_reason), " price ",
      view.break_price, " rent ", view.break_rent, " at ", view.read_price,
      " new ", view.is_new_call, " eligible ", view.eligible_count, " cached ",
      view.cache_time, " raw ", CallText(view.raw_call), " ", view.raw_cost,
      " view ", CallText(view.view_call), " ", view.view_cost, " every turn ",
      CallText(view.every_turn_call), " ", view.every_turn_saving, " ",
      view.every_turn_cost, " output ", view.output_tokens, " strip ",
      view.strip_from.value_or(-1), " masks");
  for (const Mask& mask : view.masks) {
    absl::StrAppend(&text, " ", mask.is_restored ? "+" : "", mask.sequence, ".",
                    mask.index);
  }
  return text;
}

}  // namespace clerestory
