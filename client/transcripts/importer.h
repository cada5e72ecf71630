// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_IMPORTER_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_IMPORTER_H_

#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"

namespace clerestory {

// How one kind of file is known and read. Pure.
struct Importer {
  absl::string_view source;
  // Whether the file is of this kind.
  bool (*detect)(const TranscriptFile& file) = nullptr;
  // Reads a file, of this kind or not: it may find nothing. The damaged lines
  // of the file are reported by the caller.
  ReadResult (*read)(const TranscriptFile& file) = nullptr;
};

// The session files of Claude Code: a record per line.
extern const Importer kClaudeCodeImporter;
// The rollout files of Codex: a record per line.
extern const Importer kCodexImporter;
// The session files of pi, a coding agent: a record per line.
extern const Importer kPiImporter;
// The session files of Gemini CLI: an object with messages.
extern const Importer kGeminiImporter;
// The messages files of Cline: an object with messages.
extern const Importer kClineImporter;
// `.traj` files of SWE-agent.
extern const Importer kSweAgentImporter;
// `.traj.json` files of mini-swe-agent, versions 1 and 2.
extern const Importer kMiniSweAgentImporter;
// Messages arrays as they are sent to Anthropic, and to OpenAI's Chat
// Completions: an array of messages, an object with one (`messages` or `traj`),
// an array of such objects, or a message or such an object per line.
extern const Importer kAnthropicImporter;
extern const Importer kOpenaiChatImporter;

// Event streams of OpenHands before its SDK: an array of events, or the
// `history` of each instance in an `output.jsonl`.
extern const Importer kOpenhandsV0Importer;
// Events of the OpenHands SDK: a file for each in a folder, or one per line.
extern const Importer kOpenhandsV1Importer;
// `trajectory.json` files of Trae.
extern const Importer kTraeImporter;
// Evaluation logs of Inspect, as JSON.
extern const Importer kInspectImporter;
// Messages as LangChain writes them: constructor objects.
extern const Importer kLangchainImporter;
// Trajectories in the Agent Trajectory Interchange Format, versions 1.x.
extern const Importer kAtifImporter;

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_IMPORTER_H_
