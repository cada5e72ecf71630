// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares Document with a reader of JSON that was written for this test from
// RFC 8259 and RFC 3629, one character after the other: what it accepts, and
// what it finds and where. Set CLERESTORY_SEED to run it with another seed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/json/document.h"

namespace clerestory::json {
namespace {

// A value, as either reader found it, in the order of the text.
struct Item {
  Kind kind = Kind::kNull;
  Span span;
  std::string key;
  std::string text;  // Of a string.

  friend bool operator==(const Item&, const Item&) = default;
};

class Reader {
 public:
  Reader(absl::string_view text, const ParseOptions& options)
      : text_(text), options_(options) {}

  bool Accepts() {
    Space();
    if (!Next("{") && !Next("[")) return false;
    if (!ReadValue("", 1)) return false;
    Space();
    return at_ == text_.size() && items_.size() <= options_.tree_size_max;
  }

  const std::vector<Item>& items() const { return items_; }

 private:
  bool Next(absl::string_view token) const {
    return text_.substr(at_, token.size()) == token;
  }

  bool Take(absl::string_view token) {
    if (!Next(token)) return false;
    at_ += token.size();
    return true;
  }

  void Space() {
    while (Take(" ") || Take("\t") || Take("\n") || Take("\r")) {
    }
  }

  bool ReadValue(const std::string& key, int depth) {
    if (depth > options_.depth_max) return false;
    const bool kept = depth <= options_.tree_depth;
    const std::size_t item = items_.size();
    const std::size_t start = at_;
    if (kept) items_.push_back({.span = {}, .key = key, .text = {}});
    Kind kind = Kind::kNull;
    std::string string;
    if (Next("{")) {
      kind = Kind::kObject;
      if (!ReadObject(depth)) return false;
    } else if (Next("[")) {
      kind = Kind::kArray;
      if (!ReadArray(depth)) return false;
    } else if (Next("\"")) {
      kind = Kind::kString;
      if (!ReadString(string)) return false;
    } else if (Take("true") || Take("false")) {
      kind = Kind::kBool;
    } else if (!Take("null")) {
      kind = Kind::kNumber;
      if (!ReadNumber()) return false;
    }
    if (kept) {
      items_[item].kind = kind;
      items_[item].span = {.offset = start, .size = at_ - start};
      items_[item].text = string;
    }
    return true;
  }

  bool ReadObject(int depth) {
    Take("{");
    Space();
    if (Take("}")) return true;
    std::vector<std::string> names;
    do {
      Space();
      std::string name;
      if (!ReadString(name)) return false;
      names.push_back(name);
      Space();
      if (!Take(":")) return false;
      Space();
      if (!ReadValue(name, depth + 1)) return false;
      Space();
    } while (Take(","));
    std::ranges::sort(names);
    if (depth < options_.tree_depth &&
        std::ranges::adjacent_find(names) != names.end()) {
      return false;
    }
    return Take("}");
  }

  bool ReadArray(int depth) {
    Take("[");
    Space();
    if (Take("]")) return true;
    do {
      Space();
      if (!ReadValue("", depth + 1)) return false;
      Space();
    } while (Take(","));
    return Take("]");
  }

  bool Digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > start;
  }

  bool ReadNumber() {
    Take("-");
    if (!Take("0") && !Digits()) return false;
    if (Take(".") && !Digits()) return false;
    if (Take("e") || Take("E")) {
      if (!Take("+")) Take("-");
      return Digits();
    }
    return true;
  }

  bool ReadString(std::string& out) {
    if (!Take("\"")) return false;
    while (!Take("\"")) {
      if (at_ >= text_.size()) return false;
      if (!(Take("\\") ? ReadEscape(out) : ReadCharacter(out))) return false;
    }
    return true;
  }

  bool ReadEscape(std::string& out) {
    constexpr absl::string_view kNames = "\"\\/bfnrt";
    constexpr absl::string_view kValues = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) return false;
    const char name = text_[at_++];
    if (name != 'u') {
      const std::size_t i = kNames.find(name);
      if (i == absl::string_view::npos) return false;
      out.push_back(kValues[i]);
      return true;
    }
    std::uint32_t code = 0;
    if (!ReadHex(code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return false;
    if (code >= 0xD800 && code <= 0xDBFF) {
      std::uint32_t low = 0;
      if (!Take("\\u") || !ReadHex(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00);
    }
    Encode(code, out);
    return true;
  }

  bool ReadHex(std::uint32_t& code) {
    const std::string digits(text_.substr(at_, 4));
    if (digits.size() != 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") !=
            std::string::npos) {
      return false;
    }
    at_ += 4;
    code = static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16));
    return true;
  }

  // Reads a character of UTF-8 by decoding it and checking that it is spelled
  // as it would be encoded.
  bool ReadCharacter(std::string& out) {
    const auto lead = static_cast<unsigned char>(text_[at_]);
    if (lead < 0x20) return false;
    std::size_t size = 1;
    std::uint32_t code = lead;
    if (lead >= 0xF0) {
      size = 4;
      code = lead & 0x07U;
    } else if (lead >= 0xE0) {
      size = 3;
      code = lead & 0x0FU;
    } else if (lead >= 0xC0) {
      size = 2;
      code = lead & 0x1FU;
    }
    const absl::string_view spelled = text_.substr(at_, size);
    for (const char c : spelled.substr(1)) {
      code = code * 64 + (static_cast<unsigned char>(c) & 0x3FU);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    std::string encoded;
    Encode(code, encoded);
    if (encoded != spelled) return false;
    out += encoded;
    at_ += size;
    return true;
  }

  static void Encode(std::uint32_t code, std::string& out) {
    const auto add = [&out](std::uint32_t byte) {
      out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
    };
    if (code < 0x80) {
      add(code);
      return;
    }
    std::uint32_t tails = 1;
    if (code >= 0x800) ++tails;
    if (code >= 0x10000) ++tails;
    constexpr std::uint32_t kLeads[] = {0, 0xC0, 0xE0, 0xF0};
    add(kLeads[tails] + (code >> 6 * tails));
    while (tails-- > 0) add(0x80 + (code >> 6 * tails & 63));
  }

  absl::string_view text_;
  ParseOptions options_;
  std::size_t at_ = 0;
  std::vector<Item> items_;
};

void Flatten(const Value& value, std::vector<Item>& items) {
  Kind kind = Kind::kNull;
  for (const Kind k : {Kind::kObject, Kind::kArray, Kind::kString,
                       Kind::kNumber, Kind::kBool}) {
    if (value.is(k)) kind = k;
  }
  items.push_back({.kind = kind,
                   .span = value.span(),
                   .key = value.key(),
                   .text = value.string()});
  for (const Value& child : value.children()) Flatten(child, items);
}

// Makes JSON, and then less and less of it.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : rng_(seed) {}

  std::size_t Below(std::size_t bound) { return rng_() % bound; }

  absl::string_view Pick(const std::vector<absl::string_view>& choices) {
    return choices[Below(choices.size())];
  }

  std::string RandomJson() {
    std::string out;
    Space(out);
    AddContainer(0, out);
    Space(out);
    return out;
  }

  void Mutate(std::string& text) {
    static const std::vector<absl::string_view> kTokens = {"{",
                                                           "}",
                                                           "[",
                                                           "]",
                                                           ",",
                                                           ":",
                                                           "\"",
                                                           "\\",
                                                           "0",
                                                           "-",
                                                           ".",
                                                           "e",
                                                           "1e5",
                                                           "null",
                                                           "true",
                                                           "false",
                                                           " ",
                                                           "\n",
                                                           "\\ud83d",
                                                           "\\ude00",
                                                           "\\u0000",
                                                           "\\u00e9",
                                                           "\\n",
                                                           "\\x",
                                                           "\"a\":1,",
                                                           "\"b\"",
                                                           "é",
                                                           "😀",
                                                           "\xEF\xBB\xBF",
                                                           "\xED\xA0\x80",
                                                           "\xC0\x80",
                                                           "\x80",
                                                           "\x1f",
                                                           "\f",
                                                           "[[[[[[",
                                                           "]]]]]]",
                                                           "00",
                                                           "\"\"",
                                                           "{}",
                                                           "[]"};
    const std::size_t at = Below(text.size() + 1);
    const std::size_t rest = text.size() - at;
    switch (Below(6)) {
      case 0:
        text.insert(at, std::string(Pick(kTokens)));
        break;
      case 1:
        text.erase(at, 1 + Below(4));
        break;
      case 2:
        if (rest > 0) text[at] = static_cast<char>(Below(256));
        break;
      case 3:
        if (rest > 0) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
      case 4: {
        const std::string copy = text.substr(at, 1 + Below(12));
        text.insert(Below(text.size() + 1), copy);
        break;
      }
      default:
        text.resize(at + Below(rest + 1));
    }
  }

 private:
  void Space(std::string& out) {
    absl::StrAppend(&out, Pick({"", "", "", " ", "\n", "\t \r\n"}));
  }

  void AddString(std::string& out) {
    absl::StrAppend(&out, "\"");
    for (std::size_t size = Below(8); size > 0; --size) {
      absl::StrAppend(&out, Pick({"a", "b", "é", "€", "😀", "\\n", "\\\"",
                                  "\\\\", "\\/", "\\u0041", "\\u00E9",
                                  "\\ud83d\\ude00", "\x7F", " ", ","}));
    }
    absl::StrAppend(&out, "\"");
  }

  void AddValue(std::size_t depth, std::string& out) {
    const std::size_t choice = Below(depth < 5 ? 8 : 5);
    if (choice == 0) {
      absl::StrAppend(&out, Pick({"0", "-1", "2.50", "1e9", "-0.0E-7",
                                  "123456789012345678901234567890", "1E400"}));
    } else if (choice == 1) {
      absl::StrAppend(&out, Pick({"true", "false", "null"}));
    } else if (choice < 5) {
      AddString(out);
    } else {
      AddContainer(depth, out);
    }
  }

  void AddContainer(std::size_t depth, std::string& out) {
    const bool is_object = Below(2) == 0;
    absl::StrAppend(&out, is_object ? "{" : "[");
    Space(out);
    const std::size_t size = Below(5);
    for (std::size_t i = 0; i < size; ++i) {
      if (i > 0) absl::StrAppend(&out, ",");
      Space(out);
      if (is_object) {
        absl::StrAppend(&out, "\"", Pick({"", "\\u006b", "ключ", "k\\n"}), i,
                        "\"");
        Space(out);
        absl::StrAppend(&out, ":");
        Space(out);
      }
      AddValue(depth + 1, out);
      Space(out);
    }
    absl::StrAppend(&out, is_object ? "}" : "]");
  }

  std::mt19937_64 rng_;
};

// Whether both readers agree on `text`; tells where they do not.
::testing::AssertionResult Agree(absl::string_view text,
                                 const ParseOptions& options, bool& accepted) {
  Reader reader(text, options);
  accepted = reader.Accepts();
  const absl::StatusOr<Document> document = Document::Parse(text, options);
  if (document.ok() != accepted) {
    return ::testing::AssertionFailure()
           << (accepted ? "refused: " : "accepted: ") << document.status()
           << ": " << absl::CHexEscape(text);
  }
  if (!accepted) return ::testing::AssertionSuccess();
  std::vector<Item> items;
  Flatten(document->root(), items);
  if (items != reader.items()) {
    return ::testing::AssertionFailure()
           << "read otherwise: " << absl::CHexEscape(text);
  }
  return ::testing::AssertionSuccess();
}

std::uint64_t Seed() {
  std::uint64_t seed = 20261130;
  if (const char* text = std::getenv("CLERESTORY_SEED"); text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seed));
  }
  std::cout << "CLERESTORY_SEED=" << seed << "\n";
  return seed;
}

TEST(DocumentDifferentialTest, AgreesOnRandomJson) {
  Writer writer(Seed());
  for (int round = 0; round < 5'000; ++round) {
    const std::string text = writer.RandomJson();
    bool accepted = false;
    ASSERT_TRUE(Agree(text, {}, accepted));
    ASSERT_TRUE(accepted) << text;
  }
}

TEST(DocumentDifferentialTest, AgreesOnJsonThatWasDamaged) {
  Writer writer(Seed());
  int accepted_count = 0;
  constexpr int kRounds = 60'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = writer.RandomJson();
    for (std::size_t times = 1 + writer.Below(3); times > 0; --times) {
      writer.Mutate(text);
    }
    const ParseOptions options = {
        .depth_max = static_cast<int>(2 + writer.Below(8)),
        .tree_depth = static_cast<int>(1 + writer.Below(8)),
        .tree_size_max = 1 + writer.Below(100)};
    bool accepted = false;
    ASSERT_TRUE(Agree(text, options, accepted));
    if (accepted) ++accepted_count;
  }
  // Else the damage would show nothing.
  EXPECT_GT(accepted_count, kRounds / 20);
  EXPECT_LT(accepted_count, kRounds / 2);
}

}  // namespace
}  // namespace clerestory::json
