// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What the detector of re-fetches says of public transcripts, against labels
// that were made by reading (tests/testdata/refetch/README.md).
//
//   clerestory_refetch_labels TRANSCRIPTS LABELS [--files tuned|held-back]
//       [--list-errors] [--list-hits]
//
// Each transcript is played as if its newest 10 observations, or its newest 3,
// were shown and the others masked. A label says what an observation repeats;
// with what is masked, that says which kind of repetition it is. Precision and
// recall are those of "it is a re-fetch", over the observations with a label.
// Files whose path has a SHA-256 with a first byte divisible by 3 are held
// back: nothing was tuned on them, and their errors are not listed.
//
// Beside it, the time that looking takes is measured against that of checking
// and appending the same messages, in the same run.
//
// The last line is JSON for other programs. Exits with 1 if a file cannot be
// read or a label has no observation.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "server/base/digest.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/refetch/detector.h"
#include "server/tokens/class_token_counter.h"
#include "server/tools/access.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

constexpr std::array<std::size_t, 2> kKeeps = {10, 3};
constexpr std::size_t kKindCount = 6;
constexpr std::array<absl::string_view, kKindCount> kKindNames = {
    "none", "refetch", "duplicate", "refresh", "paging", "poll"};

// Of the processor, so that what else runs on the machine does not count.
std::chrono::microseconds UsedTime() {
  static_assert(CLOCKS_PER_SEC == 1'000'000);
  return std::chrono::microseconds(std::clock());
}

struct Label {
  std::size_t earlier = 0;
  std::string label;
  std::string reason;
};

// By file, session and later observation.
using Labels =
    std::map<std::tuple<std::string, std::string, std::size_t>, Label>;

struct Options {
  std::filesystem::path transcripts;
  std::string labels;
  bool takes_tuned = true;
  bool takes_held_back = true;
  bool lists_errors = false;
  bool lists_hits = false;
};

// What was expected, by what was found.
struct Confusion {
  std::array<std::array<int, kKindCount>, kKindCount> cells = {};

  int RefetchesExpected() const {
    int sum = 0;
    for (const int cell : cells[1]) sum += cell;
    return sum;
  }
  int RefetchesFound() const {
    int sum = 0;
    for (const auto& row : cells) sum += row[1];
    return sum;
  }
  int Total() const {
    int sum = 0;
    for (const auto& row : cells) {
      for (const int cell : row) sum += cell;
    }
    return sum;
  }
  double Precision() const {
    return static_cast<double>(cells[1][1]) / std::max(1, RefetchesFound());
  }
  double Recall() const {
    return static_cast<double>(cells[1][1]) / std::max(1, RefetchesExpected());
  }
};

// Of one part of the files and one way to mask.
struct Result {
  Confusion all;
  std::map<std::string, Confusion> by_source;
  std::map<std::string, Confusion> by_class;
  // Whether a label says that something is asked for again, and whether that
  // was found, masked or not.
  int repeats_expected = 0;
  int repeats_found = 0;
  int repeats_right = 0;
  // Re-fetches that were found where there is no label.
  int unlabelled_hits = 0;
};

struct Times {
  std::chrono::microseconds look = {};
  std::chrono::microseconds append = {};
  std::chrono::microseconds longest = {};
  std::int64_t looks = 0;
};

bool IsHeldBack(const std::string& file) {
  // Was held back until it had been measured twice, and then looked at.
  if (file == "other/pi-coding-agent-before-compaction.jsonl") return false;
  int byte = 0;
  const std::string hex = Digest::Of(file).ToHex().substr(0, 2);
  return absl::SimpleHexAtoi(hex, &byte) && byte % 3 == 0;
}

RepeatKind Expected(const Label& label, bool is_masked) {
  if (label.label == "again") {
    return is_masked ? RepeatKind::kRefetch : RepeatKind::kDuplicate;
  }
  if (label.label == "changed") return RepeatKind::kRefresh;
  if (label.label == "page") return RepeatKind::kPaging;
  if (label.label == "poll") return RepeatKind::kPoll;
  return RepeatKind::kNone;
}

std::string ClassOf(const SeenObservation& seen) {
  bool writes = false;
  for (const Access& access :
       AccessesOf(seen.tool, seen.arguments, "").accesses) {
    switch (access.access_class) {
      case AccessClass::kRun:
        return "run";
      case AccessClass::kRead:
        return "read";
      case AccessClass::kSearch:
        return "search";
      case AccessClass::kWrite:
        writes = true;
        break;
      case AccessClass::kUnknown:
        break;
    }
  }
  return writes ? "write" : "unknown";
}

std::optional<Labels> ReadLabels(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  Labels labels;
  for (std::string line; std::getline(in, line);) {
    const absl::StatusOr<json::Document> document = json::Document::Parse(line);
    if (!document.ok()) return std::nullopt;
    const json::Value root = document->root();
    const std::optional<std::int64_t> later = root["later"].integer();
    const std::optional<std::int64_t> earlier = root["earlier"].integer();
    if (!later.has_value() || !earlier.has_value()) return std::nullopt;
    labels[{root["file"].string(), root["session"].string(),
            static_cast<std::size_t>(*later)}] = {
        .earlier = static_cast<std::size_t>(*earlier),
        .label = root["label"].string(),
        .reason = root["reason"].string()};
  }
  return labels;
}

SeenObservation SeenAt(const Session& session, std::size_t index) {
  const Observation& observation = session.observations()[index];
  const Call& call = session.calls()[observation.call];
  const auto text_at = [&session](std::int64_t sequence, const ByteSpan& span) {
    return absl::string_view(
               *session.messages()[static_cast<std::size_t>(sequence)].raw)
        .substr(span.offset, span.size);
  };
  return {.tool = observation.tool,
          .arguments = text_at(call.sequence, call.call.arguments),
          .content = text_at(observation.sequence, observation.result.content),
          .is_error = observation.result.is_error,
          .token_count = observation.result.token_count,
          .turn = call.turn};
}

class Evaluation {
 public:
  Evaluation(Options options, Labels labels)
      : options_(std::move(options)), labels_(std::move(labels)) {}

  int Run() {
    bool is_read = true;
    std::map<std::string, std::filesystem::path> files;
    for (const auto& kind :
         std::filesystem::directory_iterator(options_.transcripts)) {
      if (!kind.is_directory()) continue;
      for (const auto& entry :
           std::filesystem::directory_iterator(kind.path())) {
        files.emplace(
            std::filesystem::relative(entry.path(), options_.transcripts)
                .string(),
            entry.path());
      }
    }
    for (const auto& [file, path] : files) {
      const bool is_held_back = IsHeldBack(file);
      if (is_held_back ? !options_.takes_held_back : !options_.takes_tuned) {
        continue;
      }
      const absl::StatusOr<ReadResult> read =
          ReadTranscriptFile(path.string(), "auto");
      if (!read.ok()) continue;  // What is no transcript, as a README.
      for (const Transcript& transcript : read->transcripts) {
        for (std::size_t k = 0; k < kKeeps.size(); ++k) {
          is_read = Play(file, transcript, k, is_held_back) && is_read;
        }
      }
    }
    Print();
    return is_read ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  bool Play(const std::string& file, const Transcript& transcript,
            std::size_t keep_index, bool is_held_back) {
    SessionHeader header;
    header.format = transcript.format;
    Session session(header, ClassTokenCounter());
    RepeatDetector detector;
    const std::size_t keep = kKeeps[keep_index];
    for (const TranscriptMessage& message : transcript.messages) {
      const MessageAppended record = {
          .time = message.time,
          .message = std::make_shared<const std::string>(message.bytes)};
      const std::size_t first = session.observations().size();
      const std::chrono::microseconds begin = UsedTime();
      absl::StatusOr<std::vector<ParsedMessage>> parsed =
          session.CheckAppend({record.message});
      if (!parsed.ok()) {
        std::printf("%s: %s\n", file.c_str(),
                    std::string(parsed.status().message()).c_str());
        return false;
      }
      session.Append(record, std::move(parsed->front()));
      times_.append += UsedTime() - begin;
      for (std::size_t i = first; i < session.observations().size(); ++i) {
        const auto at = [&session](std::size_t index) {
          return SeenAt(session, index);
        };
        const auto is_masked = [i, keep](std::size_t index) {
          return index + keep < i;
        };
        const auto rule_of = [](absl::string_view) { return ToolAccess(); };
        const std::chrono::microseconds look = UsedTime();
        const Repeat repeat = detector.Look(i, at, is_masked, rule_of);
        const std::chrono::microseconds took = UsedTime() - look;
        times_.look += took;
        times_.longest = std::max(times_.longest, took);
        ++times_.looks;
        Compare(file, transcript, i, SeenAt(session, i), repeat, keep_index,
                is_held_back);
      }
    }
    return true;
  }

  void Compare(const std::string& file, const Transcript& transcript,
               std::size_t index, const SeenObservation& seen,
               const Repeat& repeat, std::size_t keep_index,
               bool is_held_back) {
    Result& result = results_[is_held_back ? 1 : 0][keep_index];
    const auto found = labels_.find({file, transcript.name, index});
    if (found == labels_.end()) {
      if (repeat.kind != RepeatKind::kRefetch) return;
      ++result.unlabelled_hits;
      if (options_.lists_hits && !is_held_back && keep_index == 1) {
        std::printf("hit %s %s %zu <- %zu %s\n", file.c_str(),
                    transcript.name.c_str(), index, repeat.earlier,
                    std::string(seen.tool).c_str());
      }
      return;
    }
    const Label& label = found->second;
    const RepeatKind expected =
        Expected(label, label.earlier + kKeeps[keep_index] < index);
    const auto row = static_cast<std::size_t>(expected);
    const auto column = static_cast<std::size_t>(repeat.kind);
    ++result.all.cells[row][column];
    ++result.by_source[transcript.source].cells[row][column];
    ++result.by_class[ClassOf(seen)].cells[row][column];
    const bool is_repeat_expected = label.label == "again";
    const bool is_repeat_found = repeat.kind == RepeatKind::kRefetch ||
                                 repeat.kind == RepeatKind::kDuplicate;
    result.repeats_expected += is_repeat_expected ? 1 : 0;
    result.repeats_found += is_repeat_found ? 1 : 0;
    result.repeats_right += is_repeat_expected && is_repeat_found ? 1 : 0;
    const bool is_wrong = is_repeat_expected != is_repeat_found ||
                          (is_repeat_expected && expected != repeat.kind);
    if (options_.lists_errors && !is_held_back && is_wrong && keep_index == 0) {
      std::printf("error %s %s %zu: %s %zu (%s), found %s %zu\n", file.c_str(),
                  transcript.name.c_str(), index, label.label.c_str(),
                  label.earlier, label.reason.c_str(),
                  std::string(kKindNames[column]).c_str(), repeat.earlier);
    }
  }

  static void PrintTable(const std::string& name, const Confusion& confusion) {
    std::printf("  %-16s %5d labels, precision %.3f, recall %.3f (%d of %d)\n",
                name.c_str(), confusion.Total(), confusion.Precision(),
                confusion.Recall(), confusion.cells[1][1],
                confusion.RefetchesExpected());
    for (std::size_t row = 0; row < kKindCount; ++row) {
      std::string cells;
      int sum = 0;
      for (const int cell : confusion.cells[row]) {
        absl::StrAppendFormat(&cells, "%6d", cell);
        sum += cell;
      }
      if (sum == 0) continue;
      std::printf("    %-10s%s\n", std::string(kKindNames[row]).c_str(),
                  cells.c_str());
    }
  }

  void Print() const {
    std::string json = "{";
    for (const bool is_held_back : {false, true}) {
      if (is_held_back ? !options_.takes_held_back : !options_.takes_tuned) {
        continue;
      }
      for (std::size_t k = 0; k < kKeeps.size(); ++k) {
        const Result& result = results_[is_held_back ? 1 : 0][k];
        const char* const part = is_held_back ? "held back" : "tuned";
        std::printf(
            "== %s, the newest %zu shown; what was expected, by what was "
            "found:\n              none refetch dupl. refresh page  poll\n",
            part, kKeeps[k]);
        PrintTable("all", result.all);
        for (const auto& [source, confusion] : result.by_source) {
          PrintTable(source, confusion);
        }
        for (const auto& [name, confusion] : result.by_class) {
          PrintTable(absl::StrCat("class ", name), confusion);
        }
        std::printf(
            "  asked for again, masked or not: precision %.3f, recall %.3f "
            "(%d of %d)\n  re-fetches without a label: %d\n",
            static_cast<double>(result.repeats_right) /
                std::max(1, result.repeats_found),
            static_cast<double>(result.repeats_right) /
                std::max(1, result.repeats_expected),
            result.repeats_right, result.repeats_expected,
            result.unlabelled_hits);
        absl::StrAppendFormat(
            &json,
            "\"%s_keep_%d\": {\"labelled\": %d, \"refetches\": %d, "
            "\"precision\": %.4f, \"recall\": %.4f}, ",
            is_held_back ? "held_back" : "tuned", kKeeps[k], result.all.Total(),
            result.all.RefetchesExpected(), result.all.Precision(),
            result.all.Recall());
        if (k > 0) continue;
        absl::StrAppendFormat(
            &json,
            "\"%s_repeats\": {\"expected\": %d, \"precision\": %.4f, "
            "\"recall\": %.4f}, ",
            is_held_back ? "held_back" : "tuned", result.repeats_expected,
            static_cast<double>(result.repeats_right) /
                std::max(1, result.repeats_found),
            static_cast<double>(result.repeats_right) /
                std::max(1, result.repeats_expected));
      }
    }
    int held_back = 0;
    for (const auto& [key, label] : labels_) {
      held_back += IsHeldBack(std::get<0>(key)) ? 1 : 0;
    }
    const Confusion& main =
        results_[options_.takes_held_back ? 1 : 0].front().all;
    const double overhead =
        static_cast<double>(times_.look.count()) /
        static_cast<double>(std::max<std::int64_t>(1, times_.append.count()));
    const auto micros = [](std::chrono::microseconds time) {
      return std::chrono::duration<double, std::micro>(time).count();
    };
    std::printf(
        "looking: %.1f us on average, %.0f us at most; checking and appending "
        "the same messages took %.1f us an observation\n",
        micros(times_.look) /
            static_cast<double>(std::max<std::int64_t>(1, times_.looks)),
        micros(times_.longest),
        micros(times_.append) /
            static_cast<double>(std::max<std::int64_t>(1, times_.looks)));
    std::printf(
        "%s\"labelled\": %zu, \"held_back\": %d, \"precision\": %.4f, "
        "\"recall\": %.4f, \"look_micros\": %.1f, \"of_append\": %.4f}\n",
        json.c_str(), labels_.size(), held_back, main.Precision(),
        main.Recall(),
        micros(times_.look) /
            static_cast<double>(std::max<std::int64_t>(1, times_.looks)),
        overhead);
  }

  const Options options_;
  const Labels labels_;
  // Of the files that were tuned on, and of those held back; by kKeeps.
  std::array<std::array<Result, kKeeps.size()>, 2> results_;
  Times times_;
};

int Main(int argc, char** argv) {
  Options options;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--list-errors") {
      options.lists_errors = true;
    } else if (argument == "--list-hits") {
      options.lists_hits = true;
    } else if (argument == "--files" && i + 1 < argc) {
      const std::string part = argv[++i];
      options.takes_tuned = part == "tuned";
      options.takes_held_back = part == "held-back";
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.size() != 2 || !(options.takes_tuned || options.takes_held_back)) {
    std::fprintf(stderr,
                 "usage: clerestory_refetch_labels TRANSCRIPTS LABELS [--files "
                 "tuned|held-back] [--list-errors] [--list-hits]\n");
    return EXIT_FAILURE;
  }
  options.transcripts = paths[0];
  std::optional<Labels> labels = ReadLabels(paths[1]);
  if (!labels.has_value()) {
    std::fprintf(stderr, "refetch_labels: no labels in %s\n", paths[1].c_str());
    return EXIT_FAILURE;
  }
  return Evaluation(std::move(options), *std::move(labels)).Run();
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) { return clerestory::Main(argc, argv); }
