// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_YAML_NODE_H_
#define CLERESTORY_SERVER_YAML_NODE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/yaml/problem.h"

namespace clerestory::yaml {

enum class Kind {
  // What was wrong with it has been reported; it reads as absent.
  kBroken,
  kNull,
  kWord,  // A value without quotes.
  kText,  // One in quotes, or a block.
  kList,
  kMap,
};

struct Member;

// A value of a document, with the place where it starts.
struct Node {
  Kind kind = Kind::kBroken;
  int line = 1;
  int column = 1;
  std::string text = {};         // Of kWord and kText.
  std::vector<Node> items = {};  // Of kList.
  std::vector<Member> members;   // Of kMap: of each name one, in order.
  // Of kMap: by name, which of `members` it is.
  std::map<std::string, std::size_t> places = {};
};

struct Member {
  std::string name;
  int line = 1;
  int column = 1;
  Node value = {};
};

// Returns the root of the document in `text`: a map, and an empty one where
// there is nothing. Null if there is nothing to go on with. Whatever is wrong
// is added to `problems`, also if a root is returned.
std::shared_ptr<const Node> ParseDocument(absl::string_view file,
                                          absl::string_view text,
                                          std::vector<Problem>& problems);

}  // namespace clerestory::yaml

#endif  // CLERESTORY_SERVER_YAML_NODE_H_
