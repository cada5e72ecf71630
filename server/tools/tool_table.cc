// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/tool_table.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/tools/access.h"
#include "server/tools/command_line.h"

namespace clerestory {
namespace {

using Kind = ToolKind;

constexpr ToolSpec kTools[] = {
    // Claude Code, pi, opencode, Cline, Gemini CLI, the filesystem server and
    // others have these names in common.
    {"read readfile view viewfile readtextfile readmediafile readfiles "
     "readmultiplefiles readimage viewimage cat notebookread "
     "getfilecontent getfilecontents fileread readnotebook fsread "
     "readfilerange",
     Kind::kRead},
    {"readmanyfiles", Kind::kRead, false, false, "paths include path"},
    {"edit multiedit write writefile writetofile replaceinfile replace "
     "notebookedit editfile createfile deletefile removefile movefile "
     "renamefile copyfile createdirectory makedirectory searchreplace "
     "appendfile applydiff insertcontent editnotebook filewrite fileedit "
     "editblock editor smartedit create insert append newfile newrule "
     "searchandreplace singlefindandreplace multireplacestringinfile "
     "replacestringinfile savefile removefiles fswrite",
     Kind::kWrite},
    {"grep search searchfiles searchfilecontent ripgrep greptool codesearch "
     "codebasesearch searchcode searchdir searchfile grepsearch findinfiles "
     "searchintext searchdirectory rg viewcodeitem",
     Kind::kSearch},
    {"glob findfile find findfiles globtool filesearch findbyname "
     "listcodedefinitionnames fileglobsearch",
     Kind::kSearch},
    {"ls listdirectory listfiles listdir list directorytree tree "
     "listdirectorywithsizes getfileinfo listalloweddirectories",
     Kind::kList},
    {"webfetch fetch fetchurl readurl urlfetch fetchwebpage webread fetchhtml "
     "fetchmarkdown fetchtxt fetchjson openurl webbrowsergo browsernavigate "
     "readurlcontent",
     Kind::kFetch},
    {"websearch googlewebsearch searchweb bravewebsearch "
     "tavilysearch exasearch duckduckgosearch toolsearch route skill "
     "calculate",
     Kind::kAsk},

    {"bash executebash shelltool bashtool terminal executecommandline run "
     "runinterminal executeshell runbash",
     Kind::kShell, true},
    {"shell exec execcommand localshell localshellcall shellcommand "
     "runshellcommand executecommand runcommand runcommands runterminalcmd "
     "runterminalcommand containerexec startprocess launchprocess execute",
     Kind::kShell},
    {"bashoutput taskoutput killshell killbash writestdin taskstop "
     "getterminaloutput readterminal commandstatus wait sleep pty "
     "computer tabscontextmcp navigate browseraction webbrowserclick "
     "readconsolemessages listmcpresources "
     "interactwithprocess readprocessoutput listprocesses listsessions "
     "gettaskoutput viewdiff killprocess writeprocess",
     Kind::kRun},
    {"todowrite todoread updateplan think taskcreate taskupdate tasklist "
     "taskget askuserquestion exitplanmode enterplanmode sequentialthinking "
     "finish submit attemptcompletion askfollowupquestion savememory "
     "updatememory memory writetodos planmoderespond newtask switchmode "
     "condense complete done requestuserinput taskdone planexit "
     "updatetodolist managetodolist creatediagram",
     Kind::kNote},
    {"strreplaceeditor strreplacebasededittool fileeditor texteditor "
     "strreplacebasedtool strreplacetool strreplace",
     Kind::kEditor},
    {"applypatch patch", Kind::kPatch},
    {"executeipythoncell runipython ipython python executepython runpython "
     "pythonrepl codeinterpreter executecode runcode",
     Kind::kCode},
    {"open goto scrollup scrolldown", Kind::kNative},
    {"executetool usemcptool calltool mcpcall calltoolbyname invoketool "
     "mcpcalltool",
     Kind::kRouter},
    {"task agent delegate subagent dispatchagent spawnagent sendinput "
     "delegatetoagent slashcommand",
     Kind::kAnything},
};

// The offsets of these count from 0.
constexpr ToolSpec kZeroBased = {"readfile readmanyfiles", Kind::kRead, false,
                                 true};

constexpr absl::string_view kReadVerbs =
    "get read fetch view show describe retrieve load inspect download export "
    "check status resource resources";
constexpr absl::string_view kSearchVerbs =
    "search find query list lookup grep count filter calculate compute browse "
    "extract explore match analyze";
constexpr absl::string_view kWriteVerbs =
    "create update delete remove book write send set add edit insert append "
    "replace move rename copy cancel modify transfer save upload put post "
    "patch make merge push close return exchange assign enable disable reset "
    "clear generate submit commit checkout rebase pull apply install drop "
    "import register cleanup";
constexpr absl::string_view kRunVerbs =
    "click navigate screenshot wait poll scroll hover press type snapshot";
// What someone who writes says beside another verb: search_and_replace.
constexpr absl::string_view kEditWords = "replace insert overwrite";
// What is read of these is as it is now.
constexpr absl::string_view kStateWords =
    "status errors lints diagnostics process processes progress problems";
// What is read of these is not what the file holds.
constexpr absl::string_view kOutlineWords =
    "outline symbols overview definitions";

bool IsUpper(char c) {
  return absl::ascii_isupper(static_cast<unsigned char>(c));
}

// The words of `fetchUserDetails`, `fetch_user_details`, in lower case.
std::vector<std::string> WordsOf(absl::string_view name) {
  std::vector<std::string> words;
  bool is_open = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!absl::ascii_isalnum(c)) {
      is_open = false;
      continue;
    }
    if (!is_open || (IsUpper(name[i]) && !IsUpper(name[i - 1]))) {
      words.emplace_back();
      is_open = true;
    }
    words.back().push_back(absl::ascii_tolower(c));
  }
  return words;
}

}  // namespace

ToolName ParseToolName(absl::string_view name) {
  ToolName parsed;
  absl::ConsumePrefix(&name, "functions.");
  absl::string_view rest = name;
  absl::string_view separator;
  if (absl::ConsumePrefix(&rest, "mcp__")) {
    separator = "__";
  } else {
    rest = name;
    for (const absl::string_view mark : {"__", "/", ".", ":"}) {
      if (!separator.empty() || !absl::StrContains(rest, mark)) continue;
      separator = mark;
    }
  }
  const std::size_t end =
      separator.empty() ? absl::string_view::npos : rest.find(separator);
  if (end != absl::string_view::npos && end > 0 &&
      end + separator.size() < rest.size()) {
    parsed.server = std::string(rest.substr(0, end));
    rest.remove_prefix(end + separator.size());
  }
  parsed.tool = std::string(rest);
  for (const char c : rest) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte)) {
      parsed.key.push_back(absl::ascii_tolower(byte));
    }
  }
  return parsed;
}

const ToolSpec* FindTool(const ToolName& name) {
  // The offsets of Gemini CLI's and LangChain's `read_file` count from 0; those
  // of servers are heads and tails.
  if (name.server.empty() && name.tool == "read_file") return &kZeroBased;
  for (const ToolSpec& spec : kTools) {
    if (IsOneOfWords(name.key, spec.keys)) return &spec;
  }
  return nullptr;
}

AccessClass ClassOfVerb(absl::string_view tool) {
  const std::vector<std::string> words = WordsOf(tool);
  const auto has = [&words](absl::string_view list) {
    return std::any_of(
        words.begin(), words.end(),
        [list](const std::string& word) { return IsOneOfWords(word, list); });
  };
  if (has(kEditWords)) return AccessClass::kWrite;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "and" && IsOneOfWords(words[i + 1], kWriteVerbs)) {
      return AccessClass::kWrite;
    }
  }
  for (const std::string& word : words) {
    if (IsOneOfWords(word, kReadVerbs)) {
      if (has(kStateWords)) return AccessClass::kRun;
      return has(kOutlineWords) ? AccessClass::kSearch : AccessClass::kRead;
    }
    if (IsOneOfWords(word, kSearchVerbs)) return AccessClass::kSearch;
    if (IsOneOfWords(word, kWriteVerbs)) return AccessClass::kWrite;
    if (IsOneOfWords(word, kRunVerbs)) return AccessClass::kRun;
  }
  return AccessClass::kUnknown;
}

}  // namespace clerestory
