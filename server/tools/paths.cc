// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/paths.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace clerestory {
namespace {

constexpr absl::string_view kFileScheme = "file://";
constexpr absl::string_view kHostMark = "://";

bool IsAlpha(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c));
}

bool HasDrive(absl::string_view path) {
  return path.size() >= 2 && IsAlpha(path[0]) && path[1] == ':' &&
         (path.size() == 2 || path[2] == '/' || path[2] == '\\');
}

// Whether the backslashes of `path` separate folders.
bool IsWindows(absl::string_view path) {
  return HasDrive(path) || absl::StartsWith(path, "\\\\") ||
         (absl::StrContains(path, '\\') && !absl::StrContains(path, '/'));
}

// `path`, which is in normal form, with a drive where it names one in another
// way: `/mnt/c/` or `/c/Program`.
std::string WithDrive(std::string path) {
  absl::string_view rest = path;
  const bool is_mount = absl::ConsumePrefix(&rest, "/mnt/");
  if (!is_mount && !absl::ConsumePrefix(&rest, "/")) return path;
  if (rest.size() < 2 || !IsAlpha(rest[0]) || rest[1] != '/') return path;
  if (!is_mount && !absl::StartsWith(rest.substr(1), "/Users/") &&
      !absl::StartsWith(rest.substr(1), "/Program")) {
    return path;
  }
  return absl::StrCat(absl::AsciiStrToUpper(rest.substr(0, 1)), ":",
                      rest.substr(1));
}

// The part of `path` that stays in front whatever `..` follow: "/", "C:/", "~/"
// or "", taken off it.
std::string TakeRoot(absl::string_view& path) {
  if (HasDrive(path)) {
    const char drive = absl::ascii_toupper(static_cast<unsigned char>(path[0]));
    path.remove_prefix(2);
    return absl::StrCat(std::string(1, drive), ":/");
  }
  if (absl::StartsWith(path, "~")) {
    const std::size_t end = path.find('/');
    const std::string home(path.substr(0, end));
    path.remove_prefix(home.size());
    return absl::StrCat(home, "/");
  }
  return absl::StartsWith(path, "/") ? "/" : "";
}

}  // namespace

bool IsUrl(absl::string_view text) {
  const std::size_t end = text.find(kHostMark);
  if (end == absl::string_view::npos || end < 2 || end > 16) return false;
  for (const char c : text.substr(0, end)) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '+') {
      return false;
    }
  }
  return true;
}

bool IsAbsolutePath(absl::string_view path) {
  return absl::StartsWith(path, "/") || absl::StartsWith(path, "~") ||
         absl::StartsWith(path, "\\\\") || HasDrive(path) || IsUrl(path);
}

std::string NormalPath(absl::string_view path, absl::string_view directory) {
  if (path.empty()) return "";
  std::string text;
  if (absl::ConsumePrefix(&path, kFileScheme)) {
    absl::ConsumePrefix(&path, "localhost");
    // file:///C:/x is C:/x.
    if (HasDrive(path.substr(path.empty() ? 0 : 1))) path.remove_prefix(1);
  } else if (IsUrl(path)) {
    return std::string(path.substr(0, path.find('#')));
  }
  text = std::string(path);
  if (IsWindows(path) || HasDrive(directory)) {
    std::replace(text.begin(), text.end(), '\\', '/');
  }
  if (!IsAbsolutePath(text) && !directory.empty()) {
    text = absl::StrCat(directory, "/", text);
  }
  absl::string_view rest = text;
  const std::string root = TakeRoot(rest);
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(rest, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (root.empty() || root[0] == '~') {
      parts.push_back(part);
    }
  }
  if (!parts.empty()) {
    return WithDrive(absl::StrCat(root, absl::StrJoin(parts, "/")));
  }
  if (root.empty()) return ".";
  return root[0] == '~' ? root.substr(0, root.size() - 1) : root;
}

bool IsWithin(absl::string_view resource, absl::string_view tree) {
  if (tree.empty() || resource == tree) return resource == tree;
  if (tree == ".") {
    return !resource.empty() && !IsAbsolutePath(resource) &&
           !absl::StartsWith(resource, "..") &&
           !absl::StrContains(resource, ':');
  }
  if (!absl::StartsWith(resource, tree)) return false;
  const char last = tree.back();
  return last == '/' || last == ':' || resource[tree.size()] == '/';
}

}  // namespace clerestory
