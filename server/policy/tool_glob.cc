// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/tool_glob.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/base/utf8.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

constexpr std::size_t kGlobBytesMax = 200;
constexpr absl::string_view kMcpPrefix = "mcp__";
constexpr absl::string_view kMcpSeparator = "__";

// What is the same in a shell's glob or a regular expression, but not here; and
// what separates globs on a command line.
constexpr absl::string_view kForbidden = "[]{}()\\|,!^$\"'`<>;";

// The bytes of the character that begins at `at`.
std::size_t CharacterSize(absl::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() &&
         (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    ++end;
  }
  return end - at;
}

// Whether `glob` matches `text`, in which `?` stands for any one character, and
// so is matched by `?` and `*` only, and `*` for any run, matched by `*` only,
// if it `is_glob` itself.
bool Matches(absl::string_view glob, absl::string_view text, bool is_glob) {
  std::size_t g = 0;
  std::size_t t = 0;
  // Where to go on from when it fails: behind the last `*`, and behind what
  // that one takes. An earlier `*` need never take more: the last one can.
  std::size_t star = absl::string_view::npos;
  std::size_t star_end = 0;
  while (t < text.size()) {
    const bool is_run = is_glob && text[t] == '*';
    if (g < glob.size() && glob[g] == '*') {
      star = ++g;
      star_end = t;
    } else if (g < glob.size() && glob[g] == '?' && !is_run) {
      ++g;
      t += CharacterSize(text, t);
    } else if (g < glob.size() && glob[g] == text[t] && !is_run) {
      ++g;
      ++t;
    } else if (star != absl::string_view::npos) {
      g = star;
      star_end += CharacterSize(text, star_end);
      t = star_end;
    } else {
      return false;
    }
  }
  return std::all_of(glob.begin() + static_cast<std::ptrdiff_t>(g), glob.end(),
                     [](char c) { return c == '*'; });
}

// The name of an MCP tool as `SERVER/TOOL`; "" of another. Of a glob for such
// names, if its server is spelled out, one for those.
std::string McpName(absl::string_view tool) {
  if (!absl::StartsWith(tool, kMcpPrefix)) return "";
  const absl::string_view rest = tool.substr(kMcpPrefix.size());
  const std::size_t end = rest.find(kMcpSeparator);
  if (end == absl::string_view::npos || end == 0) return "";
  const absl::string_view server = rest.substr(0, end);
  if (server.find_first_of("*?") != absl::string_view::npos) return "";
  return absl::StrCat(server, "/", rest.substr(end + kMcpSeparator.size()));
}

bool MatchesAny(const std::vector<std::string>& globs, absl::string_view tool) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return MatchesTool(glob, tool);
  });
}

}  // namespace

absl::Status CheckGlob(absl::string_view field, absl::string_view glob) {
  if (glob.empty() || glob.size() > kGlobBytesMax) {
    return FieldError(
        field,
        absl::StrCat("expected a glob of 1 to ", kGlobBytesMax, " bytes, got ",
                     glob.size(), "; * is any run of characters, ? any one"));
  }
  if (!IsUtf8(glob)) return FieldError(field, "not valid UTF-8");
  for (const char c : glob) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c)) ||
        absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      return FieldError(field,
                        "a glob has no blanks; write * or ? in their place");
    }
    if (kForbidden.find(c) != absl::string_view::npos) {
      return FieldError(
          field, absl::StrCat("no name has \"", std::string(1, c),
                              "\"; * is any run of characters and ? any one, "
                              "nothing else is special; write one glob for "
                              "each choice"));
    }
  }
  return absl::OkStatus();
}

bool MatchesGlob(absl::string_view glob, absl::string_view text) {
  return Matches(glob, text, /*is_glob=*/false);
}

bool MatchesTool(absl::string_view glob, absl::string_view tool) {
  if (MatchesGlob(glob, tool)) return true;
  const std::string mcp_name = McpName(tool);
  return !mcp_name.empty() && MatchesGlob(glob, mcp_name);
}

bool CoversGlob(absl::string_view general, absl::string_view special) {
  return Matches(general, special, /*is_glob=*/true);
}

bool CoversTool(absl::string_view general, absl::string_view special) {
  if (CoversGlob(general, special)) return true;
  const std::string mcp_name = McpName(special);
  return !mcp_name.empty() && CoversGlob(general, mcp_name);
}

const ToolRule* RuleFor(const Policy& policy, absl::string_view tool) {
  for (const ToolRule& rule : policy.tools) {
    if (MatchesTool(rule.tool, tool)) return &rule;
  }
  return nullptr;
}

bool IsMaskable(const Policy& policy, absl::string_view tool) {
  if (MatchesAny(policy.exclude, tool)) return false;
  if (!policy.include.empty() && !MatchesAny(policy.include, tool)) {
    return false;
  }
  const ToolRule* rule = RuleFor(policy, tool);
  return rule == nullptr || !rule->is_never_masked;
}

}  // namespace clerestory
