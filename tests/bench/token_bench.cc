// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// ClassTokenCounter's CountText in MB/s, and side by side two passes over the
// same bytes that are the least that any counter does: adding them up, and
// copying them. The text is made up like tool outputs, or that of the file
// which is given. Rounds alternate, so that a slow minute slows all.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/tokens/class_token_counter.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kTextBytes = 1 << 20;
constexpr int kRounds = 101;

constexpr std::array<absl::string_view, 24> kWords = {
    "the",     "session", "parse",     "value",    "header",  "of",
    "request", "offset",  "index",     "response", "a",       "is",
    "buffer",  "test",    "expected",  "not",      "found",   "in",
    "Error",   "module",  "configure", "timeout",  "handler", "README"};

// Lines of listings, code, JSON and prose, in an order that is always the same
// and never repeats: what a branch cannot be predicted from.
std::string MadeUpText() {
  std::mt19937 random(20261130);
  const auto word = [&random] { return kWords[random() % kWords.size()]; };
  std::string text;
  while (text.size() < kTextBytes) {
    switch (random() % 5) {
      case 0:
        absl::StrAppend(&text, "src/", word(), "/", word(), "_", word(),
                        ".py:", random() % 900, ":    ", word(), " = ", word(),
                        "(", word(), ", ", random() % 100, ")\n");
        break;
      case 1:
        absl::StrAppend(&text, "        if (", word(), ".", word(), "() == \"",
                        word(), "\") return ", word(), "[", random() % 10,
                        "];\n");
        break;
      case 2:
        absl::StrAppend(&text, "{\"", word(), "\": ", random() % 100000, ", \"",
                        word(), "\": [\"", word(), "\", null]}\n");
        break;
      case 3:
        absl::StrAppend(&text, "-rw-r--r-- 1 root root ", random() % 100000,
                        " Nov ", random() % 30 + 1, " 07:", random() % 60, " ",
                        word(), ".", word(), "\n");
        break;
      default:
        for (int i = 0; i < 12; ++i) absl::StrAppend(&text, word(), " ");
        absl::StrAppend(&text, word(), ".\n\n");
        break;
    }
  }
  return text;
}

std::string TextOf(const char* path) {
  std::ifstream file(path, std::ios::binary);
  CLERESTORY_CHECK(file.good());
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

std::string Escape(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\t') {
      escaped += "\\t";
    } else if (c == '"' || c == '\\') {
      escaped += {'\\', c};
    } else {
      escaped += c;
    }
  }
  return escaped;
}

struct Pass {
  const char* name;
  std::size_t bytes;
  std::function<std::int64_t()> run;
  std::vector<double> megabytes_per_second;
};

void Run(Pass& pass, std::int64_t& sink) {
  const auto begin = SteadyClock::now();
  sink += pass.run();
  const std::chrono::duration<double> seconds = SteadyClock::now() - begin;
  pass.megabytes_per_second.push_back(static_cast<double>(pass.bytes) / 1e6 /
                                      seconds.count());
}

int Main(const char* path) {
  const std::string text = path != nullptr ? TextOf(path) : MadeUpText();
  CLERESTORY_CHECK(!text.empty());
  const std::string escaped = Escape(text);
  std::string copy(text.size(), '\0');
  const TokenCounter& counter = ClassTokenCounter();
  CLERESTORY_CHECK(counter.CountText(text, TextForm::kPlain) ==
                   counter.CountText(escaped, TextForm::kJsonEscaped));

  std::vector<Pass> passes = {
      {"CountText, plain",
       text.size(),
       [&] { return counter.CountText(text, TextForm::kPlain); },
       {}},
      {"CountText, JSON-escaped",
       escaped.size(),
       [&] { return counter.CountText(escaped, TextForm::kJsonEscaped); },
       {}},
      {"sum of bytes",
       text.size(),
       [&] {
         std::int64_t sum = 0;
         for (const char c : text) sum += static_cast<std::uint8_t>(c);
         return sum;
       },
       {}},
      {"memcpy",
       text.size(),
       [&] {
         std::memcpy(copy.data(), text.data(), text.size());
         return std::int64_t{copy.back()};
       },
       {}},
  };
  std::int64_t sink = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Pass& pass : passes) Run(pass, sink);
  }
  for (Pass& pass : passes) {
    std::vector<double>& rates = pass.megabytes_per_second;
    std::sort(rates.begin(), rates.end());
    std::printf("%-24s %9zu bytes  median %8.0f MB/s  best %8.0f MB/s\n",
                pass.name, pass.bytes, rates[rates.size() / 2], rates.back());
  }
  // So that no pass is left out.
  std::printf("checksum %lld\n", static_cast<long long>(sink));
  return 0;
}

}  // namespace
}  // namespace clerestory

int main(int argc, char** argv) {
  return clerestory::Main(argc > 1 ? argv[1] : nullptr);
}
