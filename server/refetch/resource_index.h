// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_RESOURCE_INDEX_H_
#define CLERESTORY_SERVER_REFETCH_RESOURCE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {

// The most resources that are remembered, folders above them included. With
// more, the half that was used longest ago is forgotten.
inline constexpr std::size_t kResourcesMax = 8'192;
// The most observations that are remembered of a resource: the newest.
inline constexpr std::size_t kHoldersMax = 32;

// That an observation shows what a resource holds, or what of it answers a
// query.
struct Holder {
  std::size_t observation = 0;
  // When its access was made, in steps of the index.
  std::int64_t time = 0;
  AccessClass access_class = AccessClass::kRead;
  bool is_tree = false;
  // Whether the observation shows no other resource in this way, and whether it
  // shows nothing else at all.
  bool is_single = false;
  bool is_alone = false;
  std::optional<LineRange> lines;
  // Of the query; 0 if there is none.
  std::uint64_t query_hash = 0;
};

// A holder of a resource that is asked for again.
struct FoundHolder {
  Holder holder;
  // Whether the resource was written since.
  bool is_stale = false;
  // Whether something may have been written since, of which it is not known
  // whether it was this: then the content says so.
  bool is_doubtful = false;
  // Whether it is of the very resource, not of a folder above.
  bool is_same = true;
};

// Which observations show which resources, and when these were written last.
//
// A path that is relative to an unknown folder is taken for the absolute ones
// that end with it. What a tool answers is never stale, but doubtful after any
// write. Bounded in memory. Deterministic. Copyable.
class ResourceIndex {
 public:
  ResourceIndex();

  // Notes that an observation shows `resource`, now, and forgets one of
  // kHoldersMax that there are already. A write in the same call
  // comes before or after it, by the order of the calls to this class.
  void AddHolder(absl::string_view resource, Holder holder);

  // Notes that `resource` is written now: with `is_tree`, all that is in it;
  // everything if it is "".
  void AddWrite(absl::string_view resource, bool is_tree);

  // Notes that something was written now, and that what is not known.
  void AddUnknownWrite() { last_unknown_ = ++time_; }

  // Notes that a program ran, which may have written anything, but mostly has
  // not: then the content says so.
  void AddRun();

  // Returns the observations that show `resource`, those of paths that may be
  // the same, and searches of the folders it is in, newest first: at most
  // kHoldersMax, each once.
  std::vector<FoundHolder> Find(absl::string_view resource, bool is_tree);

  std::int64_t memory_bytes() const;

 private:
  struct Node {
    std::string name;
    // The last time at which it was noted.
    std::int64_t use = 0;
    std::int64_t write = 0;
    // When all in it was written; when something in it was.
    std::int64_t tree_write = 0;
    std::int64_t write_below = 0;
    std::vector<Holder> holders;
    // Nodes that may be the same.
    std::vector<std::uint32_t> twins;
  };

  // When a resource was last written, and when it may have been.
  struct Writes {
    std::int64_t last = 0;
    std::int64_t last_doubt = 0;
  };

  std::uint32_t NodeOf(absl::string_view resource);
  // Links the new node at `index` with those that may be the same.
  void LinkTwins(std::uint32_t index);
  const Node* FindNode(absl::string_view resource) const;
  // When the resource of `node` was last written, or may have been.
  std::int64_t LastWrite(const Node& node, bool is_tree) const;
  // When something was last written that may have been it.
  std::int64_t LastDoubt(const Node& node) const;
  // Whether both are relative to a folder that is not known: who reads files
  // by such paths names them from one folder.
  static bool AreBothRelative(const Node& a, const Node& b);
  static void AppendHolders(const Node& node, Writes writes, bool is_same,
                            std::vector<FoundHolder>& found);
  void ForgetOldest();

  std::int64_t time_ = 0;
  std::vector<Node> nodes_;
  std::size_t name_bytes_ = 0;
  absl::flat_hash_map<std::string, std::uint32_t> index_of_;
  // By the last part of their names, the newest nodes.
  absl::flat_hash_map<std::string, std::vector<std::uint32_t>> by_last_part_;
  // Folders relative to an unknown one of which all was written.
  std::map<std::string, std::int64_t> relative_trees_;
  std::int64_t last_everything_ = 0;
  std::int64_t last_write_ = 0;
  std::int64_t last_path_write_ = 0;
  std::int64_t last_relative_write_ = 0;
  std::int64_t last_run_ = 0;
  std::int64_t last_unknown_ = 0;
  // No write that was forgotten is later.
  std::int64_t forgotten_write_ = 0;
};

// Whether it is what a tool answers to its arguments, or all that a server
// does, and no file, folder or URL.
bool IsAnswer(absl::string_view resource);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_RESOURCE_INDEX_H_
