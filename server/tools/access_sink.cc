// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/access_sink.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/digest.h"
#include "server/tools/access.h"
#include "server/tools/paths.h"
#include "server/tools/shell.h"

namespace clerestory {
namespace {

// Queries longer than this are cut: they are only compared.
constexpr std::size_t kQueryBytesMax = 1024;

constexpr absl::string_view kNoFiles[] = {
    "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin",
    "nul",       "NUL",         "$null",       "-"};

bool IsNoFile(absl::string_view path) {
  return path.empty() || std::find(std::begin(kNoFiles), std::end(kNoFiles),
                                   path) != std::end(kNoFiles);
}

// The folder in front of the first part of `pattern` that is one.
std::string FolderOf(absl::string_view pattern) {
  const std::size_t glob = pattern.find_first_of("*?{");
  const std::size_t slash = pattern.substr(0, glob).find_last_of("/\\");
  if (slash == absl::string_view::npos) return ".";
  return std::string(pattern.substr(0, slash + 1));
}

// In front of the digest of a name that is too long. No tool's server is called
// so.
constexpr absl::string_view kLongName = "too long:";

std::string LongName(absl::string_view name) {
  return absl::StrCat(kLongName, Digest::Of(name).ToHex());
}

bool IsInput(const Access& access) {
  return access.access_class == AccessClass::kRead ||
         access.access_class == AccessClass::kSearch;
}

}  // namespace

Access MakeAccess(AccessClass access_class, std::string resource,
                  std::optional<LineRange> lines, std::string query) {
  Access access;
  access.access_class = access_class;
  access.resource = std::move(resource);
  access.lines = lines;
  access.query = std::move(query);
  return access;
}

void LimitResource(Access& access) {
  const bool is_long = access.resource.size() > kResourceBytesMax;
  if (!is_long && !absl::StartsWith(access.resource, kLongName)) return;
  if (access.access_class == AccessClass::kWrite ||
      access.access_class == AccessClass::kUnknown) {
    access = MakeAccess(AccessClass::kUnknown);
  } else if (is_long) {
    access.resource = LongName(access.resource);
  }
}

CommandPlace::CommandPlace(std::string where) {
  if (where.size() <= kResourceBytesMax) directory = std::move(where);
}

std::string AccessSink::Resource(absl::string_view path) const {
  if (path.empty()) return "";
  // In time that does not depend on how many of them are named.
  if (path.size() > kResourceBytesMax) return LongName(path);
  if (IsUrl(path)) return NormalPath(path, "");
  if (!place_.directory.has_value() && !IsAbsolutePath(path)) return "";
  return absl::StrCat(place_.prefix,
                      NormalPath(path, place_.directory.value_or("")));
}

std::string AccessSink::Resource(const ShellWord& word) const {
  return word.is_literal && !word.is_glob ? Resource(word.text) : "";
}

void AccessSink::Add(Access access) {
  if (accesses_.size() >= kAccessesMax) {
    is_full_ = true;
    return;
  }
  if (access.query.size() > kQueryBytesMax) access.query.resize(kQueryBytesMax);
  LimitResource(access);
  accesses_.push_back(std::move(access));
}

void AccessSink::AddRead(const ShellWord& file,
                         std::optional<LineRange> lines) {
  if (IsNoFile(file.text) && file.is_literal) return;
  if (file.is_literal && file.is_glob) {
    return AddSearch(file, /*is_tree=*/true, "");
  }
  Add(MakeAccess(AccessClass::kRead, Resource(file), lines));
}

void AccessSink::AddSearch(std::string resource, bool is_tree,
                           absl::string_view query) {
  Access access =
      MakeAccess(AccessClass::kSearch, std::move(resource), std::nullopt,
                 std::string(query.substr(0, kQueryBytesMax)));
  access.is_tree = is_tree;
  Add(std::move(access));
}

void AccessSink::AddSearch(const ShellWord& path, bool is_tree,
                           absl::string_view query) {
  if (IsNoFile(path.text) && path.is_literal) return;
  if (path.is_literal && path.is_glob) {
    return AddSearch(Resource(FolderOf(path.text)), /*is_tree=*/true,
                     absl::StrCat(query, "\n", path.text));
  }
  AddSearch(Resource(path), is_tree, query);
}

void AccessSink::AddWrite(std::string resource, bool is_tree) {
  Access access = MakeAccess(AccessClass::kWrite, std::move(resource));
  access.is_tree = is_tree;
  Add(std::move(access));
}

void AccessSink::AddWrite(const ShellWord& file, bool is_tree) {
  if (IsNoFile(file.text) && file.is_literal) return;
  if (file.is_literal && file.is_glob) {
    return AddWrite(Resource(FolderOf(file.text)), /*is_tree=*/true);
  }
  AddWrite(Resource(file), is_tree);
}

void AccessSink::AddRun(absl::string_view command) {
  Add(MakeAccess(AccessClass::kRun, "", std::nullopt,
                 absl::StrCat(place_.prefix, command)));
}

void AccessSink::AddUnknown(absl::string_view command) {
  Add(MakeAccess(AccessClass::kUnknown, "", std::nullopt,
                 std::string(command)));
}

bool AccessSink::HasInput() const {
  return std::any_of(accesses_.begin() + static_cast<std::ptrdiff_t>(begin_),
                     accesses_.end(), IsInput);
}

void AccessSink::Narrow(const LineRange& lines) {
  for (std::size_t i = begin_; i < accesses_.size(); ++i) {
    Access& access = accesses_[i];
    if (access.access_class != AccessClass::kRead) continue;
    if (!access.lines.has_value()) continue;
    LineRange& all = *access.lines;
    const std::int64_t before = all.first - 1;
    if (lines.last < INT64_MAX - before) {
      all.last = std::min(all.last, before + lines.last);
    }
    all.first =
        lines.first < INT64_MAX - before ? before + lines.first : INT64_MAX;
    // None of them is left, as far as anybody can know.
    if (all.last < all.first) access.lines.reset();
  }
}

void AccessSink::NarrowSomehow() {
  for (std::size_t i = begin_; i < accesses_.size(); ++i) {
    accesses_[i].lines.reset();
  }
}

void AccessSink::Filter(absl::string_view query) {
  for (std::size_t i = begin_; i < accesses_.size(); ++i) {
    Access& access = accesses_[i];
    if (!IsInput(access)) continue;
    if (access.access_class == AccessClass::kRead) {
      access.access_class = AccessClass::kSearch;
      access.lines.reset();
    }
    if (access.query.size() + query.size() > kQueryBytesMax) continue;
    absl::StrAppend(&access.query, access.query.empty() ? "" : "\n", query);
  }
}

void AccessSink::WriteInput() {
  std::vector<Access> written;
  for (std::size_t i = begin_; i < accesses_.size(); ++i) {
    if (!IsInput(accesses_[i])) continue;
    written.push_back(MakeAccess(AccessClass::kWrite, accesses_[i].resource));
    written.back().is_tree = accesses_[i].is_tree;
  }
  if (written.empty()) return AddWrite("", /*is_tree=*/false);
  for (Access& access : written) Add(std::move(access));
}

std::vector<Access> AccessSink::Take() {
  if (!is_full_) return std::move(accesses_);
  return {MakeAccess(AccessClass::kUnknown)};
}

}  // namespace clerestory
