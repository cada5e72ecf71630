// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Tries the breaker of tools on agents that are made up: each tool is fetched
// again with a probability that is known, and each agent has prices, sizes and
// lengths of sessions of its own, so that the break-even rate is known too.
//
//   clerestory_breaker_trial [--seed N] [--runs N]
//
// prints what came of it, and as its last line a JSON object. Equal seeds print
// the same.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "tests/evidence/made_up_agents.h"

namespace clerestory {
namespace {

constexpr std::int64_t kDay = 86'400 * kMicrosPerSecond;
constexpr TimeMicros kStart = 20'000 * kDay;
constexpr int kRatesPercentMax = 40;
// Judged by.
constexpr std::int64_t kJudgedAt = 200;
// Observations.
constexpr std::int64_t kPerDay = 200;
// Nearer to the break-even than this factor, either way, is the zone in which
// no sample of kJudgedAt can tell, and where little is at stake.
constexpr double kZone = 1.5;

struct Errors {
  std::int64_t count = 0;
  std::int64_t false_opens = 0;
  std::int64_t missed_opens = 0;

  void Add(bool is_above, bool is_open) {
    ++count;
    if (is_open && !is_above) ++false_opens;
    if (!is_open && is_above) ++missed_opens;
  }
  double rate() const {
    if (count == 0) return 0;
    return static_cast<double>(false_opens + missed_opens) /
           static_cast<double>(count);
  }
};

struct Judged {
  Errors all;
  Errors outside;  // Of the zone.
  // Of whoever knows the break-even, sees as many observations and goes by
  // their rate alone: about what no rule can be below.
  Errors least;
  // Masked observations until it was opened, of those above the zone; never is
  // kJudgedAt * 100.
  std::vector<std::int64_t> times;
};

std::int64_t Percentile(std::vector<std::int64_t> values, int percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * static_cast<std::size_t>(percent) / 100];
}

void Judge(const Agent& agent, double break_even, const BreakerOptions& options,
           std::int64_t runs, Random& random, Judged& judged) {
  for (int percent = 0; percent <= kRatesPercentMax; ++percent) {
    const double rate = percent / 100.0;
    for (std::int64_t run = 0; run < runs; ++run) {
      Loop loop(agent, rate, options, random);
      while (loop.masked_count() < kJudgedAt && loop.transitions().empty()) {
        loop.RunSession(kStart + loop.observation_count() * kDay / kPerDay);
      }
      const bool is_open = !loop.transitions().empty();
      const bool is_above = rate > break_even;
      judged.all.Add(is_above, is_open);
      std::int64_t refetched = 0;
      for (std::int64_t i = 0; i < kJudgedAt; ++i) {
        if (random.Share() < rate) ++refetched;
      }
      judged.least.Add(is_above, static_cast<double>(refetched) >
                                     break_even * double{kJudgedAt});
      if (rate > break_even * kZone || rate < break_even / kZone) {
        judged.outside.Add(is_above, is_open);
      }
      if (rate > break_even * kZone) {
        judged.times.push_back(
            is_open ? loop.transitions().front().figures.masked_count
                    : kJudgedAt * 100);
      }
    }
  }
}

void PrintErrors(absl::string_view name, double break_even,
                 const Judged& judged) {
  std::printf(
      "%-24s %6.1f %% | %6.2f %% %6.2f %% %6.2f %% | %6.2f %% %6.2f %% "
      "%6.2f %% | %5lld %5lld\n",
      std::string(name).c_str(), 100 * break_even, 100 * judged.all.rate(),
      100.0 * static_cast<double>(judged.all.false_opens) /
          static_cast<double>(judged.all.count),
      100.0 * static_cast<double>(judged.all.missed_opens) /
          static_cast<double>(judged.all.count),
      100 * judged.outside.rate(),
      100.0 * static_cast<double>(judged.outside.false_opens) /
          static_cast<double>(judged.outside.count),
      100.0 * static_cast<double>(judged.outside.missed_opens) /
          static_cast<double>(judged.outside.count),
      static_cast<long long>(Percentile(judged.times, 50)),
      static_cast<long long>(Percentile(judged.times, 90)));
}

void Merge(const Judged& from, Judged& to) {
  const auto add = [](const Errors& a, Errors& b) {
    b.count += a.count;
    b.false_opens += a.false_opens;
    b.missed_opens += a.missed_opens;
  };
  add(from.all, to.all);
  add(from.outside, to.outside);
  add(from.least, to.least);
  to.times.insert(to.times.end(), from.times.begin(), from.times.end());
}

// Sessions until so many observations, `per_day` of them.
void RunFor(Loop& loop, std::int64_t observations, std::int64_t per_day,
            TimeMicros start) {
  const std::int64_t before = loop.observation_count();
  while (loop.observation_count() - before < observations) {
    loop.RunSession(start +
                    (loop.observation_count() - before) * kDay / per_day);
  }
}

struct Trial {
  std::uint64_t seed = 1;
  std::int64_t runs = 100;
};

int Run(const Trial& trial) {
  std::printf("seed %llu, %lld runs\n",
              static_cast<unsigned long long>(trial.seed),
              static_cast<long long>(trial.runs));
  Random random(trial.seed);
  std::vector<double> break_evens;
  for (const Agent& agent : Agents()) {
    break_evens.push_back(BreakEven(agent, trial.seed + 1));
  }

  std::printf(
      "\nJudged by %lld masked observations; rates from 0 to %d %%, each as "
      "often. The zone is from 1/%.1f to %.1f of break-even.\n"
      "%-24s %8s | %8s %8s %8s | %8s %8s %8s | %5s %5s\n",
      static_cast<long long>(kJudgedAt), kRatesPercentMax, kZone, kZone,
      "agent", "even at", "error", "false", "missed", "outside", "false",
      "missed", "p50", "p90");
  Judged by_price;
  Judged by_rate;
  for (std::size_t i = 0; i < Agents().size(); ++i) {
    Judged judged;
    Judge(Agents()[i], break_evens[i], {}, trial.runs, random, judged);
    PrintErrors(Agents()[i].name, break_evens[i], judged);
    Merge(judged, by_price);
  }
  PrintErrors("all, from prices", 0, by_price);
  for (const std::int64_t permille : {50, 130, 250}) {
    Judged judged;
    Judge(Agents()[0], static_cast<double>(permille) / 1000,
          {.rate_permille = permille}, trial.runs * 2, random, judged);
    PrintErrors("fixed", static_cast<double>(permille) / 1000, judged);
    Merge(judged, by_rate);
  }
  PrintErrors("all, fixed", 0, by_rate);
  Judged all = by_price;
  Merge(by_rate, all);
  PrintErrors("all", 0, all);
  std::printf(
      "Who knows the break-even and goes by the rate of %lld alone has an "
      "error of %.2f %%, the zone included.\n",
      static_cast<long long>(kJudgedAt), 100 * all.least.rate());

  std::printf(
      "\nRepeated looks: opened of the tools that are fetched again as "
      "often as just pays (13 %%, fixed), by so many.\n%-24s %8s %8s "
      "%8s\n",
      "confidence", "200", "1,000", "4,000");
  for (const std::int64_t confidence : {80, 90, 95, 99}) {
    std::array<std::int64_t, 3> opened = {};
    const std::int64_t runs = trial.runs * 10;
    for (std::int64_t run = 0; run < runs; ++run) {
      Loop loop(Agents()[0], 0.13,
                {.rate_permille = 130, .confidence_percent = confidence},
                random);
      std::size_t i = 0;
      for (const std::int64_t count : {200, 1'000, 4'000}) {
        while (loop.transitions().empty() && loop.masked_count() < count) {
          loop.RunSession(kStart);
        }
        if (!loop.transitions().empty()) ++opened[i];
        ++i;
      }
    }
    std::printf("%lld %%  ", static_cast<long long>(confidence));
    for (const std::int64_t count : opened) {
      std::printf(" %6.1f %%", 100.0 * static_cast<double>(count) /
                                   static_cast<double>(runs));
    }
    std::printf("\n");
  }

  std::printf("\nAt the threshold, 10,000 observations, 200 a day.\n");
  std::int64_t transition_count = 0;
  std::int64_t opened_count = 0;
  std::int64_t worst = 0;
  std::int64_t threshold_runs = 0;
  for (std::size_t i = 0; i < Agents().size(); ++i) {
    for (const std::int64_t permille : {std::int64_t{0}, std::int64_t{130}}) {
      for (std::int64_t run = 0;
           run < std::max(trial.runs / 10, std::int64_t{1}); ++run) {
        const double rate = permille == 0 ? break_evens[i] : 0.13;
        Loop loop(Agents()[i], rate, {.rate_permille = permille}, random);
        RunFor(loop, 10'000, kPerDay, kStart);
        const auto count = static_cast<std::int64_t>(loop.transitions().size());
        transition_count += count;
        if (count > 0) ++opened_count;
        worst = std::max(worst, count);
        ++threshold_runs;
      }
    }
  }
  const double flapping = static_cast<double>(transition_count) /
                          static_cast<double>(threshold_runs);
  std::printf(
      "transitions: %.2f on average, %lld at worst; ever opened: %.1f "
      "%%\n",
      flapping, static_cast<long long>(worst),
      100.0 * static_cast<double>(opened_count) /
          static_cast<double>(threshold_runs));

  std::printf(
      "\nThe loop: tools of 0 to %d %%, 200 observations a day for 30 "
      "days, against knowing the rates.\n%-24s %8s %8s\n",
      kRatesPercentMax, "agent", "spent", "of what masking changes");
  double spent = 0;
  double spent_best = 0;
  double avoidable = 0;
  double avoidable_best = 0;
  for (std::size_t i = 0; i < Agents().size(); ++i) {
    double agent_spent = 0, agent_best = 0, agent_avoidable = 0,
           agent_avoidable_best = 0;
    for (int percent = 0; percent <= kRatesPercentMax; percent += 2) {
      const double rate = percent / 100.0;
      const std::uint64_t seed =
          trial.seed + 1'000 * i + static_cast<std::uint64_t>(percent);
      for (std::int64_t run = 0;
           run < std::max(trial.runs / 50, std::int64_t{1}); ++run) {
        Random same(seed + 1'000'000 * static_cast<std::uint64_t>(run));
        Loop loop(Agents()[i], rate, {}, same);
        RunFor(loop, 6'000, kPerDay, kStart);
        agent_spent += loop.spent();
        agent_avoidable += loop.avoidable();
        // Knowing the rates: the outputs are the same, in another order.
        Random again(seed + 1'000'000 * static_cast<std::uint64_t>(run));
        double masked = 0, unmasked = 0, base = 0;
        for (std::int64_t n = 0; n < loop.observation_count(); ++n) {
          const Output output = Draw(Agents()[i], rate, again);
          base += static_cast<double>(output.spent);
          unmasked += static_cast<double>(output.saved);
          masked += static_cast<double>(output.broken) +
                    rate * static_cast<double>(output.lost);
        }
        const double best = rate > break_evens[i] ? unmasked : masked;
        agent_best += base + best;
        agent_avoidable_best += best;
      }
    }
    std::printf("%-24s %6.2f %% %6.2f %%\n",
                std::string(Agents()[i].name).c_str(),
                100 * (agent_spent / agent_best - 1),
                100 * (agent_avoidable / agent_avoidable_best - 1));
    spent += agent_spent;
    spent_best += agent_best;
    avoidable += agent_avoidable;
    avoidable_best += agent_avoidable_best;
  }
  std::printf("%-24s %6.2f %% %6.2f %%\n", "all",
              100 * (spent / spent_best - 1),
              100 * (avoidable / avoidable_best - 1));

  std::printf(
      "\nA tool whose rate goes from 2 %% to 40 %% after 3,000 "
      "observations, 200 a day.\n");
  std::vector<std::int64_t> delays;
  for (std::int64_t run = 0; run < trial.runs; ++run) {
    Loop loop(Agents()[0], 0.02, {}, random);
    RunFor(loop, 3'000, kPerDay, kStart);
    loop.set_rate(0.4);
    const std::int64_t before = loop.masked_count();
    const std::size_t opened = loop.transitions().size();
    TimeMicros now = kStart + 15 * kDay;
    while (loop.transitions().size() == opened &&
           loop.masked_count() - before < 20'000) {
      loop.RunSession(now);
      now += 5 * kDay / 200;
    }
    delays.push_back(loop.masked_count() - before);
  }
  std::printf("observations until it is unmasked: %lld median, %lld p90\n",
              static_cast<long long>(Percentile(delays, 50)),
              static_cast<long long>(Percentile(delays, 90)));

  std::printf(
      "{\"breaker_error_rate\":%.4f,\"error_rate_zone_included\":%.4f,"
      "\"error_rate_fixed\":%.4f,\"error_rate_prices\":%.4f,"
      "\"error_rate_least_zone_included\":%.4f,"
      "\"false_open_rate\":%.4f,\"zone\":%.2f,\"regret\":%.4f,"
      "\"avoidable_regret\":%.4f,\"time_to_open_median\":%lld,"
      "\"time_to_open_p90\":%lld,\"transitions_at_threshold\":%.3f,"
      "\"change_noticed_median\":%lld,\"seed\":%llu}\n",
      all.outside.rate(), all.all.rate(), by_rate.outside.rate(),
      by_price.outside.rate(), all.least.rate(),
      static_cast<double>(all.outside.false_opens) /
          static_cast<double>(all.outside.count),
      kZone, spent / spent_best - 1, avoidable / avoidable_best - 1,
      static_cast<long long>(Percentile(all.times, 50)),
      static_cast<long long>(Percentile(all.times, 90)), flapping,
      static_cast<long long>(Percentile(delays, 50)),
      static_cast<unsigned long long>(trial.seed));
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) {
  clerestory::Trial trial;
  for (int i = 1; i < argc; i += 2) {
    const absl::string_view name = i + 1 < argc ? argv[i] : "";
    if (name == "--seed" && absl::SimpleAtoi(argv[i + 1], &trial.seed))
      continue;
    if (name == "--runs" && absl::SimpleAtoi(argv[i + 1], &trial.runs))
      continue;
    std::fprintf(stderr, "usage: %s [--seed N] [--runs N]\n", argv[0]);
    return EXIT_FAILURE;
  }
  return clerestory::Run(trial);
}
