// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_RECORD_TREE_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_RECORD_TREE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace clerestory {

// What a record of a Claude Code session is to the tree that the records form.
enum class RecordKind {
  // Progress, system notes, injected text: the tree is as if its children hung
  // on its parent.
  kNote,
  // What the user asked.
  kPrompt,
  // A part of what the model answered.
  kReply,
  // Anything else, such as tool results: these never compete with each other.
  kOther,
};

struct TreeRecord {
  std::string id;
  // "" if none.
  std::string parent;
  RecordKind kind = RecordKind::kNote;
  // Of a kReply, the message that it is a part of.
  std::string message;
};

// Two records, by index, of which the earlier one was given up for the later
// one: the user went back, or the model was asked again.
struct Rewind {
  std::size_t abandoned = 0;
  std::size_t replacement = 0;
};

struct RecordTree {
  std::vector<Rewind> rewinds;
  // For each record, which rewind left it behind.
  std::vector<std::optional<std::size_t>> abandoned_by;
};

// Finds what was abandoned among `records`, in the order of the file.
//
// Parallel calls also make branches: a call and the result of the call before
// it hang on the same record. So a branch is abandoned only if it begins with a
// prompt that a later prompt stands beside, or with an answer that another
// message's answer stands beside; and only if nothing was added to it once its
// replacement had begun. In doubt a branch stays.
//
// Pure, and linear but for look-ups by id.
RecordTree FindRewinds(const std::vector<TreeRecord>& records);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_RECORD_TREE_H_
