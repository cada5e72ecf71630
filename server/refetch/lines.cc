// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/refetch/content_kind.h"
#include "server/refetch/line_text.h"
#include "server/refetch/unwrap.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// A longer line is taken apart, since one that holds a whole document would
// otherwise be the same or not.
constexpr std::size_t kLongLine = 600;
// Fewer numbers do not show that they are those of lines.
constexpr std::int64_t kNumbersMin = 3;

bool IsSampled(std::uint64_t hash, int sampling) {
  return (hash & ((std::uint64_t{1} << sampling) - 1)) == 0;
}

// Adds up the lines of a text.
class Collector {
 public:
  explicit Collector(ContentLines& out) : out_(out) {}

  void Add(absl::string_view line) {
    const LineParts parts = PartsOf(line);
    if (IsAddedLine(parts.text)) return;
    NoteNumber(parts);
    ++out_.all_line_count;
    if (parts.text.empty()) return;
    ++out_.text_line_count;
    const LineSignature signature = SignatureOf(parts.text);
    out_.text_hash = (out_.text_hash ^ signature.hash) * 0x9E3779B97F4A7C15;
    if (parts.text.size() <= kLongLine) {
      AddLine(signature, parts.text.size());
      return;
    }
    // At what stands in any text of that size, so that it is taken apart in the
    // same way whatever is before it.
    absl::string_view rest = parts.text;
    while (!rest.empty()) {
      const std::size_t end = rest.find_first_of(",;{}>.!?\\");
      const std::size_t size =
          end == absl::string_view::npos ? rest.size() : end + 1;
      const absl::string_view part =
          absl::StripAsciiWhitespace(rest.substr(0, size));
      AddLine(SignatureOf(part), part.size());
      rest.remove_prefix(size);
    }
  }

  void Finish() {
    Merge();
    for (const LineDigest& line : out_.lines) {
      out_.weight += line.weight;
      out_.line_count += line.count;
    }
    out_.lines.shrink_to_fit();
    if (number_count_ >= kNumbersMin && first_ <= last_ &&
        number_count_ * 10 >= out_.text_line_count * 9) {
      out_.numbers = LineRange{.first = first_, .last = last_};
      out_.has_gaps = is_shuffled_ || last_ - first_ + 1 != number_count_;
    }
  }

 private:
  void NoteNumber(const LineParts& parts) {
    if (!parts.number.has_value()) return;
    if (number_count_ == 0) first_ = *parts.number;
    is_shuffled_ =
        is_shuffled_ || (number_count_ > 0 && *parts.number <= last_);
    last_ = *parts.number;
    ++number_count_;
  }

  void AddLine(const LineSignature& signature, std::size_t size) {
    if (signature.says_nothing || !IsSampled(signature.hash, out_.sampling)) {
      return;
    }
    out_.lines.push_back({.hash = signature.hash,
                          .weight = static_cast<std::uint32_t>(size),
                          .count = 1});
    if (out_.lines.size() >= 2 * kLinesMax) Merge();
  }

  // Puts equal lines together, and leaves out every other of what remains while
  // it is too much.
  void Merge() {
    std::sort(out_.lines.begin(), out_.lines.end(),
              [](const LineDigest& a, const LineDigest& b) {
                return a.hash < b.hash;
              });
    std::size_t end = 0;
    for (const LineDigest& line : out_.lines) {
      if (end > 0 && out_.lines[end - 1].hash == line.hash) {
        out_.lines[end - 1].weight += line.weight;
        out_.lines[end - 1].count += line.count;
      } else {
        out_.lines[end++] = line;
      }
    }
    out_.lines.resize(end);
    while (out_.lines.size() > kLinesMax) {
      ++out_.sampling;
      std::erase_if(out_.lines, [this](const LineDigest& line) {
        return !IsSampled(line.hash, out_.sampling);
      });
    }
  }

  ContentLines& out_;
  std::int64_t number_count_ = 0;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  bool is_shuffled_ = false;
};

}  // namespace

ContentLines LinesOf(absl::string_view content) {
  ContentLines out;
  const std::string unwrapped = UnwrappedText(content);
  out.kind = ContentKindOf(unwrapped);
  const bool has_codes = absl::StrContains(unwrapped, '\x1b') ||
                         absl::StrContains(unwrapped, '\b');
  const std::string cleaned =
      has_codes ? WithoutTerminalCodes(unwrapped) : std::string();
  absl::string_view rest = has_codes ? cleaned : unwrapped;
  Collector collector(out);
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    collector.Add(rest.substr(0, end));
    rest.remove_prefix(end == absl::string_view::npos ? rest.size() : end + 1);
  }
  collector.Finish();
  return out;
}

Share ShareOf(const ContentLines& part,
              absl::Span<const ContentLines* const> wholes) {
  int sampling = part.sampling;
  for (const ContentLines* whole : wholes) {
    sampling = std::max(sampling, whole->sampling);
  }
  std::vector<std::size_t> at(wholes.size(), 0);
  Share share;
  for (const LineDigest& line : part.lines) {
    if (!IsSampled(line.hash, sampling)) continue;
    share.weight_of += line.weight;
    share.line_count_of += line.count;
    bool is_there = false;
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      const std::vector<LineDigest>& lines = wholes[i]->lines;
      while (at[i] < lines.size() && lines[at[i]].hash < line.hash) ++at[i];
      is_there =
          is_there || (at[i] < lines.size() && lines[at[i]].hash == line.hash);
    }
    if (!is_there) continue;
    share.weight += line.weight;
    share.line_count += line.count;
  }
  return share;
}

}  // namespace clerestory
