// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What ClassTokenCounter says of texts, for scripts that compare it. Reads from
// standard input texts, each as its length in bytes, a line break and its
// bytes, and prints a line with the tokens of each. Exits with 1 at a length
// that is none or a text that is cut short.

#include <cstddef>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "server/tokens/class_token_counter.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr std::size_t kTextMax = std::size_t{1} << 30;

int Main() {
  const TokenCounter& counter = ClassTokenCounter();
  std::string text;
  for (std::string line; std::getline(std::cin, line);) {
    std::size_t size = 0;
    if (!absl::SimpleAtoi(line, &size) || size > kTextMax) {
      std::cerr << "token_counts: no length: " << line << '\n';
      return 1;
    }
    text.resize(size);
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) {
      std::cerr << "token_counts: a text is cut short\n";
      return 1;
    }
    std::cout << counter.CountText(text, TextForm::kPlain) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace clerestory

int main() { return clerestory::Main(); }
