// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/resource_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace clerestory {
namespace {

// The most nodes that may be the same as one, and that end in the same part.
constexpr std::size_t kTwinsMax = 8;
constexpr std::size_t kSamePartMax = 32;
// The most bytes of all names.
constexpr std::size_t kNameBytesMax = std::size_t{2} << 20;
// The most folders above a resource that are looked at.
constexpr int kDepthMax = 40;
constexpr std::size_t kRelativeTreesMax = 64;
// A longer one is taken for one that is not known.
constexpr std::size_t kRelativeTreeBytesMax = 256;

// Of this machine or another.
bool IsAbsolute(absl::string_view path) {
  return absl::StartsWith(path, "/") || absl::StrContains(path, ":/");
}

// Whether it is a file or folder, of this machine or another.
bool IsPath(absl::string_view resource) {
  return !IsAnswer(resource) && !absl::StrContains(resource, "://");
}

absl::string_view LastPart(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// The folder that `path` is in; "" if there is none.
absl::string_view Above(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return "";
  if (slash == 0) return path.size() > 1 ? path.substr(0, 1) : "";
  return path.substr(0, slash);
}

// Whether `path` ends with all the parts of `relative`.
bool EndsWithParts(absl::string_view path, absl::string_view relative) {
  return absl::ConsumeSuffix(&path, relative) && absl::EndsWith(path, "/");
}

// Whether `parts` stand in `path` one behind the other.
bool HasParts(absl::string_view path, absl::string_view parts) {
  while (path.size() >= parts.size()) {
    if (absl::StartsWith(path, parts) &&
        (path.size() == parts.size() || path[parts.size()] == '/')) {
      return true;
    }
    const std::size_t slash = path.find('/');
    if (slash == absl::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
  return false;
}

// How many lines it shows, as far as the call says: where it does not, more
// than any part, and less than the whole.
std::int64_t WidthOf(const Holder& holder) {
  if (!holder.lines.has_value()) return INT64_MAX / 2;
  return holder.lines->last - holder.lines->first;
}

bool MayBeSame(absl::string_view a, absl::string_view b) {
  return (!IsAbsolute(b) && EndsWithParts(a, b)) ||
         (!IsAbsolute(a) && EndsWithParts(b, a));
}

}  // namespace

bool IsAnswer(absl::string_view resource) {
  const std::size_t colon = resource.find(':');
  return colon != absl::string_view::npos && colon > 1 &&
         colon < resource.find('/') &&
         (colon + 1 == resource.size() || resource[colon + 1] != '/');
}

// The first time is 1, so that 0 is before everything.
ResourceIndex::ResourceIndex() = default;

std::uint32_t ResourceIndex::NodeOf(absl::string_view resource) {
  const auto found = index_of_.find(resource);
  if (found != index_of_.end()) {
    nodes_[found->second].use = time_;
    return found->second;
  }
  if (nodes_.size() >= kResourcesMax || name_bytes_ > kNameBytesMax) {
    ForgetOldest();
  }
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.name = std::string(resource);
  name_bytes_ += resource.size();
  node.use = time_;
  node.write = forgotten_write_;
  node.write_below = forgotten_write_;
  index_of_.emplace(resource, index);
  LinkTwins(index);
  return index;
}

void ResourceIndex::LinkTwins(std::uint32_t index) {
  const std::string& name = nodes_[index].name;
  const absl::string_view last = LastPart(name);
  if (last.empty() || !IsPath(name)) return;
  std::vector<std::uint32_t>& same = by_last_part_[last];
  for (const std::uint32_t other : same) {
    if (!MayBeSame(name, nodes_[other].name)) continue;
    if (nodes_[index].twins.size() >= kTwinsMax) break;
    nodes_[index].twins.push_back(other);
    if (nodes_[other].twins.size() < kTwinsMax) {
      nodes_[other].twins.push_back(index);
    }
  }
  same.push_back(index);
  if (same.size() > kSamePartMax) same.erase(same.begin());
}

const ResourceIndex::Node* ResourceIndex::FindNode(
    absl::string_view resource) const {
  const auto found = index_of_.find(resource);
  return found == index_of_.end() ? nullptr : &nodes_[found->second];
}

void ResourceIndex::AddHolder(absl::string_view resource, Holder holder) {
  holder.time = ++time_;
  std::vector<Holder>& holders = nodes_[NodeOf(resource)].holders;
  if (holders.size() >= kHoldersMax) {
    // The narrowest part first, then what is known of none; of those that are
    // alike the oldest.
    holders.erase(std::min_element(holders.begin(), holders.end(),
                                   [](const Holder& a, const Holder& b) {
                                     return WidthOf(a) < WidthOf(b);
                                   }));
  }
  holders.push_back(holder);
}

void ResourceIndex::AddWrite(absl::string_view resource, bool is_tree) {
  last_write_ = ++time_;
  const bool is_all =
      resource.empty() || (is_tree && (resource == "/" || resource == "."));
  if (is_all) {
    last_everything_ = time_;
    last_path_write_ = time_;
    last_unknown_ = time_;
    return;
  }
  Node& node = nodes_[NodeOf(resource)];
  node.write = time_;
  if (!IsPath(resource)) return;
  last_path_write_ = time_;
  if (!IsAbsolute(resource)) last_relative_write_ = time_;
  if (is_tree) {
    node.tree_write = time_;
    node.write_below = time_;
    if (!IsAbsolute(resource)) {
      if (relative_trees_.size() >= kRelativeTreesMax) {
        relative_trees_.clear();
        last_unknown_ = time_;
      }
      if (resource.size() > kRelativeTreeBytesMax) {
        last_unknown_ = time_;
      } else {
        relative_trees_[std::string(resource)] = time_;
      }
    }
  }
  absl::string_view above = Above(resource);
  for (int depth = 0; !above.empty() && depth < kDepthMax; ++depth) {
    // Only folders that someone has searched or written need to know.
    const auto found = index_of_.find(above);
    if (found != index_of_.end()) nodes_[found->second].write_below = time_;
    above = Above(above);
  }
}

void ResourceIndex::AddRun() { last_run_ = ++time_; }

std::int64_t ResourceIndex::LastWrite(const Node& node, bool is_tree) const {
  const absl::string_view resource = node.name;
  // Of a folder without a name that is known.
  if (resource.empty()) return last_path_write_;
  // What no file holds is judged by what it holds now.
  std::int64_t last = IsPath(resource) ? last_everything_ : 0;
  if (is_tree && IsPath(resource)) {
    // A path that is relative to an unknown folder may be in it.
    last = std::max(
        last, IsAbsolute(resource) ? last_relative_write_ : last_path_write_);
    // Who asks for a folder when something may have been written wants to know
    // what is in it now.
    last = std::max(last, last_unknown_);
  }
  last = std::max(last, node.write);
  if (is_tree) last = std::max(last, node.write_below);
  for (const std::uint32_t twin : node.twins) {
    if (AreBothRelative(node, nodes_[twin])) continue;
    last = std::max(last, nodes_[twin].write);
  }
  if (!IsPath(resource)) return last;
  absl::string_view above = Above(resource);
  for (int depth = 0; !above.empty() && depth < kDepthMax; ++depth) {
    const Node* const folder = FindNode(above);
    if (folder != nullptr) last = std::max(last, folder->tree_write);
    above = Above(above);
  }
  for (const auto& [tree, time] : relative_trees_) {
    if (time > last && HasParts(resource, tree)) last = time;
  }
  return last;
}

std::int64_t ResourceIndex::LastDoubt(const Node& node) const {
  // Any program may have written it.
  std::int64_t last = std::max(last_unknown_, last_run_);
  // What a tool answers may come from anything.
  if (IsAnswer(node.name)) last = std::max(last, last_write_);
  for (const std::uint32_t twin : node.twins) {
    if (!AreBothRelative(node, nodes_[twin])) continue;
    last = std::max(last, nodes_[twin].write);
  }
  return last;
}

bool ResourceIndex::AreBothRelative(const Node& a, const Node& b) {
  return !IsAbsolute(a.name) && !IsAbsolute(b.name);
}

void ResourceIndex::AppendHolders(const Node& node, Writes writes, bool is_same,
                                  std::vector<FoundHolder>& found) {
  for (const Holder& holder : node.holders) {
    if (!is_same && holder.access_class != AccessClass::kSearch) continue;
    found.push_back({.holder = holder,
                     .is_stale = holder.time < writes.last,
                     .is_doubtful = holder.time < writes.last_doubt,
                     .is_same = is_same});
  }
}

std::vector<FoundHolder> ResourceIndex::Find(absl::string_view resource,
                                             bool is_tree) {
  std::vector<FoundHolder> found;
  const Node& node = nodes_[NodeOf(resource)];
  const Writes writes = {.last = LastWrite(node, is_tree),
                         .last_doubt = LastDoubt(node)};
  AppendHolders(node, writes, true, found);
  for (const std::uint32_t twin : node.twins) {
    if (AreBothRelative(node, nodes_[twin])) continue;
    AppendHolders(nodes_[twin], writes, true, found);
  }
  if (IsPath(resource) && !resource.empty()) {
    // What a search of a folder shows of a file is as old as the file.
    absl::string_view above = Above(resource);
    for (int depth = 0; !above.empty() && depth < kDepthMax; ++depth) {
      const Node* const folder = FindNode(above);
      if (folder != nullptr) AppendHolders(*folder, writes, false, found);
      above = Above(above);
    }
    const Node* const unnamed = FindNode("");
    if (unnamed != nullptr) AppendHolders(*unnamed, writes, false, found);
  }
  std::sort(found.begin(), found.end(),
            [](const FoundHolder& a, const FoundHolder& b) {
              return a.holder.time > b.holder.time;
            });
  found.erase(std::unique(found.begin(), found.end(),
                          [](const FoundHolder& a, const FoundHolder& b) {
                            return a.holder.observation == b.holder.observation;
                          }),
              found.end());
  if (found.size() > kHoldersMax) found.resize(kHoldersMax);
  return found;
}

void ResourceIndex::ForgetOldest() {
  std::vector<std::int64_t> uses;
  uses.reserve(nodes_.size());
  for (const Node& node : nodes_) uses.push_back(node.use);
  const auto middle =
      uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
  std::nth_element(uses.begin(), middle, uses.end());
  const std::int64_t oldest = *middle;
  std::vector<Node> kept;
  for (Node& node : nodes_) {
    // Many may have been noted at once: then all of them go.
    if (node.use > oldest) {
      kept.push_back(std::move(node));
      continue;
    }
    forgotten_write_ = std::max(
        {forgotten_write_, node.write, node.tree_write, node.write_below});
  }
  nodes_ = std::move(kept);
  name_bytes_ = 0;
  index_of_.clear();
  by_last_part_.clear();
  for (Node& node : nodes_) node.twins.clear();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    name_bytes_ += nodes_[i].name.size();
    index_of_.emplace(nodes_[i].name, index);
    LinkTwins(index);
  }
}

std::int64_t ResourceIndex::memory_bytes() const {
  std::size_t bytes = sizeof(*this) + nodes_.capacity() * sizeof(Node);
  for (const Node& node : nodes_) {
    bytes += 3 * node.name.capacity() + 96 +
             node.holders.capacity() * sizeof(Holder) +
             node.twins.capacity() * sizeof(std::uint32_t);
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace clerestory
