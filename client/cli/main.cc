// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// The command line client.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/backtest_command.h"
#include "client/cli/replay_command.h"
#include "client/cli/report_command.h"
#include "server/backtest/price_source.h"
#include "server/policy/presets.h"

namespace clerestory {
namespace {

void AddBacktest(CLI::App& cli, BacktestOptions& options) {
  CLI::App& command = *cli.add_subcommand(
      "backtest",
      "Play transcripts again under several policies, offline, and print what "
      "each would have cost.");
  command.add_option("FILE", options.files,
                     "transcripts: files, or folders of OpenHands events");
  command
      .add_option("--policy", options.policies,
                  absl::StrCat(
                      "a mode (off, every_turn, block, threshold, adaptive, "
                      "delegate) or a preset (",
                      PresetNames(),
                      "), and fields that differ, as in block,block_size=20 or "
                      "adaptive,errors=drop; may be repeated"))
      ->take_all();
  command.add_option(
      "--format", options.source,
      "kind of the files (claude-code, codex, pi, gemini, cline, "
      "swe-agent, mini-swe-agent, openhands-v0, openhands-v1, "
      "trae, inspect, langchain, atif, anthropic, openai-chat), "
      "if not detected");
  command.add_option("--model", options.model,
                     "model of all calls, for its prices; else as the "
                     "transcript says");
  command.add_option("--preamble-tokens", options.preamble_tokens,
                     "tokens of system prompt and tools before the messages");
  command.add_option("--chars-per-token", options.chars_per_token,
                     "count so many characters as a token, instead of "
                     "estimating by kind of text");
  command.add_option("--prices", options.prices,
                     absl::StrCat("charge all calls for writes and reads of "
                                  "the cache as these multiples of the input's "
                                  "price (3.00 dollars, output 15.00): ",
                                  absl::StrJoin(PriceStructureNames(), ", ")));
  command.add_option("--json", options.json_path, "also write JSON to a file");
  command.add_option("--html", options.html_path,
                     "also write a page with charts to a file");
  command
      .add_option("--simulate", options.simulations,
                  "play simulated sessions instead of files: published, or "
                  "lognormal:TURNS:SEED for log-normal sizes, also with "
                  "FIRST-LAST seeds and :pauses behind them; may be repeated")
      ->type_name("[SIMULATION]")
      ->expected(0, 1)
      ->take_all();
}

void AddReplay(CLI::App& cli, ReplayOptions& options) {
  CLI::App& command = *cli.add_subcommand(
      "replay",
      "Send a transcript to a running server as an agent would, check what "
      "comes back, and print what it cost.");
  command
      .add_option("FILE", options.file,
                  "a transcript: a file, or a folder of OpenHands events")
      ->required();
  command.add_option("--target", options.target, "address of the server");
  command.add_option("--format", options.source,
                     "kind of the file, as for backtest, if not detected");
  command.add_option("--model", options.model,
                     "model of all calls; else as the transcript says");
  command.add_option("--session-prefix", options.session_prefix,
                     "what session ids begin with");
  command.add_option("--preamble-tokens", options.preamble_tokens,
                     "tokens of system prompt and tools before the messages");
  command.add_flag("--transcript-times,!--no-transcript-times",
                   options.use_transcript_times,
                   "send the transcript's own times, which a server takes in "
                   "development mode only (on by default)");
  command.add_option("--retry-seconds", options.retry_seconds,
                     "for how long to try again while the server is away");
  command.add_option("--json", options.json_path, "also write JSON to a file");
  command.add_flag("--quiet", options.quiet, "no line for each call");
}

void AddReport(CLI::App& cli, ReportOptions& options) {
  CLI::App& command = *cli.add_subcommand(
      "report",
      "Ask a running server whether masking helps: what closed sessions came "
      "to, with it and without, and what agents read for nothing.");
  command.add_option("--target", options.target, "address of the server");
  command
      .add_option("--label", options.labels,
                  "KEY=VALUE: only sessions with this label; may be repeated")
      ->take_all();
}

absl::Status Run(const CLI::App& cli, const BacktestOptions& backtest,
                 const ReplayOptions& replay, const ReportOptions& report) {
  if (cli.got_subcommand("backtest")) return RunBacktest(backtest);
  if (cli.got_subcommand("report")) return RunReport(report);
  return RunReplay(replay);
}

int Main(int argc, char** argv) {
  CLI::App cli("Client of Clerestory, which manages the context of LLM agents.",
               "clerestory");
  // Nothing at all is answered below, so that a command that is unknown is
  // named.
  cli.require_subcommand(0, 1);
  BacktestOptions backtest;
  ReplayOptions replay;
  ReportOptions report;
  AddBacktest(cli, backtest);
  AddReplay(cli, replay);
  AddReport(cli, report);
  CLI11_PARSE(cli, argc, argv);
  if (cli.get_subcommands().empty()) {
    std::fputs(cli.help().c_str(), stderr);
    return 1;
  }
  backtest.simulate = cli.get_subcommand("backtest")->count("--simulate") > 0;
  const absl::Status status = Run(cli, backtest, replay, report);
  if (status.ok()) return 0;
  std::fprintf(stderr, "clerestory: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) { return clerestory::Main(argc, argv); }
