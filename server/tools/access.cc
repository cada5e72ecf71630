// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/access.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/limits.h"
#include "server/json/document.h"
#include "server/tools/access_sink.h"
#include "server/tools/argument_names.h"
#include "server/tools/arguments.h"
#include "server/tools/commands.h"
#include "server/tools/paths.h"
#include "server/tools/program_text.h"
#include "server/tools/shell.h"
#include "server/tools/tool_table.h"

namespace clerestory {
namespace {

// Routers that call routers.
constexpr int kRoutesMax = 2;

bool IsSet(const ToolAccess& rule) { return !(rule == ToolAccess()); }

class Call {
 public:
  Call(ToolName name, const Arguments& arguments, absl::string_view directory,
       int routes)
      : name_(std::move(name)),
        arguments_(arguments),
        directory_(directory),
        routes_(routes),
        sink_(CommandPlace(std::string(directory))) {}

  CallAccesses ByTables() {
    const ToolSpec* spec = FindTool(name_);
    const bool is_remote = !name_.server.empty() && arguments_.Has(kRemotes);
    if (spec == nullptr || is_remote) return ByWords();
    return ByTable(*spec);
  }

  CallAccesses ByRule(const ToolAccess& rule) {
    CallAccesses known = ByTables();
    if (known.accesses.empty()) {
      known.accesses.push_back(
          MakeAccess(AccessClass::kUnknown, OwnResource()));
    }
    if (!rule.access_class.has_value() && rule.resource_argument.empty()) {
      for (Access& access : known.accesses) SetLines(rule, access);
      return known;
    }
    // One access for each resource that the argument names, or that is known.
    std::vector<Access> accesses;
    if (!rule.resource_argument.empty()) {
      for (const std::string& text : RuleTexts(rule.resource_argument)) {
        if (accesses.size() > kAccessesMax) break;
        Access access = known.accesses.front();
        access.resource = ResourceOf(text);
        accesses.push_back(std::move(access));
      }
    }
    if (accesses.empty()) accesses = std::move(known.accesses);
    for (Access& access : accesses) {
      const bool was_read = access.access_class == AccessClass::kRead;
      access.access_class = rule.access_class.value_or(access.access_class);
      LimitResource(access);
      if (access.access_class != AccessClass::kRead) {
        access.lines.reset();
        continue;
      }
      if (!was_read) access.lines = LineRange();
      SetLines(rule, access);
      access.query = "";
      if (access.resource.empty()) {
        access.resource = OwnResource();
        access.is_tree = false;
      }
    }
    // By a rule, too, a call does no more than it may.
    if (accesses.size() > kAccessesMax) {
      accesses = {MakeAccess(AccessClass::kUnknown)};
    }
    return {.accesses = std::move(accesses), .directory = known.directory};
  }

 private:
  // A name for what the tool gives to these arguments.
  std::string OwnResource() const {
    return absl::StrCat(OwnTree(), name_.tool, " ", arguments_.Canonical());
  }
  // What all that the tool's server gives is in.
  std::string OwnTree() const {
    return absl::StrCat(
        name_.server.empty() ? "tool" : absl::string_view(name_.server), ":");
  }

  // A file's name, or what else an argument of any tool may hold.
  std::string ResourceOf(absl::string_view text) const {
    return sink_.Resource(text);
  }

  std::vector<std::string> RuleTexts(const std::string& name) const {
    const json::Value value = arguments_.Member(name);
    std::vector<std::string> texts = TextsOf(value);
    if (texts.empty() && value.exists() && !value.is_array()) {
      texts.emplace_back(value.raw().substr(0, 512));
    }
    return texts;
  }

  std::optional<LineRange> Lines(bool is_zero_based) const {
    return LinesOf(arguments_.root(), is_zero_based);
  }

  void SetLines(const ToolAccess& rule, Access& access) const {
    if (access.access_class != AccessClass::kRead) return;
    const auto number = [&](const std::string& name) {
      return name.empty() ? std::nullopt : IntegerOf(arguments_.Member(name));
    };
    const auto first = number(rule.first_line_argument);
    const auto last = number(rule.last_line_argument);
    const auto count = number(rule.line_count_argument);
    if (!first.has_value() && !last.has_value() && !count.has_value()) return;
    LineRange range;
    range.first = std::max<std::int64_t>(first.value_or(1), 1);
    if (last.has_value()) {
      if (*last >= 0) range.last = std::max(range.first, *last);
    } else if (count.has_value() && *count > 0 &&
               *count <= INT64_MAX - range.first) {
      range.last = range.first + *count - 1;
    }
    access.lines = range;
  }

  CallAccesses Done() {
    return {.accesses = sink_.Take(), .directory = directory_};
  }

  CallAccesses Only(AccessClass access_class, std::string resource,
                    std::string query = "") {
    Access access = MakeAccess(access_class, std::move(resource), std::nullopt,
                               std::move(query));
    if (access_class == AccessClass::kRead) access.lines = LineRange();
    sink_.Add(std::move(access));
    return Done();
  }

  CallAccesses Unknown() { return Only(AccessClass::kUnknown, OwnResource()); }

  // --- tools that the table has ----------------------------------------------

  CallAccesses ByTable(const ToolSpec& spec) {
    const absl::string_view paths =
        spec.resources.empty() ? kPaths : spec.resources;
    switch (spec.kind) {
      case ToolKind::kRead:
        // opencode's is told by how it writes the name.
        return Read(paths, spec.is_zero_based || arguments_.Has("filePath"));
      case ToolKind::kFetch:
        return Fetch();
      case ToolKind::kSearch:
      case ToolKind::kList:
        return Search(spec.kind == ToolKind::kList);
      case ToolKind::kAsk:
        return Only(AccessClass::kSearch, OwnResource(),
                    arguments_.Text(kQueries));
      case ToolKind::kWrite:
        if (name_.key == "create" && IsPlainCommand()) return Native();
        return Write(absl::StrCat(paths, " ", kEnds, " ", kEdits));
      case ToolKind::kRun:
        return Only(AccessClass::kRun, "",
                    absl::StrCat(name_.tool, " ", arguments_.Canonical()));
      case ToolKind::kNote:
        return Only(AccessClass::kWrite, absl::StrCat(OwnTree(), name_.tool));
      case ToolKind::kShell:
        // Not only shells are called so.
        if (name_.key == "execute" && !arguments_.Has(kScripts)) {
          return Unknown();
        }
        return Shell(spec.keeps_directory);
      case ToolKind::kEditor:
        return Editor(paths);
      case ToolKind::kPatch:
        return Patch();
      case ToolKind::kCode:
        return Code();
      case ToolKind::kNative:
        return Native();
      case ToolKind::kRouter:
        return Route();
      case ToolKind::kAnything:
        return Unknown();
    }
    return Unknown();
  }

  CallAccesses Read(absl::string_view names, bool is_zero_based) {
    const json::Value files = arguments_.Find("files file_paths operations");
    if (files.is_array()) {
      for (const json::Value file : files.children()) {
        if (sink_.is_full()) break;
        ReadOne(file, is_zero_based);
      }
    }
    if (sink_.empty()) {
      const std::optional<LineRange> lines = Lines(is_zero_based);
      for (const std::string& path : arguments_.Texts(names)) {
        if (sink_.is_full()) break;
        AddRead(path, lines);
      }
    }
    if (sink_.empty() && IsPlainCommand()) return Native();
    if (sink_.empty()) return Only(AccessClass::kRead, OwnResource());
    return Done();
  }

  // One of several files, each with ranges of its own.
  void ReadOne(json::Value file, bool is_zero_based) {
    const std::string path = MemberText(file, kPaths);
    if (path.empty()) return;
    const std::string mode = file["mode"].string();
    if (mode == "Directory" || mode == "Search") {
      return sink_.AddSearch(ResourceOf(path), /*is_tree=*/true,
                             absl::StrCat("*", file["pattern"].string()));
    }
    const json::Value ranges = MemberOf(file, "line_ranges lineRanges");
    for (const json::Value range : ranges.children()) {
      if (sink_.is_full()) return;
      sink_.Add(
          MakeAccess(AccessClass::kRead, ResourceOf(path), RangeOf(range)));
    }
    if (!ranges.children().empty()) return;
    sink_.Add(MakeAccess(AccessClass::kRead, ResourceOf(path),
                         LinesOf(file, is_zero_based)));
  }

  // URLs, which may stand in what is asked of them.
  CallAccesses Fetch() {
    const std::string prompt = arguments_.Text("prompt query");
    std::vector<std::string> urls = arguments_.Texts("url uri urls Url");
    if (urls.empty()) {
      for (absl::string_view word :
           absl::StrSplit(prompt, absl::ByAnyChar(" \n\t\"'`<>()[]{},"),
                          absl::SkipEmpty())) {
        if (urls.size() > kAccessesMax) break;
        absl::ConsumeSuffix(&word, ".");
        if (IsUrl(word)) urls.emplace_back(word);
      }
    }
    const std::optional<LineRange> lines = Lines(/*is_zero_based=*/false);
    for (const std::string& url : urls) {
      if (sink_.is_full()) break;
      if (prompt.empty()) {
        AddRead(url, lines);
      } else {
        sink_.AddSearch(ResourceOf(url), /*is_tree=*/false, prompt);
      }
    }
    if (urls.empty()) return Only(AccessClass::kSearch, OwnResource(), prompt);
    return Done();
  }

  void AddRead(const std::string& path, std::optional<LineRange> lines) {
    const ShellWord word = {
        .text = path,
        .is_glob = !IsUrl(path) && path.find('*') != std::string::npos};
    sink_.AddRead(word, lines);
  }

  static std::string MemberText(json::Value object, absl::string_view names) {
    return object.is_string() ? object.string()
                              : MemberOf(object, names).string();
  }

  std::string Query() const {
    std::string query = arguments_.Text(kQueries);
    for (const absl::string_view name : kLimits) {
      const json::Value value = arguments_.Member(name);
      if (!value.exists() || value.raw().size() > 256) continue;
      absl::StrAppend(&query, "\n", name, "=", value.raw());
    }
    return query;
  }

  CallAccesses Search(bool is_list) {
    if (IsPlainCommand()) return Native();
    std::string query = is_list ? absl::StrCat("*", Query()) : Query();
    if (query.empty()) query = arguments_.Canonical();
    const std::vector<std::string> folders = arguments_.Texts(kFolders);
    if (folders.empty() && !name_.server.empty() && !is_list) {
      return Only(AccessClass::kSearch, OwnResource(), std::move(query));
    }
    for (const std::string& folder : folders) {
      if (sink_.is_full()) break;
      sink_.AddSearch(ResourceOf(folder), /*is_tree=*/true, query);
    }
    if (folders.empty()) {
      sink_.AddSearch(sink_.Directory(), /*is_tree=*/true, query);
    }
    return Done();
  }

  CallAccesses Write(absl::string_view names) {
    // All the paths: a file is moved from one to another.
    bool has_path = false;
    for (const absl::string_view name : absl::StrSplit(names, ' ')) {
      if (sink_.is_full()) break;
      for (const std::string& path : TextsOf(arguments_.Member(name))) {
        if (sink_.is_full()) break;
        sink_.AddWrite(ResourceOf(path), /*is_tree=*/false);
        has_path = true;
      }
    }
    if (!has_path) sink_.AddWrite("", /*is_tree=*/true);
    return Done();
  }

  // The text of a script: an argument, or all there is.
  std::string Script(absl::string_view names) const {
    std::string script = arguments_.Text(names);
    if (script.empty()) script = std::string(arguments_.text());
    return script;
  }

  CallAccesses Shell(bool keeps_directory) {
    std::string directory = directory_;
    if (const std::string place = arguments_.Text(kWorkDirs); !place.empty()) {
      directory = NormalPath(place, directory_);
      if (directory == ".") directory = "";
      keeps_directory = false;
    } else if (const std::string folder = arguments_.Text("directory dir_path");
               !folder.empty()) {
      directory = NormalPath(folder, directory_);
      keeps_directory = false;
    }
    const std::vector<std::string> words = arguments_.Texts(kScripts);
    CallAccesses done;
    if (arguments_.Find(kScripts).is_array() && name_.key != "runcommands") {
      done = CommandAccesses(words, directory);
    } else if (words.size() > 1) {
      // Scripts, one after the other.
      done = ScriptAccesses(absl::StrJoin(words, "\n"), directory);
    } else {
      const std::string script = words.empty() ? Script("") : words.front();
      if (script.empty()) return Only(AccessClass::kRun, "", name_.tool);
      if (std::ssize(script) > kAccessBytesMax) return Unknown();
      done = ScriptAccesses(script, directory);
    }
    if (!keeps_directory) done.directory = directory_;
    return done;
  }

  CallAccesses Editor(absl::string_view paths) {
    const std::string command = arguments_.Text("command");
    if (command == "view") return Read(paths, false);
    return Write(paths);
  }

  CallAccesses Patch() {
    const std::string patch = Script(kPatches);
    if (std::ssize(patch) > kAccessBytesMax) return Unknown();
    AddPatch(patch, sink_);
    return Done();
  }

  CallAccesses Code() {
    const std::string code = Script(kCodes);
    if (std::ssize(code) > kAccessBytesMax) return Unknown();
    AddProgram(code, name_.tool, sink_);
    return Done();
  }

  // Whether the only argument is a `command` that begins with the tool's name.
  bool IsPlainCommand() const {
    return absl::StartsWith(arguments_.Text("command"), name_.tool);
  }

  CallAccesses Native() {
    if (IsPlainCommand()) {
      const std::string script = arguments_.Text("command");
      if (std::ssize(script) > kAccessBytesMax) return Unknown();
      CallAccesses done = ScriptAccesses(script, directory_);
      done.directory = directory_;
      return done;
    }
    const std::vector<std::string> paths = arguments_.Texts(kPaths);
    Access access = MakeAccess(AccessClass::kRead);
    if (!paths.empty()) access.resource = ResourceOf(paths.front());
    sink_.Add(std::move(access));
    return Done();
  }

  CallAccesses Route() {
    const std::string tool = arguments_.Text(kToolNames);
    if (tool.empty() || routes_ >= kRoutesMax) return Unknown();
    const std::string server = arguments_.Text(kServers);
    ToolName name = ParseToolName(tool);
    if (name.server.empty()) name.server = server;
    const json::Value params = arguments_.Find(kParams);
    const Arguments inner(params.exists() ? params.raw() : "{}");
    return Call(std::move(name), inner, directory_, routes_ + 1).ByTables();
  }

  // --- tools that it has not -------------------------------------------------

  CallAccesses ByWords() {
    const bool is_remote = arguments_.Has(kRemotes);
    const bool has_path = !is_remote && arguments_.Has(kPaths);
    switch (ClassOfVerb(name_.tool)) {
      case AccessClass::kRead:
        if (has_path) return Read(kPaths, false);
        return Only(AccessClass::kRead, OwnResource());
      case AccessClass::kSearch:
        if (has_path) return Search(/*is_list=*/false);
        return Only(AccessClass::kSearch, OwnResource(), Query());
      case AccessClass::kRun:
        return Only(AccessClass::kRun, "", OwnResource());
      case AccessClass::kWrite:
        if (has_path) return Write(kPaths);
        // What it changes is its server's, if it has one.
        if (name_.server.empty()) break;
        sink_.AddWrite(OwnTree(), /*is_tree=*/true);
        return Done();
      case AccessClass::kUnknown:
        break;
    }
    return Unknown();
  }

  ToolName name_;
  const Arguments& arguments_;
  std::string directory_;
  int routes_;
  AccessSink sink_;
};

}  // namespace

absl::string_view AccessClassName(AccessClass access_class) {
  switch (access_class) {
    case AccessClass::kRead:
      return "read";
    case AccessClass::kSearch:
      return "search";
    case AccessClass::kRun:
      return "run";
    case AccessClass::kWrite:
      return "write";
    case AccessClass::kUnknown:
      break;
  }
  return "unknown";
}

CallAccesses AccessesOf(absl::string_view tool, absl::string_view arguments,
                        absl::string_view directory, const ToolAccess& rule) {
  const Arguments parsed(arguments);
  Call call(ParseToolName(
                tool.substr(0, static_cast<std::size_t>(kToolNameBytesMax))),
            parsed, directory,
            /*routes=*/0);
  return IsSet(rule) ? call.ByRule(rule) : call.ByTables();
}

}  // namespace clerestory
