// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/svg_chart.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LineChart ChartOf(std::vector<ChartPoint> points, Unit unit) {
  return {.title = "Size",
          .x_label = "call",
          .x_unit = Unit::kCount,
          .y_unit = unit,
          .lines = {{.name = "raw",
                     .style = "raw",
                     .points = std::move(points),
                     .marks = {}}}};
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(EscapeXmlTest, WritesWhatXmlReservesAsEntities) {
  EXPECT_EQ(EscapeXml(R"(<a href="b">'&amp;'</a>)"),
            "&lt;a href=&quot;b&quot;&gt;&#39;&amp;amp;&#39;&lt;/a&gt;");
}

TEST(EscapeXmlTest, KeepsOtherText) {
  EXPECT_EQ(EscapeXml("/tmp/α 会話\t\n.jsonl"), "/tmp/α 会話\t\n.jsonl");
  EXPECT_EQ(EscapeXml(""), "");
}

TEST(EscapeXmlTest, ReplacesWhatXmlDoesNotAllow) {
  EXPECT_EQ(EscapeXml(std::string("a\x01\0\x1f", 4) + "b"),
            "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ(EscapeXml("\xff"
                      "x\xe4\xbc"),
            "\xef\xbf\xbd"
            "x\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(FormatCountTest, HasACommaBeforeEveryThreeDigits) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1'000), "1,000");
  EXPECT_EQ(FormatCount(-123'456), "-123,456");
  EXPECT_EQ(FormatCount(1'234'567), "1,234,567");
  EXPECT_EQ(FormatCount(std::numeric_limits<std::int64_t>::min()),
            "-9,223,372,036,854,775,808");
}

TEST(LineChartTest, HasTicksOfRoundNumbersFromZeroOn) {
  const std::string tokens =
      LineChartSvg(ChartOf({{1, 40'000}, {30, 86'000}}, Unit::kTokens));
  for (const char* const tick : {">0<", ">20k<", ">80k<", ">100k<", ">30<"}) {
    EXPECT_THAT(tokens, HasSubstr(tick));
  }
  const std::string usd =
      LineChartSvg(ChartOf({{1, 0.1}, {30, 0.93}}, Unit::kUsd));
  EXPECT_THAT(usd, HasSubstr(">$0.2<"));
  EXPECT_THAT(usd, HasSubstr(">$1.0<"));
  EXPECT_THAT(LineChartSvg(ChartOf({{1, 0.9}}, Unit::kRatio)),
              HasSubstr(">0.2<"));
  EXPECT_THAT(LineChartSvg(ChartOf({{1, 12}}, Unit::kSeconds)),
              HasSubstr(">5 s<"));
  EXPECT_THAT(LineChartSvg(ChartOf({{1, 80}}, Unit::kPercent)),
              HasSubstr(">20 %<"));
}

TEST(LineChartTest, OfNothingOrZeroesIsStillAChart) {
  EXPECT_THAT(LineChartSvg({}), HasSubstr("</svg>"));
  const std::string zero = LineChartSvg(ChartOf({{0, 0}}, Unit::kUsd));
  EXPECT_THAT(zero, HasSubstr("66.0,252.0"));
  EXPECT_THAT(zero, Not(HasSubstr("nan")));
}

TEST(LineChartTest, MarksSayWhatTheyAre) {
  LineChart chart = ChartOf({{1, 2}, {2, 4}}, Unit::kCount);
  chart.lines[0].marks = {{.at = {2, 4}, .text = "call <2>"}};
  const std::string svg = LineChartSvg(chart);
  EXPECT_EQ(Count(svg, "<circle"), 1);
  EXPECT_THAT(svg, HasSubstr("<title>call &lt;2&gt;</title>"));
}

TEST(LineChartTest, ManyPointsAreThinnedAndTheirPeaksKept) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 20'000; ++i) {
    points.push_back({static_cast<double>(i), i == 7'777 ? 100.0 : 1.0});
  }
  const std::string svg = LineChartSvg(ChartOf(points, Unit::kCount));
  EXPECT_LE(svg.size(), 20'000U);
  EXPECT_THAT(svg, HasSubstr(",14.0 ")) << "the top of the chart";
}

TEST(BarChartTest, IsInProportionAndHasItsLabels) {
  const std::string svg = BarChartSvg(
      "Cost", {{.name = "raw", .style = "raw", .value = 2, .label = "$2"},
               {.name = "a<b", .style = "s0", .value = 1, .label = "$1"}});
  EXPECT_THAT(svg, HasSubstr("width=\"380.0\""));
  EXPECT_THAT(svg, HasSubstr("width=\"190.0\""));
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, HasSubstr(">$1<"));
}

TEST(BarChartTest, LongNamesAreCutBetweenCharacters) {
  std::string name = "adaptive,placeholder=";
  for (int i = 0; i < 20; ++i) name += "é";
  const std::string svg = BarChartSvg(
      "Cost", {{.name = name, .style = "s0", .value = 1, .label = ""}});
  EXPECT_THAT(svg, HasSubstr("=éé…<title>"));
  EXPECT_THAT(svg, HasSubstr(absl::StrCat("<title>", name, "</title>")));
  EXPECT_THAT(svg, Not(HasSubstr("\xef\xbf\xbd")));
}

TEST(ChartLegendTest, NamesEveryLine) {
  const std::string legend =
      ChartLegend({{.name = "raw", .style = "raw", .points = {}, .marks = {}},
                   {.name = "a&b", .style = "s0", .points = {}, .marks = {}}});
  EXPECT_EQ(Count(legend, "<li>"), 2);
  EXPECT_THAT(legend, HasSubstr("a&amp;b</li>"));
}

TEST(ChartStyleTest, HasNoMarkupInIt) {
  EXPECT_FALSE(absl::StrContains(ChartStyle(), "<"));
  EXPECT_FALSE(absl::StrContains(ChartStyle(), "&"));
}

}  // namespace
}  // namespace clerestory
