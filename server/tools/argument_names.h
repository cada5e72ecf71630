// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// The names that tools give to their arguments, as lists that are separated by
// blanks, of which the first that is there counts.

#ifndef CLERESTORY_SERVER_TOOLS_ARGUMENT_NAMES_H_
#define CLERESTORY_SERVER_TOOLS_ARGUMENT_NAMES_H_

#include "absl/strings/string_view.h"

namespace clerestory {

inline constexpr absl::string_view kPaths =
    "file_path path absolute_path filepath filePath absolutePath filename "
    "file_name notebook_path target_file relative_workspace_path "
    "relative_path target_notebook image_path TargetFile AbsolutePath paths "
    "file_paths filePaths files file uri url inputPath input_path "
    "fileAbsolutePath prs_path dir_path directory dir folder DirectoryPath "
    "pathInProject File Url dirPath";
// Of what is moved: from where, and to where.
inline constexpr absl::string_view kEnds =
    "source destination old_path new_path source_path destination_path from to "
    "outputPath output_path";
// Of edits of several files, which name theirs.
inline constexpr absl::string_view kEdits = "replacements edits";
inline constexpr absl::string_view kFolders =
    "path dir_path directory dir folder file_path paths file filename "
    "relative_workspace_path target_directory SearchPath SearchDirectory "
    "DirectoryPath absolute_path target_directories uri TargetDirectories "
    "dirPath relative_path AbsolutePath File pathInProject directoryToSearch "
    "filePath filepath absolutePath target_file directory_path";
inline constexpr absl::string_view kQueries =
    "pattern query regex search_term searchTerm search expression q "
    "file_name name_pattern Query Pattern glob_pattern prompt keyword "
    "keywords text name_path name_path_pattern substring_pattern searchText";
// What limits or changes what a search finds.
inline constexpr absl::string_view kLimits[] = {"glob",
                                                "type",
                                                "include",
                                                "include_pattern",
                                                "-i",
                                                "output_mode",
                                                "exclude",
                                                "file_pattern",
                                                "filePattern",
                                                "excludePatterns",
                                                "exclude_pattern",
                                                "include_files",
                                                "includePattern",
                                                "isRegexp",
                                                "Includes",
                                                "fileMask",
                                                "depth",
                                                "include_body"};
inline constexpr absl::string_view kScripts =
    "command cmd script commands CommandLine code input";
inline constexpr absl::string_view kWorkDirs =
    "workdir cwd working_directory working_dir workingDirectory Cwd cd";
inline constexpr absl::string_view kCodes = "code script source program input";
inline constexpr absl::string_view kPatches =
    "input patch patch_text patchText diff";
inline constexpr absl::string_view kServers = "server_name serverName server";
inline constexpr absl::string_view kToolNames = "tool_name toolName tool name";
inline constexpr absl::string_view kParams =
    "params arguments args tool_args parameters input tool_input";
// With one of these a path is not of this machine.
inline constexpr absl::string_view kRemotes =
    "owner repo repository repo_name project_id projectId bucket page_id "
    "pageId database_id site_id drive_id";

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_ARGUMENT_NAMES_H_
