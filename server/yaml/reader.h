// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_YAML_READER_H_
#define CLERESTORY_SERVER_YAML_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/yaml/problem.h"

namespace clerestory {

namespace yaml {
struct Member;
struct Node;
}  // namespace yaml

// The largest file that is read, and the deepest nesting in it.
inline constexpr std::size_t kYamlBytesMax = 1 << 20;
inline constexpr int kYamlDepthMax = 32;

// A mapping of a file that an operator wrote, whose values are asked for one by
// one. Whatever is wrong goes into one list of problems, each with its place,
// so that all is told at once: the values are good if the list is still empty
// at the end. A value is absent if it is not there, and also if it is wrong,
// which is then in the list.
//
// Names that are asked for, by Has() too, are known; Finish() reports the
// others.
//
// A thread at a time. The list of problems must outlive the mapping; the file
// need not.
class YamlMap {
 public:
  // The file `text`, whose name in problems is `file`: one YAML document of at
  // most kYamlBytesMax bytes of UTF-8, a mapping; nothing but comments is an
  // empty one. Tags, anchors and aliases are problems, and names that stand
  // twice. Absent if there is nothing to go on with.
  static std::optional<YamlMap> Load(absl::string_view file,
                                     absl::string_view text,
                                     std::vector<Problem>& problems);

  YamlMap(YamlMap&&) = default;
  YamlMap& operator=(YamlMap&&) = delete;

  // Whether there is something of that name, be it right or wrong.
  bool Has(absl::string_view key);

  // The names in the order of the file. They are known from now on: for a
  // mapping whose names are up to who writes it.
  std::vector<std::string> Keys();

  // A whole number from `min` to `max`.
  std::optional<std::int64_t> Integer(absl::string_view key, std::int64_t min,
                                      std::int64_t max);

  // A number with at most `places` digits behind its point, times ten to the
  // power of `places`, and so are `min` and `max`: 0.0125 with 6 places is
  // 12,500, exactly. REQUIRES: `places` is at most 9.
  std::optional<std::int64_t> Decimal(absl::string_view key, int places,
                                      std::int64_t min, std::int64_t max);

  // A text, in quotes or not.
  std::optional<std::string> Text(absl::string_view key);

  // `true` or `false`.
  std::optional<bool> Boolean(absl::string_view key);

  // Which of the `names` is there.
  std::optional<std::size_t> Choice(absl::string_view key,
                                    std::span<const absl::string_view> names);

  // A day, as 2026-11-30: its first moment, in UTC.
  std::optional<TimeMicros> Date(absl::string_view key);

  // A mapping.
  std::optional<YamlMap> Map(absl::string_view key);

  // A list of mappings; those items that are none are left out.
  std::vector<YamlMap> Maps(absl::string_view key);

  // A list of texts, or one text.
  std::optional<std::vector<std::string>> Texts(absl::string_view key);

  // A mapping of names to texts.
  std::optional<std::map<std::string, std::string>> TextMap(
      absl::string_view key);

  // Adds the problem that `what` is wrong with the value of `key`; if there is
  // none, its place is that of this mapping.
  void Add(absl::string_view key, absl::string_view what);

  // The same of the item `index` of the list that is the value of `key`, as for
  // one of Texts(); a single text is its own item 0.
  void AddItem(absl::string_view key, std::size_t index,
               absl::string_view what);

  // Adds the problem that `what` is wrong with this mapping as a whole.
  void Add(absl::string_view what);

  // Adds a problem for each name that nobody asked for, with those that are
  // known. To be called last, and for each mapping on its own.
  void Finish();

 private:
  YamlMap(std::string file, std::shared_ptr<const yaml::Node> root,
          const yaml::Node& node, std::string path,
          std::vector<Problem>& problems);

  // The value of `key`, which is known from now on; null if there is none or it
  // is broken or empty, which is a problem.
  const yaml::Node* Value(absl::string_view key, absl::string_view expected);
  // The same, if it is a word without quotes.
  const yaml::Node* Word(absl::string_view key, absl::string_view expected);
  const yaml::Member* Find(absl::string_view key) const;
  std::string PathOf(absl::string_view key) const;
  void AddAt(const yaml::Node& node, std::string path, absl::string_view what);
  void AddExpected(const yaml::Node& node, std::string path,
                   absl::string_view expected);
  // The text that `node` is; a problem if it is none.
  std::optional<std::string> TextOf(const yaml::Node& node, std::string path);
  YamlMap Child(const yaml::Node& node, std::string path) const;

  std::string file_;
  std::shared_ptr<const yaml::Node> root_;  // Keeps `node_` alive.
  const yaml::Node* node_;
  std::string path_;
  std::vector<Problem>* problems_;
  std::set<std::string> known_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_YAML_READER_H_
