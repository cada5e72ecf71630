// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_SVG_CHART_H_
#define CLERESTORY_CLIENT_CLI_SVG_CHART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clerestory {

// Charts as inline SVG, without scripts, for a page that has ChartStyle(). All
// of them are well-formed XML whatever the names in them hold. Pure.

// What the numbers of an axis are.
enum class Unit {
  kCount,    // 1,200
  kTokens,   // 12k
  kUsd,      // $0.50
  kSeconds,  // 1.5 s
  kPercent,  // 20 %
  kRatio,    // 0.75
};

struct ChartPoint {
  double x = 0;
  double y = 0;
};

// A point that is marked, and what is said of it where the pointer rests.
struct ChartMark {
  ChartPoint at;
  std::string text;
};

struct ChartLine {
  std::string name;
  // A word of letters, digits and "-": `raw`, `optimum`, or `s0` to `s9`.
  std::string style;
  std::vector<ChartPoint> points;
  std::vector<ChartMark> marks;
};

// Lines over an axis that begins at 0. With many points, neighbours that fall
// on one spot are drawn as the largest of them.
struct LineChart {
  std::string title;  // For those who cannot see it.
  std::string x_label;
  Unit x_unit = Unit::kCount;
  Unit y_unit = Unit::kCount;
  std::vector<ChartLine> lines;
};
std::string LineChartSvg(const LineChart& chart);

struct ChartBar {
  std::string name;
  std::string style;
  double value = 0;
  std::string label;  // Behind the bar.
};
std::string BarChartSvg(absl::string_view title,
                        const std::vector<ChartBar>& bars);

// The names and styles of lines, as a list to stand above a chart.
std::string ChartLegend(const std::vector<ChartLine>& lines);

// The rules of CSS that charts and legends need, for light and dark pages.
absl::string_view ChartStyle();

// `text` for an element or an attribute: what XML reserves is written as
// entities, and what it does not allow, or is not UTF-8, as U+FFFD.
std::string EscapeXml(absl::string_view text);

// "1234567" as "1,234,567".
std::string FormatCount(std::int64_t number);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_SVG_CHART_H_
