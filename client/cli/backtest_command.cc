// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/backtest_command.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/backtest_html.h"
#include "client/cli/backtest_report.h"
#include "client/cli/backtest_run.h"
#include "client/cli/simulation_spec.h"
#include "client/cli/terminal.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "server/backtest/price_source.h"
#include "server/backtest/simulate.h"
#include "server/base/status.h"
#include "server/policy/policy.h"
#include "server/tokens/chars_token_counter.h"
#include "server/tokens/class_token_counter.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

absl::StatusOr<std::vector<NamedPolicy>> ParsePolicies(
    const std::vector<std::string>& names) {
  std::vector<NamedPolicy> policies;
  for (const std::string& name : names) {
    absl::StatusOr<Policy> policy = ParsePolicy(name);
    if (!policy.ok()) {
      return Annotate(policy.status(), absl::StrCat("--policy ", name));
    }
    policies.push_back({.name = name, .policy = *std::move(policy)});
  }
  return policies;
}

absl::StatusOr<const PriceSource*> FindPrices(const std::string& name) {
  if (name.empty()) return &ListPrices();
  if (const PriceSource* found = FindPriceStructure(name)) return found;
  return FieldError("prices",
                    absl::StrCat("--prices ", name, ": unknown; write one of ",
                                 absl::StrJoin(PriceStructureNames(), ", ")));
}

absl::Status WriteFile(const char* option, const std::string& path,
                       const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text << "\n";
  file.close();
  if (!file) return FieldError(option, absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

void Warn(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

std::string PricesNote(const std::string& prices) {
  if (prices.empty()) return "the list prices of the models";
  return absl::StrCat(prices,
                      " for writing to the cache and reading from it, as parts "
                      "of $3.00 a million tokens of input; output $15.00");
}

bool IsPublishedOnly(const std::vector<std::string>& simulations) {
  return std::all_of(simulations.begin(), simulations.end(),
                     [](const std::string& text) {
                       return text.empty() || text == "published";
                     });
}

class Backtester {
 public:
  Backtester(const BacktestOptions& options, const PriceSource& prices,
             std::vector<NamedPolicy> policies)
      : options_(options), prices_(prices), policies_(std::move(policies)) {
    if (options.chars_per_token > 0) {
      chars_counter_ =
          std::make_unique<CharsTokenCounter>(options.chars_per_token);
    }
  }

  // Plays the sessions of a file, and names what could not be.
  void RunFile(const std::string& file) {
    absl::StatusOr<ReadResult> read = ReadTranscriptFile(file, options_.source);
    if (!read.ok()) {
      warnings_.push_back(
          absl::StrCat(file, ": ", std::string(read.status().message())));
      return;
    }
    for (const ReadIssue& issue : read->issues) {
      warnings_.push_back(
          absl::StrCat(file, ":", issue.line, ": ", issue.what));
    }
    for (const Transcript& transcript : read->transcripts) {
      const std::string name = absl::StrCat(file, transcript.name);
      absl::StatusOr<SessionOutcome> outcome = RunSession(
          ToInput(transcript, options_.model, options_.preamble_tokens),
          policies_, counter(), prices_);
      if (!outcome.ok()) {
        warnings_.push_back(
            absl::StrCat(name, ": ", std::string(outcome.status().message())));
        continue;
      }
      if (outcome->call_count == 0) continue;
      outcome->name = name;
      outcome->format = transcript.source;
      sessions_.push_back(*std::move(outcome));
    }
  }

  absl::Status RunSimulations() {
    for (NamedPolicy& named : policies_) {
      named.policy = WithSimulationPlaceholder(std::move(named.policy));
    }
    std::vector<SimulatedInput> inputs;
    for (const std::string& text : options_.simulations) {
      CLERESTORY_ASSIGN_OR_RETURN(std::vector<SimulatedInput> some,
                                  ParseSimulation(text));
      std::move(some.begin(), some.end(), std::back_inserter(inputs));
    }
    for (const SimulatedInput& simulated : inputs) {
      CLERESTORY_ASSIGN_OR_RETURN(
          SessionOutcome outcome,
          RunSession(simulated.input, policies_, SimulationCounter(), prices_));
      outcome.name = simulated.name;
      outcome.format = "simulation";
      sessions_.push_back(std::move(outcome));
    }
    return absl::OkStatus();
  }

  const std::vector<SessionOutcome>& sessions() const { return sessions_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  const TokenCounter& counter() const {
    return chars_counter_ != nullptr ? *chars_counter_ : ClassTokenCounter();
  }

  const BacktestOptions& options_;
  const PriceSource& prices_;
  std::vector<NamedPolicy> policies_;
  std::unique_ptr<TokenCounter> chars_counter_;
  std::vector<SessionOutcome> sessions_;
  std::vector<std::string> warnings_;
};

}  // namespace

absl::Status RunBacktest(const BacktestOptions& options) {
  CLERESTORY_ASSIGN_OR_RETURN(std::vector<NamedPolicy> policies,
                              ParsePolicies(options.policies));
  CLERESTORY_ASSIGN_OR_RETURN(const PriceSource* const prices,
                              FindPrices(options.prices));
  Backtester backtester(options, *prices, std::move(policies));
  if (options.simulate) {
    CLERESTORY_RETURN_IF_ERROR(backtester.RunSimulations());
    std::fputs(IsPublishedOnly(options.simulations)
                   ? FormatSimulation(backtester.sessions()).c_str()
                   : FormatSessions(backtester.sessions()).c_str(),
               stdout);
  } else {
    {
      ProgressBar bar(options.files.size());
      for (std::size_t i = 0; i < options.files.size(); ++i) {
        bar.Show(i, options.files[i]);
        backtester.RunFile(options.files[i]);
      }
    }
    for (const std::string& warning : backtester.warnings()) Warn(warning);
    if (backtester.sessions().empty()) {
      return FieldError("FILE", "no session could be read");
    }
    std::fputs(FormatSessions(backtester.sessions()).c_str(), stdout);
  }
  if (!options.json_path.empty()) {
    CLERESTORY_RETURN_IF_ERROR(WriteFile("json", options.json_path,
                                         FormatJson(backtester.sessions())));
  }
  if (!options.html_path.empty()) {
    CLERESTORY_RETURN_IF_ERROR(WriteFile(
        "html", options.html_path,
        FormatHtml(backtester.sessions(), PricesNote(options.prices))));
  }
  return absl::OkStatus();
}

}  // namespace clerestory
