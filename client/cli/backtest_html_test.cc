// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/backtest_html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/backtest_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/backtest/price_source.h"
#include "server/backtest/simulate.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SessionOutcome Outcome(const std::string& name, std::int64_t turns) {
  std::vector<NamedPolicy> policies;
  for (const char* const text : {"off", "every_turn", "adaptive"}) {
    policies.push_back(
        {.name = text,
         .policy = WithSimulationPlaceholder(*ParsePolicy(text))});
  }
  SessionOutcome outcome = *RunSession(SimulatedSession(turns), policies,
                                       SimulationCounter(), ListPrices());
  outcome.name = name;
  return outcome;
}

std::size_t Count(absl::string_view text, absl::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The first tag of `html` that is not closed or closes another one than was
// opened last; "" if all is well.
std::string FirstWrongTag(absl::string_view html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != absl::string_view::npos;
       at = html.find('<', at)) {
    const std::size_t end = html.find('>', at);
    if (end == absl::string_view::npos) return "<";
    absl::string_view tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.front() == '!' || tag.back() == '/') continue;
    const std::string name(tag.substr(0, tag.find_first_of(" \n")));
    if (tag.front() != '/') {
      open.push_back(name);
    } else if (open.empty() || absl::StrCat("/", open.back()) != name) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

TEST(FormatHtmlTest, EveryTagIsClosedInOrder) {
  EXPECT_EQ(FirstWrongTag(FormatHtml({Outcome("a", 40)}, "list")), "");
  EXPECT_EQ(
      FirstWrongTag(FormatHtml({Outcome("a", 1), Outcome("b", 30)}, "list")),
      "");
}

TEST(FormatHtmlTest, NeedsNoNetworkAndNoScript) {
  const std::string html = FormatHtml({Outcome("a", 40)}, "list");
  for (const char* const word :
       {"<script", "<link", "<img", "src=", "href=", "url(", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(word)));
  }
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

TEST(FormatHtmlTest, ANameIsTextWhateverItHolds) {
  const std::string html =
      FormatHtml({Outcome("/tmp/<script>\"&'\xff.jsonl", 5)}, "<b>");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, HasSubstr("/tmp/&lt;script&gt;&quot;&amp;&#39;\xef\xbf\xbd"
                              ".jsonl"));
  EXPECT_EQ(FirstWrongTag(html), "");
}

TEST(FormatHtmlTest, HasEveryChartOfASession) {
  const std::string html = FormatHtml({Outcome("a", 60)}, "list");
  for (const char* const title :
       {"Cost of each policy", "Cost if masked observations are fetched again",
        "Size of the prompt", "Cost against length",
        "Modelled time of prefill"}) {
    EXPECT_THAT(html, HasSubstr(absl::StrCat("<figcaption>", title)));
  }
  EXPECT_THAT(html, HasSubstr("5,000 tokens a second"));
  EXPECT_THAT(html, HasSubstr("$1.86, 1.000 of raw"));
  EXPECT_THAT(html, HasSubstr("<td>$4.3224</td>")) << "masking every turn";
}

TEST(FormatHtmlTest, CountsTheTokensThatAreNotCached) {
  SessionOutcome outcome = Outcome("a", 30);
  EXPECT_THAT(FormatHtml({outcome}, "list"), Not(HasSubstr("1,234,567,890")));
  outcome.policies.back().result.input.uncached = 1'234'567'890;
  EXPECT_THAT(FormatHtml({outcome}, "list"), HasSubstr("1,234,567,890"));
}

TEST(FormatHtmlTest, MarksTheBreaksOfPoliciesThatHaveFew) {
  const SessionOutcome outcome = Outcome("a", 60);
  const auto& breaks = outcome.policies[2].result.breaks;
  std::int64_t count = 0;
  for (std::size_t reason = 1; reason < breaks.size(); ++reason) {
    count += breaks[reason];
  }
  ASSERT_GT(count, 0);
  const std::string html = FormatHtml({outcome}, "list");
  EXPECT_EQ(Count(html, ": adaptive masks "), static_cast<std::size_t>(count));
  EXPECT_EQ(Count(html, ": every_turn masks "), 0U) << "there are 49";
  EXPECT_THAT(html, HasSubstr("every_turn, 49 breaks"));
}

TEST(FormatHtmlTest, DrawsTheDearestSessionsAndListsAll) {
  std::vector<SessionOutcome> sessions;
  for (const std::int64_t turns : {3, 20, 21, 22, 23, 24, 25, 2}) {
    sessions.push_back(Outcome(absl::StrCat("of-", turns), turns));
  }
  const std::string html = FormatHtml(sessions, "list");
  EXPECT_EQ(Count(html, "<figcaption>Size of the prompt"), 6U);
  EXPECT_THAT(html, HasSubstr("<h2>of-20</h2>"));
  EXPECT_THAT(html, Not(HasSubstr("<h2>of-3</h2>")));
  EXPECT_THAT(html, HasSubstr("<td class=\"long\">of-3</td>"));
  EXPECT_THAT(html, HasSubstr("The charts above are of the 6 dearest."));
}

TEST(BreakEvenPercentTest, IsWhereSavingsAreFetchedAway) {
  const std::vector<SessionOutcome> sessions = {Outcome("a", 100)};
  EXPECT_LT(BreakEvenPercent(sessions, 1), 0) << "dearer than raw";
  const double even = BreakEvenPercent(sessions, 2);
  const PolicyOutcome& adaptive = sessions[0].policies[2];
  const double saved =
      static_cast<double>(sessions[0].raw_cost - adaptive.result.cost);
  EXPECT_NEAR(even,
              100 * saved / static_cast<double>(adaptive.result.refetch_cost),
              1e-6);
  EXPECT_GT(BreakEvenPercent(sessions, 0), 100) << "it masks nothing";
}

}  // namespace
}  // namespace clerestory
