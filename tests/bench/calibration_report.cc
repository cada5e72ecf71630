// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How well the next prompt of a session is predicted from the usage that was
// reported before, on transcripts that have it. Each session is played with the
// estimator of the server; before every call its whole prompt is predicted, and
// compared with what the file says that the provider counted.
//
//   clerestory_calibration_report FILE...
//
// A transcript holds all that was ever said. Where an agent compacts or clears
// its history, goes back, or has another model answer, the prompt shrinks while
// the transcript grows, which a server would see and this cannot: there a new
// segment begins, without an anchor and with no report, and the call itself is
// not predicted. It is taken to be so where the reported prompt is smaller than
// the one before by more than a tenth; smaller losses count as errors, and so
// does everything that the prompt gains.
// To show what that leaves out, one row is of sessions that are not cut.
//
// Prints numbers only, and exits with 1 if no file has usage. The last line is
// JSON for other programs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "server/cost/calibration.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/tokens/class_token_counter.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

struct Call {
  std::string model;
  std::int64_t estimated = 0;
  std::int64_t reported = 0;
};

struct Segment {
  std::string name;
  std::size_t session = 0;
  std::vector<Call> calls;
};

// The errors of predictions in percent, by how many reports came before.
using Errors = std::vector<double>;

using Calibrations = std::map<std::string, TokenCalibration>;

enum class Way { kScaleOnly, kAnchorOnly, kOwn, kOthers };

struct WayName {
  Way way;
  const char* name;
};

constexpr std::array<WayName, 4> kWays = {{
    {Way::kScaleOnly, "no anchor, scale of other sessions"},
    {Way::kAnchorOnly, "anchor, scale 1"},
    {Way::kOwn, "anchor, scale of this session"},
    {Way::kOthers, "anchor, scale of all sessions"},
}};

std::vector<Call> CallsOf(const Transcript& transcript) {
  SessionHeader header;
  header.format = transcript.format;
  Session session(header, ClassTokenCounter());
  std::vector<Call> calls;
  for (const TranscriptMessage& message : transcript.messages) {
    if (message.usage) {
      if (const auto reported = ReportedPromptTokens(*message.usage)) {
        calls.push_back({.model = message.model,
                         .estimated = session.raw_tokens().total(),
                         .reported = *reported});
      }
    }
    const Bytes bytes = std::make_shared<const std::string>(message.bytes);
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        session.CheckAppend({bytes});
    if (!parsed.ok()) {
      std::printf("    a message is refused, and what follows left out\n");
      break;
    }
    session.Append({.time = message.time, .message = bytes},
                   std::move(parsed->front()));
  }
  return calls;
}

// Cuts `calls` where the prompt shrinks. What was said before a segment is to
// it a preamble that nobody tells.
void AddSegments(const Segment& whole, std::vector<Segment>& segments) {
  std::int64_t before = 0;
  std::int64_t said = 0;
  std::int64_t count = 0;
  for (const Call& call : whole.calls) {
    if (before == 0 || call.reported < before - before / 10) {
      said = before == 0 ? 0 : call.estimated;
      segments.push_back({.name = count == 0
                                      ? whole.name
                                      : absl::StrCat(whole.name, "/", count),
                          .session = whole.session,
                          .calls = {}});
      ++count;
    }
    before = call.reported;
    segments.back().calls.push_back(call);
    segments.back().calls.back().estimated -= said;
  }
}

double PercentOff(std::int64_t predicted, std::int64_t reported) {
  return 100.0 * static_cast<double>(std::abs(predicted - reported)) /
         static_cast<double>(reported);
}

Errors Play(const Segment& segment, Way way, Calibrations& calibrations) {
  SessionAnchor anchor;
  Errors errors;
  std::string model = segment.calls.front().model;
  for (const Call& call : segment.calls) {
    if (model != call.model) anchor.BreakSamples();
    model = call.model;
    TokenCalibration& calibration = calibrations[model];
    const PromptEstimate estimate = {.message_tokens = call.estimated};
    const std::int64_t scale =
        way == Way::kAnchorOnly ? kScaleOne : calibration.scale_ppm();
    errors.push_back(PercentOff(way == Way::kScaleOnly
                                    ? SessionAnchor().Predict(estimate, scale)
                                    : anchor.Predict(estimate, scale),
                                call.reported));
    const SessionAnchor::Outcome outcome =
        anchor.Report(call.reported, estimate);
    if (outcome.sample) calibration.Add(*outcome.sample);
  }
  return errors;
}

// What is learned from all segments but those of `session`.
Calibrations LearnWithout(std::size_t session,
                          const std::vector<Segment>& segments) {
  Calibrations calibrations;
  for (const Segment& segment : segments) {
    if (segment.session != session) Play(segment, Way::kOwn, calibrations);
  }
  return calibrations;
}

// The errors of a session that has no report but its first.
Errors PlayFirst(const Segment& segment, Calibrations& calibrations,
                 bool is_scaled) {
  SessionAnchor anchor;
  Errors errors;
  for (const Call& call : segment.calls) {
    const PromptEstimate estimate = {.message_tokens = call.estimated};
    if (!anchor.is_set()) {
      anchor.Report(call.reported, estimate);
      continue;
    }
    const std::int64_t scale =
        is_scaled ? calibrations[call.model].scale_ppm() : kScaleOne;
    errors.push_back(
        PercentOff(anchor.Predict(estimate, scale), call.reported));
  }
  return errors;
}

// The errors of predictions from all reports but the last nine.
Errors PlayAhead(const Segment& segment, Way way, Calibrations calibrations) {
  SessionAnchor anchor;
  std::vector<std::pair<SessionAnchor, std::int64_t>> known;
  Errors errors;
  std::string model = segment.calls.front().model;
  for (const Call& call : segment.calls) {
    if (model != call.model) anchor.BreakSamples();
    model = call.model;
    const PromptEstimate estimate = {.message_tokens = call.estimated};
    if (known.size() >= 10) {
      const auto& [old_anchor, scale] = known[known.size() - 10];
      errors.push_back(
          PercentOff(old_anchor.Predict(estimate, scale), call.reported));
    }
    TokenCalibration& calibration = calibrations[call.model];
    const SessionAnchor::Outcome outcome =
        anchor.Report(call.reported, estimate);
    if (outcome.sample) calibration.Add(*outcome.sample);
    known.emplace_back(
        anchor, way == Way::kAnchorOnly ? kScaleOne : calibration.scale_ppm());
  }
  return errors;
}

struct Summary {
  double mean = 0;
  double median = 0;
  double worst = 0;
  double within = 0;  // How many of 100 are within the goal.
};

Summary Summarize(Errors errors, double goal) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  Summary summary = {.median = errors[errors.size() / 2],
                     .worst = errors.back()};
  for (const double error : errors) {
    summary.mean += error;
    summary.within += error <= goal ? 100 : 0;
  }
  summary.mean /= static_cast<double>(errors.size());
  summary.within /= static_cast<double>(errors.size());
  return summary;
}

void Add(const Errors& part, std::size_t from, Errors& all) {
  if (part.size() <= from) return;
  std::copy(part.begin() + static_cast<std::ptrdiff_t>(from), part.end(),
            std::back_inserter(all));
}

std::string Cell(const Errors& errors, std::size_t at) {
  if (errors.size() <= at) return "     -";
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%6.1f", errors[at]);
  return text.data();
}

void PrintRow(const char* what, const Errors& errors, double goal) {
  const Summary s = Summarize(errors, goal);
  std::printf("  %-36s %5zu %8.2f %8.2f %8.1f %7.1f\n", what, errors.size(),
              s.median, s.mean, s.worst, s.within);
}

void PrintHead(const std::string& title) {
  std::printf("\n%-38s %5s %8s %8s %8s %7s\n", title.c_str(), "calls", "median",
              "mean", "worst", "in goal");
}

int Main(const std::vector<std::string>& paths) {
  std::vector<Segment> wholes;
  std::vector<Segment> segments;
  std::size_t reports = 0;
  for (const std::string& path : paths) {
    const absl::StatusOr<ReadResult> read = ReadTranscriptFile(path, "auto");
    if (!read.ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(),
                   read.status().ToString().c_str());
      continue;
    }
    const std::string file = path.substr(path.rfind('/') + 1);
    for (const Transcript& transcript : read->transcripts) {
      std::vector<Call> calls = CallsOf(transcript);
      if (calls.empty()) continue;
      reports += calls.size();
      wholes.push_back(
          {.name = absl::StrCat(file.substr(0, 44), transcript.name),
           .session = wholes.size(),
           .calls = std::move(calls)});
      AddSegments(wholes.back(), segments);
    }
  }
  if (segments.empty()) {
    std::fprintf(stderr, "no file has usage\n");
    return 1;
  }

  std::printf("error in percent, after so many reports\n");
  std::printf("%-50s %5s %7s %6s %6s %6s %6s %6s %6s\n", "segment", "calls",
              "scale", "0", "1", "3", "10", "mean3+", "worst");
  std::array<Errors, 4> after_3;
  std::array<Errors, 4> after_10;
  Errors whole_after_3;
  Errors whole_after_10;
  for (const Segment& whole : wholes) {
    Calibrations calibrations;
    const Errors errors = Play(whole, Way::kOwn, calibrations);
    Add(errors, 3, whole_after_3);
    Add(errors, 10, whole_after_10);
  }
  std::array<Errors, 4> ahead;
  Errors first_one;
  Errors first_scaled;
  for (const Segment& segment : segments) {
    const Calibrations learned = LearnWithout(segment.session, segments);
    for (std::size_t w = 0; w < kWays.size(); ++w) {
      const Way way = kWays[w].way;
      Calibrations calibrations;
      if (way == Way::kOthers || way == Way::kScaleOnly) calibrations = learned;
      const Errors errors = Play(segment, way, calibrations);
      Add(errors, 3, after_3[w]);
      Add(errors, 10, after_10[w]);
      if (way != Way::kScaleOnly) {
        const bool knows_others = way == Way::kOthers;
        Add(PlayAhead(segment, way, knows_others ? learned : Calibrations()), 0,
            ahead[w]);
      }
      if (way != Way::kOwn) continue;
      Errors late;
      Add(errors, 3, late);
      const std::int64_t scale =
          calibrations[segment.calls.back().model].scale_ppm();
      std::printf("%-50s %5zu %7.3f %s %s %s %s %6.2f %6.1f\n",
                  segment.name.c_str(), errors.size(),
                  static_cast<double>(scale) / 1e6, Cell(errors, 0).c_str(),
                  Cell(errors, 1).c_str(), Cell(errors, 3).c_str(),
                  Cell(errors, 10).c_str(), Summarize(late, 5).mean,
                  Summarize(late, 5).worst);
    }
    Calibrations others = learned;
    Add(PlayFirst(segment, others, false), 0, first_one);
    Add(PlayFirst(segment, others, true), 0, first_scaled);
  }

  PrintHead("all calls after 3 reports (goal 5 %)");
  for (std::size_t w = 0; w < kWays.size(); ++w) {
    PrintRow(kWays[w].name, after_3[w], 5);
  }
  PrintRow("sessions not cut, their own scale", whole_after_3, 5);
  PrintHead("all calls after 10 reports (goal 3 %)");
  for (std::size_t w = 0; w < kWays.size(); ++w) {
    PrintRow(kWays[w].name, after_10[w], 3);
  }
  PrintRow("sessions not cut, their own scale", whole_after_10, 3);
  PrintHead("ten calls ahead (within 5 %)");
  for (std::size_t w = 1; w < kWays.size(); ++w) {
    PrintRow(kWays[w].name, ahead[w], 5);
  }
  PrintHead("a new session, its first report only");
  PrintRow("scale 1", first_one, 5);
  PrintRow("scale of other sessions", first_scaled, 5);

  std::printf("\nscale by model\n");
  for (const auto& [model, calibration] :
       LearnWithout(wholes.size(), segments)) {
    std::printf("  %-40s %6.3f of %lld samples\n", model.c_str(),
                static_cast<double>(calibration.scale_ppm()) / 1e6,
                static_cast<long long>(calibration.sample_count()));
  }
  std::printf("\n%zu sessions in %zu segments\n", wholes.size(),
              segments.size());
  std::printf(
      "{\"sessions\":%zu,\"reports\":%zu,\"token_error_after_3\":%.2f,"
      "\"token_error_after_10\":%.2f}\n",
      wholes.size(), reports, Summarize(after_3[2], 5).mean,
      Summarize(after_10[2], 3).mean);
  return 0;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) {
  return clerestory::Main(std::vector<std::string>(argv + 1, argv + argc));
}
