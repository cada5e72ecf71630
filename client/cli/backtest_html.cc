// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/backtest_html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/cli/backtest_report.h"
#include "client/cli/backtest_run.h"
#include "client/cli/svg_chart.h"
#include "server/backtest/backtest.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

// What a provider is assumed to read of a prompt that it has not cached.
constexpr std::int64_t kPrefillTokensPerSecond = 5'000;
constexpr std::size_t kSessionsInDetail = 6;
constexpr std::int64_t kMarksMax = 24;
constexpr int kStyles = 10;
constexpr double kRefetchPercentMax = 100;

constexpr const char* kPageStyle = R"(:root { color-scheme: light dark;
  --page: #ffffff; --ink: #1c1d1f; --muted: #6b6f76; --grid: #e4e6e9;
  --s0: #2a78d6; --s1: #d95926; --s2: #1a9e6e; --s3: #b88600; --s4: #6a53c9;
  --s5: #c94f86; --s6: #4d8f97; --s7: #8a5a2b; --s8: #7f9a17; --s9: #a33b3b; }
@media (prefers-color-scheme: dark) { :root {
  --page: #17181a; --ink: #eceef0; --muted: #9aa0a8; --grid: #303338;
  --s0: #5a9df0; --s1: #ee7d4d; --s2: #3cc08e; --s3: #dcae3c; --s4: #9a88ec;
  --s5: #e880b0; --s6: #74b6be; --s7: #c2916a; --s8: #b3cd52; --s9: #d97b7b; } }
body { max-width: 860px; margin: 32px auto 64px; padding: 0 20px;
  background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 19px; margin: 44px 0 0; overflow-wrap: anywhere; }
figure { margin: 26px 0 0; }
figcaption { font-weight: 600; }
figcaption p, .note { margin: 2px 0; font-weight: 400; font-size: 13px;
  color: var(--muted); }
.wide { overflow-x: auto; margin-top: 12px; }
table { border-collapse: collapse; font-size: 13px; width: 100%;
  font-variant-numeric: tabular-nums; }
th, td { padding: 5px 0 5px 18px; text-align: right; vertical-align: bottom;
  border-bottom: 1px solid var(--grid); white-space: nowrap; }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
thead th { font-weight: 500; color: var(--muted); white-space: normal; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 160px; }
)";

using Sessions = std::vector<SessionOutcome>;

// A policy summed over sessions.
struct Total {
  PicoUsd cost = 0;
  PicoUsd raw_cost = 0;
  PicoUsd refetch_cost = 0;
  CallTokens input;
  std::int64_t break_count = 0;
  std::int64_t masked_count = 0;
};

std::int64_t BreakCount(const BacktestResult& result) {
  return std::accumulate(result.breaks.begin() + 1, result.breaks.end(),
                         std::int64_t{0});
}

Total TotalOf(const Sessions& sessions, std::size_t policy) {
  Total total;
  for (const SessionOutcome& session : sessions) {
    const BacktestResult& result = session.policies[policy].result;
    total.cost += result.cost;
    total.raw_cost += session.raw_cost;
    total.refetch_cost += result.refetch_cost;
    total.input.read += result.input.read;
    total.input.written += result.input.written;
    total.input.uncached += result.input.uncached;
    total.break_count += BreakCount(result);
    total.masked_count += result.masked_count;
  }
  return total;
}

double Usd(PicoUsd amount) {
  return static_cast<double>(amount) / static_cast<double>(kPicoUsdPerUsd);
}

std::string StyleOf(std::size_t policy) {
  return absl::StrCat("s", policy % kStyles);
}

std::string Figure(absl::string_view title, absl::string_view note,
                   absl::string_view legend, absl::string_view svg) {
  return absl::StrCat("<figure>\n<figcaption>", EscapeXml(title), "<p>",
                      EscapeXml(note), "</p></figcaption>\n", legend, svg,
                      "</figure>\n");
}

std::string LineFigure(const LineChart& chart, absl::string_view note) {
  return Figure(chart.title, note, ChartLegend(chart.lines),
                LineChartSvg(chart));
}

using Rows = std::vector<std::vector<std::string>>;

// The first of `rows` is the heading.
std::string Table(const Rows& rows) {
  std::string out = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const std::string& cell : rows.front()) {
    absl::StrAppend(&out, "<th>", EscapeXml(cell), "</th>");
  }
  absl::StrAppend(&out, "</tr></thead>\n<tbody>\n");
  for (std::size_t r = 1; r < rows.size(); ++r) {
    absl::StrAppend(&out, "<tr>");
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      absl::StrAppend(&out, c == 0 ? "<td class=\"long\">" : "<td>",
                      EscapeXml(rows[r][c]), "</td>");
    }
    absl::StrAppend(&out, "</tr>\n");
  }
  absl::StrAppend(&out, "</tbody></table></div>\n");
  return out;
}

// --- all sessions
// -------------------------------------------------------------

std::string CostBars(const Sessions& sessions) {
  PicoUsd raw = 0;
  PicoUsd optimum = 0;
  for (const SessionOutcome& session : sessions) {
    raw += session.raw_cost;
    optimum += session.optimum_cost;
  }
  std::vector<ChartBar> bars;
  const auto add = [&](const std::string& name, const std::string& style,
                       PicoUsd cost) {
    bars.push_back(
        {.name = name,
         .style = style,
         .value = Usd(cost),
         .label = absl::StrCat("$", FormatUsd(cost, 2), ", ",
                               FormatRatio(Ratio(cost, raw)), " of raw")});
  };
  add("raw", "raw", raw);
  const std::vector<PolicyOutcome>& policies = sessions.front().policies;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    if (policies[p].is_raw) continue;
    add(policies[p].policy, StyleOf(p), TotalOf(sessions, p).cost);
  }
  add("optimum", "optimum", optimum);
  return Figure("Cost of each policy",
                "Input and output of all calls. The optimum is the best "
                "schedule of breaks, knowing the whole session.",
                "", BarChartSvg("Cost of each policy", bars));
}

std::string RefetchChart(const Sessions& sessions) {
  LineChart chart{.title = "Cost if masked observations are fetched again",
                  .x_label = "masked observations that are fetched again",
                  .x_unit = Unit::kPercent,
                  .y_unit = Unit::kRatio,
                  .lines = {{.name = "raw",
                             .style = "raw",
                             .points = {{0, 1}, {kRefetchPercentMax, 1}},
                             .marks = {}}}};
  const std::vector<PolicyOutcome>& policies = sessions.front().policies;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    if (policies[p].is_raw) continue;
    const Total total = TotalOf(sessions, p);
    const double even = BreakEvenPercent(sessions, p);
    ChartLine line{
        .name = absl::StrCat(policies[p].policy, ", ",
                             even < 0 ? "never below raw"
                             : even > kRefetchPercentMax
                                 ? "never above raw"
                                 : absl::StrFormat("even at %.0f %%", even)),
        .style = StyleOf(p),
        .points = {{0, Ratio(total.cost, total.raw_cost)},
                   {kRefetchPercentMax,
                    Ratio(total.cost + total.refetch_cost, total.raw_cost)}},
        .marks = {}};
    if (even >= 0 && even <= kRefetchPercentMax) {
      line.marks.push_back({.at = {even, 1}, .text = line.name});
    }
    chart.lines.push_back(std::move(line));
  }
  return LineFigure(
      chart,
      absl::StrCat("Cost as a part of raw. Each fetch is one more call right "
                   "after the break: it reads the prompt from the cache, "
                   "writes ",
                   kRefetchOutputTokens,
                   " tokens of output, and the tokens that were saved anew."));
}

std::string Seconds(std::int64_t tokens) {
  return absl::StrFormat("%.1f",
                         static_cast<double>(tokens) /
                             static_cast<double>(kPrefillTokensPerSecond));
}

std::string CostTable(const Sessions& sessions) {
  Rows rows = {{"policy", "cost", "of raw, in total", "of raw, worst",
                "of raw, any length", "of optimum, mean", "of optimum, worst"}};
  const std::vector<PolicySummary> summaries = Summarize(sessions);
  for (std::size_t p = 0; p < summaries.size(); ++p) {
    const PolicySummary& summary = summaries[p];
    rows.push_back({summary.policy,
                    absl::StrCat("$", FormatUsd(TotalOf(sessions, p).cost, 4)),
                    FormatRatio(summary.ratio_to_raw_total),
                    FormatRatio(summary.ratio_to_raw_worst),
                    FormatRatio(summary.ratio_to_raw_any_length),
                    FormatRatio(summary.ratio_to_optimum_mean),
                    FormatRatio(summary.ratio_to_optimum_worst)});
  }
  return Table(rows);
}

std::string TokenTable(const Sessions& sessions) {
  Rows rows = {{"policy", "breaks", "masked", "tokens read", "tokens written",
                "tokens not cached", "prefill, in s"}};
  const std::vector<PolicyOutcome>& policies = sessions.front().policies;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const Total total = TotalOf(sessions, p);
    rows.push_back(
        {policies[p].policy, FormatCount(total.break_count),
         FormatCount(total.masked_count), FormatCount(total.input.read),
         FormatCount(total.input.written), FormatCount(total.input.uncached),
         Seconds(total.input.written + total.input.uncached)});
  }
  return Table(rows);
}

std::string SessionTable(const Sessions& sessions) {
  Rows rows = {{"session", "calls", "raw"}};
  for (const PolicyOutcome& policy : sessions.front().policies) {
    rows.front().push_back(policy.policy);
  }
  rows.front().emplace_back("optimum");
  for (const SessionOutcome& session : sessions) {
    std::vector<std::string> row = {
        session.name, FormatCount(session.call_count),
        absl::StrCat("$", FormatUsd(session.raw_cost, 4))};
    for (const PolicyOutcome& policy : session.policies) {
      row.push_back(FormatRatio(Ratio(policy.result.cost, session.raw_cost)));
    }
    row.push_back(FormatRatio(Ratio(session.optimum_cost, session.raw_cost)));
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

// --- one session
// --------------------------------------------------------------

// A line with a point for every call: `value(call, its index)`.
template <typename Value>
std::vector<ChartPoint> ByCall(const BacktestResult& result, Value value) {
  std::vector<ChartPoint> points;
  for (const BacktestCall& call : result.calls) {
    points.push_back({static_cast<double>(points.size() + 1), value(call)});
  }
  return points;
}

// A chart of raw and every policy that masks, by call. `make_value` makes what
// says the value of each call of a line in turn.
template <typename Value>
LineChart ChartByCall(const SessionOutcome& session, std::string title,
                      Unit unit, Value make_value) {
  LineChart chart{.title = std::move(title),
                  .x_label = "model call",
                  .x_unit = Unit::kCount,
                  .y_unit = unit,
                  .lines = {}};
  chart.lines.push_back({.name = "raw",
                         .style = "raw",
                         .points = ByCall(session.raw, make_value()),
                         .marks = {}});
  for (std::size_t p = 0; p < session.policies.size(); ++p) {
    const PolicyOutcome& policy = session.policies[p];
    if (policy.is_raw) continue;
    chart.lines.push_back({.name = policy.policy,
                           .style = StyleOf(p),
                           .points = ByCall(policy.result, make_value()),
                           .marks = {}});
  }
  return chart;
}

std::vector<ChartMark> BreakMarks(const ChartLine& line,
                                  const BacktestResult& result) {
  std::vector<ChartMark> marks;
  for (std::size_t i = 0; i < result.calls.size(); ++i) {
    const ViewServed& view = result.calls[i].view;
    if (view.break_reason == BreakReason::kNone) continue;
    marks.push_back(
        {.at = line.points[i],
         .text = absl::StrCat("call ", i + 1, ": ", line.name, " masks ",
                              MaskedCount(view), ", ",
                              std::string(BreakName(view.break_reason)))});
  }
  return marks;
}

std::string PromptChart(const SessionOutcome& session) {
  LineChart chart =
      ChartByCall(session, "Size of the prompt", Unit::kTokens, [] {
        return [](const BacktestCall& call) {
          return static_cast<double>(call.view.view_call.total());
        };
      });
  std::size_t line = 1;
  for (const PolicyOutcome& policy : session.policies) {
    if (policy.is_raw) continue;
    ChartLine& drawn = chart.lines[line++];
    const std::int64_t breaks = BreakCount(policy.result);
    if (breaks <= kMarksMax) drawn.marks = BreakMarks(drawn, policy.result);
    absl::StrAppend(&drawn.name, ", ", breaks,
                    breaks == 1 ? " break" : " breaks");
  }
  return LineFigure(
      chart, absl::StrCat("Tokens of the prompt before each call. A dot is a "
                          "break, where something is masked; of a policy with "
                          "more than ",
                          kMarksMax, " of them none is shown."));
}

std::string CostChart(const SessionOutcome& session) {
  LineChart chart = ChartByCall(session, "Cost against length", Unit::kUsd, [] {
    return [sum = PicoUsd{0}](const BacktestCall& call) mutable {
      sum += call.cost;
      return Usd(sum);
    };
  });
  ChartLine optimum{
      .name = "optimum", .style = "optimum", .points = {}, .marks = {}};
  for (const PicoUsd cost : session.optimum_costs) {
    optimum.points.push_back(
        {static_cast<double>(optimum.points.size() + 1), Usd(cost)});
  }
  chart.lines.push_back(std::move(optimum));
  return LineFigure(chart,
                    "What the session would have cost, had it ended with that "
                    "call. The optimum is another one for each length.");
}

std::string PrefillChart(const SessionOutcome& session) {
  return LineFigure(
      ChartByCall(session, "Modelled time of prefill", Unit::kSeconds,
                  [] {
                    return [](const BacktestCall& call) {
                      return static_cast<double>(call.view.view_call.written) /
                             static_cast<double>(kPrefillTokensPerSecond);
                    };
                  }),
      absl::StrCat("Before the first token of each answer, assuming that the "
                   "provider reads ",
                   FormatCount(kPrefillTokensPerSecond),
                   " tokens a second that are not in its cache, and the "
                   "others at once."));
}

// The dearest, in their own order.
std::vector<const SessionOutcome*> InDetail(const Sessions& sessions) {
  std::vector<const SessionOutcome*> chosen;
  for (const SessionOutcome& session : sessions) chosen.push_back(&session);
  std::sort(chosen.begin(), chosen.end(),
            [](const SessionOutcome* a, const SessionOutcome* b) {
              return std::pair(b->raw_cost, a) < std::pair(a->raw_cost, b);
            });
  if (chosen.size() > kSessionsInDetail) chosen.resize(kSessionsInDetail);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string Title(const Sessions& sessions) {
  return sessions.size() == 1
             ? absl::StrCat("Back-test of ", sessions.front().name)
             : absl::StrCat("Back-test of ", sessions.size(), " sessions");
}

}  // namespace

double BreakEvenPercent(const std::vector<SessionOutcome>& sessions,
                        std::size_t policy) {
  const Total total = TotalOf(sessions, policy);
  if (total.cost > total.raw_cost) return -1;
  if (total.refetch_cost == 0) return kRefetchPercentMax + 1;
  return 100 * Usd(total.raw_cost - total.cost) / Usd(total.refetch_cost);
}

std::string FormatHtml(const std::vector<SessionOutcome>& sessions,
                       absl::string_view prices) {
  const std::string title = EscapeXml(Title(sessions));
  std::string out = absl::StrCat(
      "<!DOCTYPE html>\n"
      "<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>",
      title, "</title>\n<style>\n", kPageStyle, std::string(ChartStyle()),
      "</style>\n</head>\n<body>\n<h1 style=\"overflow-wrap: anywhere\">",
      title, "</h1>\n<p class=\"note\">Clerestory played ",
      sessions.size() == 1 ? "it" : "them",
      " again, offline, under each policy. Tokens are estimated. Prices: ",
      EscapeXml(prices), ".</p>\n");
  absl::StrAppend(&out, CostBars(sessions), CostTable(sessions),
                  TokenTable(sessions), RefetchChart(sessions));
  const std::vector<const SessionOutcome*> detailed = InDetail(sessions);
  for (const SessionOutcome* session : detailed) {
    absl::StrAppend(&out, "<section>\n<h2>",
                    EscapeXml(sessions.size() == 1 ? "By call" : session->name),
                    "</h2>\n<p class=\"note\">",
                    FormatCount(session->call_count), " model calls, raw $",
                    FormatUsd(session->raw_cost, 4), ".</p>\n",
                    PromptChart(*session), CostChart(*session),
                    PrefillChart(*session), "</section>\n");
  }
  absl::StrAppend(&out, "<section>\n<h2>Cost of each session</h2>\n",
                  "<p class=\"note\">As a part of its raw cost.",
                  detailed.size() < sessions.size()
                      ? absl::StrCat(" The charts above are of the ",
                                     detailed.size(), " dearest.")
                      : "",
                  "</p>\n", SessionTable(sessions),
                  "</section>\n</body>\n</html>");
  return out;
}

}  // namespace clerestory
