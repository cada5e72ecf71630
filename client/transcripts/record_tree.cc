// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/record_tree.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace clerestory {
namespace {

// Where the records hang. A parent that stands later in the file, or not at
// all, is as good as unknown, so there are no cycles.
struct Links {
  std::vector<std::optional<std::size_t>> parent;
  // The id of the nearest ancestor that is no note; "" if none.
  std::vector<std::string> anchor;
};

Links Link(const std::vector<TreeRecord>& records) {
  Links links;
  std::map<std::string, std::size_t> index_of;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const TreeRecord& record = records[i];
    const auto found = index_of.find(record.parent);
    if (record.parent.empty() || found == index_of.end()) {
      links.parent.push_back(std::nullopt);
      links.anchor.push_back(record.parent);
    } else {
      const std::size_t parent = found->second;
      links.parent.push_back(parent);
      links.anchor.push_back(records[parent].kind == RecordKind::kNote
                                 ? links.anchor[parent]
                                 : record.parent);
    }
    if (!record.id.empty()) index_of.emplace(record.id, i);
  }
  return links;
}

// For each record, the last one of the branch that begins with it.
std::vector<std::size_t> LastOfBranches(const Links& links) {
  std::vector<std::size_t> last(links.parent.size());
  for (std::size_t i = last.size(); i-- > 0;) {
    last[i] = std::max(last[i], i);
    if (const auto parent = links.parent[i]) {
      last[*parent] = std::max(last[*parent], last[i]);
    }
  }
  return last;
}

}  // namespace

RecordTree FindRewinds(const std::vector<TreeRecord>& records) {
  const Links links = Link(records);
  const std::vector<std::size_t> last = LastOfBranches(links);

  RecordTree tree;
  std::vector<std::optional<std::size_t>> rewind_at(records.size());
  // The latest record of a kind that hangs on an anchor.
  std::map<std::pair<std::string, RecordKind>, std::size_t> latest;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const TreeRecord& record = records[i];
    const bool competes =
        record.kind == RecordKind::kPrompt || record.kind == RecordKind::kReply;
    if (!competes || links.anchor[i].empty()) continue;
    const auto [sibling, first] =
        latest.try_emplace({links.anchor[i], record.kind}, i);
    if (first) continue;
    const std::size_t earlier = std::exchange(sibling->second, i);
    const bool same_message = record.kind == RecordKind::kReply &&
                              records[earlier].message == record.message;
    if (same_message || last[earlier] > i) continue;
    rewind_at[earlier] = tree.rewinds.size();
    tree.rewinds.push_back({.abandoned = earlier, .replacement = i});
  }

  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto parent = links.parent[i];
    const auto inherited = parent ? tree.abandoned_by[*parent] : std::nullopt;
    tree.abandoned_by.push_back(inherited ? inherited : rewind_at[i]);
  }
  return tree;
}

}  // namespace clerestory
