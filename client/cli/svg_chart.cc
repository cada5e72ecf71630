// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "server/base/utf8.h"

namespace clerestory {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 300;
constexpr double kLeft = 66;
constexpr double kRight = 744;
constexpr double kTop = 14;
constexpr double kBottom = 252;
constexpr std::size_t kPointsMax = 680;  // One for each pixel.
constexpr double kTicks = 5;             // About so many.

// Of bars.
constexpr double kBarPitch = 30;
constexpr double kBarHeight = 18;
constexpr double kBarLeft = 210;
constexpr double kBarRight = 590;
constexpr std::size_t kBarNameLength = 27;

// 1, 2 or 5 times a power of ten, so that about kTicks of them reach `most`.
double TickStep(double most, bool is_whole) {
  const double rough = most / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  return is_whole ? std::max(1.0, step) : step;
}

std::string FormatTokens(double tokens) {
  if (tokens >= 1e6) return absl::StrFormat("%gM", tokens / 1e6);
  if (tokens >= 1e3) return absl::StrFormat("%gk", tokens / 1e3);
  return absl::StrFormat("%g", tokens);
}

std::string FormatTick(double value, double step, Unit unit) {
  const int digits =
      std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  switch (unit) {
    case Unit::kCount:
      return FormatCount(std::llround(value));
    case Unit::kTokens:
      return FormatTokens(value);
    case Unit::kUsd:
      return absl::StrFormat("$%.*f", digits, value);
    case Unit::kSeconds:
      return absl::StrFormat("%.*f s", digits, value);
    case Unit::kPercent:
      return absl::StrFormat("%.*f %%", digits, value);
    case Unit::kRatio:
      return absl::StrFormat("%.*f", std::max(1, digits), value);
  }
  return "";
}

// Where the values of an axis stand, from 0 on.
struct Axis {
  double most = 1;
  double step = 1;
  double first = 0;  // On the page.
  double last = 0;

  double At(double value) const {
    return first + (last - first) * value / most;
  }
};

Axis MakeAxis(double most, Unit unit, double first, double last,
              bool ends_at_tick) {
  Axis axis{.most = most, .step = 1, .first = first, .last = last};
  if (most <= 0) axis.most = 1;
  const bool is_whole = unit == Unit::kCount || unit == Unit::kTokens;
  axis.step = TickStep(axis.most, is_whole);
  if (ends_at_tick) axis.most = axis.step * std::ceil(axis.most / axis.step);
  return axis;
}

std::vector<ChartPoint> Thinned(const std::vector<ChartPoint>& points) {
  if (points.size() <= kPointsMax) return points;
  const std::size_t each = (points.size() + kPointsMax - 1) / kPointsMax;
  std::vector<ChartPoint> thinned;
  for (std::size_t i = 0; i < points.size(); i += each) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(
                                          std::min(points.size(), i + each));
    thinned.push_back(*std::max_element(
        begin, end,
        [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; }));
  }
  return thinned;
}

std::string Open(absl::string_view title, double height) {
  return absl::StrFormat(
      R"(<svg class="chart" viewBox="0 0 %g %g" role="img" )"
      R"(aria-label="%s" xmlns="http://www.w3.org/2000/svg">)"
      "\n",
      kWidth, height, EscapeXml(title));
}

void AddAxes(const LineChart& chart, const Axis& x, const Axis& y,
             std::string& out) {
  for (double value = 0; value <= y.most * 1.0001; value += y.step) {
    absl::StrAppendFormat(
        &out,
        R"(<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>)"
        R"(<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>)"
        "\n",
        kLeft, kRight, y.At(value), y.At(value), kLeft - 8, y.At(value) + 4,
        FormatTick(value, y.step, chart.y_unit));
  }
  for (double value = 0; value <= x.most * 1.0001; value += x.step) {
    // The last one would stick out of the page.
    const bool is_last = x.At(value) > kRight - 12;
    absl::StrAppendFormat(
        &out,
        R"(<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>)"
        R"(<text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>)"
        "\n",
        x.At(value), x.At(value), kBottom, kBottom + 5, x.At(value),
        kBottom + 19, is_last ? "end" : "middle",
        FormatTick(value, x.step, chart.x_unit));
  }
  absl::StrAppendFormat(
      &out,
      R"(<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>)"
      R"(<text class="label" x="%.1f" y="%.1f" text-anchor="end">%s</text>)"
      "\n",
      kLeft, kRight, kBottom, kBottom, kRight, kBottom + 40,
      EscapeXml(chart.x_label));
}

}  // namespace

std::string LineChartSvg(const LineChart& chart) {
  double x_most = 0;
  double y_most = 0;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) {
      x_most = std::max(x_most, point.x);
      y_most = std::max(y_most, point.y);
    }
  }
  const Axis x = MakeAxis(x_most, chart.x_unit, kLeft, kRight, false);
  const Axis y = MakeAxis(y_most, chart.y_unit, kBottom, kTop, true);
  std::string out = Open(chart.title, kHeight);
  AddAxes(chart, x, y, out);
  for (const ChartLine& line : chart.lines) {
    absl::StrAppend(&out, R"(<polyline class="line )", line.style,
                    R"(" points=")");
    for (const ChartPoint& point : Thinned(line.points)) {
      absl::StrAppendFormat(&out, "%.1f,%.1f ", x.At(point.x), y.At(point.y));
    }
    absl::StrAppend(&out, "\"/>\n");
  }
  // Above all lines.
  for (const ChartLine& line : chart.lines) {
    for (const ChartMark& mark : line.marks) {
      absl::StrAppendFormat(
          &out,
          R"(<circle class="mark %s" cx="%.1f" cy="%.1f" r="3.5">)"
          "<title>%s</title></circle>\n",
          line.style, x.At(mark.at.x), y.At(mark.at.y), EscapeXml(mark.text));
    }
  }
  absl::StrAppend(&out, "</svg>\n");
  return out;
}

std::string BarChartSvg(absl::string_view title,
                        const std::vector<ChartBar>& bars) {
  double most = 0;
  for (const ChartBar& bar : bars) most = std::max(most, bar.value);
  if (most <= 0) most = 1;
  std::string out = Open(title, kBarPitch * static_cast<double>(bars.size()));
  double y = (kBarPitch - kBarHeight) / 2;
  for (const ChartBar& bar : bars) {
    const double width = (kBarRight - kBarLeft) * bar.value / most;
    std::string name = bar.name;
    if (name.size() > kBarNameLength) {
      name.resize(Utf8PrefixSize(name.substr(0, kBarNameLength - 1)));
      name += "…";
    }
    absl::StrAppendFormat(
        &out,
        R"(<text class="name" x="%.1f" y="%.1f" text-anchor="end">%s)"
        "<title>%s</title></text>"
        R"(<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" )"
        R"(height="%.1f"/><text class="value" x="%.1f" y="%.1f">%s</text>)"
        "\n",
        kBarLeft - 10, y + kBarHeight - 5, EscapeXml(name), EscapeXml(bar.name),
        bar.style, kBarLeft, y, std::max(1.0, width), kBarHeight,
        kBarLeft + width + 8, y + kBarHeight - 5, EscapeXml(bar.label));
    y += kBarPitch;
  }
  absl::StrAppend(&out, "</svg>\n");
  return out;
}

std::string ChartLegend(const std::vector<ChartLine>& lines) {
  std::string out = "<ul class=\"legend\">\n";
  for (const ChartLine& line : lines) {
    absl::StrAppend(&out, R"(<li><svg class="key" viewBox="0 0 26 12" )",
                    R"(aria-hidden="true" xmlns="http://www.w3.org/2000/svg">)",
                    R"(<line class="line )", line.style,
                    R"(" x1="1" x2="25" y1="6" y2="6"/></svg>)",
                    EscapeXml(line.name), "</li>\n");
  }
  absl::StrAppend(&out, "</ul>\n");
  return out;
}

absl::string_view ChartStyle() {
  return R"(.chart { display: block; width: 100%; height: auto; }
.chart text { font-size: 12px; fill: var(--muted); }
.chart .name, .chart .value { font-size: 13px; fill: var(--ink); }
.grid { stroke: var(--grid); }
.axis { stroke: var(--muted); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.mark { stroke: var(--page); stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 6px 0;
  padding: 0; list-style: none; font-size: 13px; }
.legend li { display: flex; align-items: center; gap: 6px; }
.key { width: 26px; height: 12px; flex: none; }
.raw { stroke: var(--muted); fill: var(--muted); stroke-dasharray: 1 3;
  stroke-linecap: round; }
.optimum { stroke: var(--ink); fill: var(--ink); stroke-dasharray: 6 4; }
.s0 { stroke: var(--s0); fill: var(--s0); }
.s1 { stroke: var(--s1); fill: var(--s1); }
.s2 { stroke: var(--s2); fill: var(--s2); }
.s3 { stroke: var(--s3); fill: var(--s3); }
.s4 { stroke: var(--s4); fill: var(--s4); }
.s5 { stroke: var(--s5); fill: var(--s5); }
.s6 { stroke: var(--s6); fill: var(--s6); }
.s7 { stroke: var(--s7); fill: var(--s7); }
.s8 { stroke: var(--s8); fill: var(--s8); }
.s9 { stroke: var(--s9); fill: var(--s9); }
polyline.line { fill: none; }
.bar { stroke: none; }
circle.mark { stroke: var(--page); }
)";
}

std::string EscapeXml(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = Utf8PrefixSize(text);
    for (const char c : text.substr(0, valid)) {
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default: {
          const auto byte = static_cast<unsigned char>(c);
          const bool is_allowed = byte >= 0x20 || c == '\t' || c == '\n';
          if (is_allowed) {
            out += c;
          } else {
            out += "\xef\xbf\xbd";
          }
        }
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += "\xef\xbf\xbd";
    text.remove_prefix(1);
  }
  return out;
}

std::string FormatCount(std::int64_t number) {
  std::string digits = absl::StrCat(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

}  // namespace clerestory
