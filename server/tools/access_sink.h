// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_ACCESS_SINK_H_
#define CLERESTORY_SERVER_TOOLS_ACCESS_SINK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/tools/access.h"
#include "server/tools/shell.h"

namespace clerestory {

// Where a command is done.
struct CommandPlace {
  // `where` is not known if it is longer than kResourceBytesMax.
  explicit CommandPlace(std::string where);

  // In front of each of its resources: "" here, `HOST:` elsewhere.
  std::string prefix;
  // In normal form; "" is the one that is not known, to which paths are
  // relative. Absent behind a `cd` to nobody knows where: then relative paths
  // name nothing.
  std::optional<std::string> directory;
};

// An access of that kind, and no tree.
Access MakeAccess(AccessClass access_class, std::string resource = "",
                  std::optional<LineRange> lines = std::nullopt,
                  std::string query = "");

// Gives a resource whose name is longer than kResourceBytesMax one that is not;
// a write to it becomes kUnknown.
void LimitResource(Access& access);

// Collects what the commands of a call do. Names resources from where commands
// are done, and narrows what a pipeline reads by what it passes through.
class AccessSink {
 public:
  explicit AccessSink(CommandPlace place) : place_(std::move(place)) {}

  CommandPlace& place() { return place_; }
  const CommandPlace& place() const { return place_; }

  // A resource's name; "" if the word is not known, or a pattern.
  std::string Resource(const ShellWord& word) const;
  std::string Resource(absl::string_view path) const;
  // The directory commands are done in, as a resource.
  std::string Directory() const { return Resource("."); }

  void Add(Access access);
  // Adds a read of `file`, which becomes a search of a folder if it is a
  // pattern.
  void AddRead(const ShellWord& file, std::optional<LineRange> lines);
  void AddSearch(std::string resource, bool is_tree, absl::string_view query);
  void AddSearch(const ShellWord& path, bool is_tree, absl::string_view query);
  // Adds a write of `file`, or of the folder that a pattern is in.
  void AddWrite(const ShellWord& file, bool is_tree = false);
  void AddWrite(std::string resource, bool is_tree);
  // Adds a run of `command`.
  void AddRun(absl::string_view command);
  void AddUnknown(absl::string_view command);

  bool empty() const { return accesses_.empty(); }
  // Whether there were more than kAccessesMax: then the rest is of no use.
  bool is_full() const { return is_full_; }

  // Begins a pipeline: what is added from here on flows through it.
  void BeginPipeline() { begin_ = accesses_.size(); }
  std::size_t pipeline_begin() const { return begin_; }
  void set_pipeline_begin(std::size_t begin) { begin_ = begin; }
  // Whether the pipeline reads or searches something.
  bool HasInput() const;
  // Of what the pipeline reads, only these lines pass.
  void Narrow(const LineRange& lines);
  // Of what the pipeline reads, some lines pass, nobody knows which.
  void NarrowSomehow();
  // Of what the pipeline reads and finds, only what answers `query` passes.
  void Filter(absl::string_view query);
  // What the pipeline reads and finds is written.
  void WriteInput();

  // What was collected: one kUnknown if it is more than kAccessesMax.
  std::vector<Access> Take();

 private:
  CommandPlace place_;
  std::size_t begin_ = 0;
  bool is_full_ = false;
  std::vector<Access> accesses_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_ACCESS_SINK_H_
