// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// A call out of any bytes: the name of a tool in the first line, its arguments
// behind it, as JSON, as the script of a shell or of Python, and as a path.
// Whatever comes, it is answered, within bounds, twice the same; and what was
// named is in normal form.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/utf8.h"
#include "server/json/literal.h"
#include "server/tools/access.h"
#include "server/tools/paths.h"

namespace clerestory {
namespace {

void CheckCall(absl::string_view tool, absl::string_view arguments,
               absl::string_view directory) {
  const CallAccesses done = AccessesOf(tool, arguments, directory);
  CLERESTORY_CHECK(done.accesses.size() <= kAccessesMax);
  for (const Access& access : done.accesses) {
    const bool is_read = access.access_class == AccessClass::kRead;
    CLERESTORY_CHECK(is_read || !access.lines.has_value());
    if (access.lines.has_value()) {
      CLERESTORY_CHECK(access.lines->first >= 1);
      CLERESTORY_CHECK(access.lines->last >= access.lines->first);
    }
    CLERESTORY_CHECK(access.query.size() <= 64 + 2 * kAccessBytesMax);
  }
  CLERESTORY_CHECK(done == AccessesOf(tool, arguments, directory));
  ToolAccess rule;
  rule.access_class = AccessClass::kRead;
  rule.resource_argument = "path";
  rule.first_line_argument = "offset";
  rule.line_count_argument = "limit";
  for (const Access& access :
       AccessesOf(tool, arguments, directory, rule).accesses) {
    CLERESTORY_CHECK(access.access_class == AccessClass::kRead ||
                     access.access_class == AccessClass::kUnknown);
  }
}

void CheckPath(absl::string_view path) {
  for (const absl::string_view directory : {"", "/r", "a/b", "C:/x", "~"}) {
    const std::string normal = NormalPath(path, directory);
    // With a colon or a backslash a part of a path can look like a drive.
    if (path.find_first_of(":\\") == absl::string_view::npos) {
      CLERESTORY_CHECK(NormalPath(normal, "") == normal);
    }
    CLERESTORY_CHECK(IsWithin(normal, normal));
  }
}

}  // namespace
}  // namespace clerestory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace clerestory;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const absl::string_view tool = text.substr(0, end);
  const absl::string_view rest =
      end == absl::string_view::npos ? "" : text.substr(end + 1);
  CheckCall(tool, rest, "/r");
  CheckPath(tool);
  if (!IsUtf8(rest)) return 0;
  const std::string quoted = json::Quote(rest);
  CheckCall(tool,
            absl::StrCat("{\"path\":", quoted, ",\"command\":", quoted, "}"),
            "");
  CheckCall("Bash", absl::StrCat("{\"command\":", quoted, "}"), "/r");
  CheckCall("python", absl::StrCat("{\"code\":", quoted, "}"), "/r");
  CheckCall("apply_patch", quoted, "/r");
  return 0;
}
