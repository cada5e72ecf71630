// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/command_table.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/tools/command_line.h"

namespace clerestory {
namespace {

using Kind = CommandKind;

constexpr CommandSpec kUnknownCommand = {"", Kind::kRun, ""};

constexpr CommandSpec kCommands[] = {
    {"echo printf true false : sleep export set unset local declare test [ "
     "exit "
     "return read shift chmod chown wait trap ulimit alias umask pwd clear "
     "realpath readlink basename dirname write-host write-output start-sleep "
     "out-null",
     Kind::kNothing},

    {"cat zcat", Kind::kCat},
    {"nl", Kind::kCat, "-b -d -f -h -i -l -n -s -v -w"},
    {"less more bat batcat", Kind::kCat,
     "-r --line-range -H -l --language --style --theme"},
    {"type get-content gc", Kind::kCat,
     "-path -literalpath -totalcount -head -first -tail -last -encoding",
     OptionStyle::kLong},
    {"xxd hexdump od base64 strings pdftotext tac rev", Kind::kDump,
     "-l -s -n -c"},
    {"head", Kind::kHead, "-n --lines -c --bytes"},
    {"tail", Kind::kTail, "-n --lines -c --bytes"},
    {"select-object select", Kind::kHead, "-first -last -skip -property",
     OptionStyle::kLong},
    {"sed gsed", Kind::kSed, "-e --expression -f --file"},
    {"awk gawk mawk", Kind::kAwk, "-F -v -f"},
    {"grep egrep fgrep zgrep rgrep", Kind::kGrep,
     "-e --regexp -f --file -m --max-count -A -B -C --include --exclude "
     "--exclude-dir --after-context --before-context --context --color"},
    {"rg ag ack", Kind::kRg,
     "-e --regexp -f -m --max-count -A -B -C -g --glob -t --type -T "
     "--type-not -G --max-depth -d --sort --max-columns -M -r --replace "
     "--iglob --color --ignore -j"},
    {"select-string sls", Kind::kGrep,
     "-pattern -path -literalpath -context -include -exclude",
     OptionStyle::kLong},
    {"findstr", Kind::kGrep, "/c: /g:"},
    {"find gfind", Kind::kFind},
    {"fd fdfind", Kind::kFind},
    {"ls ll tree du exa eza", Kind::kList,
     "-L -I -P -d --max-depth -w --exclude"},
    {"dir get-childitem gci", Kind::kList,
     "-path -literalpath -filter -include -exclude -depth", OptionStyle::kLong},
    {"wc stat file sort uniq cut paste column md5sum sha1sum sha256sum shasum "
     "cksum diff cmp comm fold fmt expand xmllint pygmentize get-item "
     "test-path get-filehash measure-object cloc tokei",
     Kind::kDigest, "-d -f -t -k -c -w -s"},
    {"jq yq", Kind::kScripted, "--indent -f --from-file"},
    {"tr where-object sort-object foreach-object format-table format-list "
     "out-string convertfrom-json convertto-json",
     Kind::kPipe, "", OptionStyle::kLong},

    {"touch rmdir truncate shred mkfifo set-content add-content out-file "
     "clear-content",
     Kind::kWriteAll,
     "-s -d -t -r -value -path -literalpath -filepath -encoding",
     OptionStyle::kLong},
    {"mkdir md", Kind::kWriteAll, "-m"},
    {"rm mv del erase ri rd unlink remove-item move-item rename-item ren",
     Kind::kWriteTree, "-path -literalpath -destination -newname",
     OptionStyle::kLong},
    {"new-item ni", Kind::kWriteAll, "-path -itemtype -name -value",
     OptionStyle::kLong},
    {"cp install ln rsync scp copy xcopy copy-item", Kind::kWriteLast,
     "-e -i -p -P -o --exclude --include -m -path -destination"},
    {"tee tee-object", Kind::kTee},
    {"dd", Kind::kDd},
    {"patch", Kind::kPatch, "-i --input -d --directory -p -o"},
    {"apply_patch applypatch", Kind::kApplyPatch},
    {"unzip tar gunzip gzip bunzip2 xz 7z expand-archive", Kind::kExtract,
     "-C --directory -d -x -f"},

    {"black isort autoflake rustfmt goimports gofumpt dprint swiftformat",
     Kind::kFormat, "-l --line-length -t --target-version --config --profile"},
    {"gofmt", Kind::kFormatIf, "-r", OptionStyle::kShort, 0, "-w"},
    {"prettier", Kind::kFormatIf, "--config --parser", OptionStyle::kShort, 0,
     "--write -w"},
    {"eslint stylelint rubocop", Kind::kFormatIf, "-c --config --ext",
     OptionStyle::kShort, 0, "--fix -a -A"},
    {"clang-format yapf autopep8", Kind::kFormatIf, "--style",
     OptionStyle::kShort, 0, "-i --in-place"},
    {"ruff biome", Kind::kFormatIf, "--config --select --ignore",
     OptionStyle::kShort, 1, "--fix --write --apply --unsafe-fixes"},

    {"curl wget", Kind::kFetch,
     "-X --request -d --data --data-raw --data-binary --data-urlencode --json "
     "-F --form -T --upload-file -o --output -O --output-document -H --header "
     "-u --user -A --user-agent -m --max-time --connect-timeout -w --write-out "
     "-e -b -c --retry -x --proxy"},
    {"iwr irm invoke-webrequest invoke-restmethod", Kind::kFetch,
     "-uri -method -outfile -body -headers -useragent -timeoutsec",
     OptionStyle::kLong},

    {"git", Kind::kGit},
    {"cd pushd popd chdir set-location sl push-location", Kind::kCd},
    {"sudo doas", Kind::kWrapper, "-u -g -h -C -D"},
    {"env", Kind::kWrapper, "-u -C -S"},
    {"time nohup command exec builtin caffeinate setsid then winpty",
     Kind::kWrapper, "-f -o"},
    {"nice ionice stdbuf chrt taskset", Kind::kWrapper, "-n -c -i -o -e"},
    {"timeout gtimeout", Kind::kWrapper, "-s -k --signal --kill-after",
     OptionStyle::kShort, 1},
    {"npx bunx pnpx uvx", Kind::kWrapper, "-p --package"},
    {"uv poetry pipenv hatch rye bundle", Kind::kWrapper,
     "--with --python -p --project --directory", OptionStyle::kShort, 1},
    {"xargs parallel", Kind::kXargs, "-n -I -P -L -d -s -a -J"},
    {"bash sh zsh dash ksh ash fish cmd powershell pwsh", Kind::kShell},
    {"python python2 python3 py node nodejs perl ruby deno bun php tsx ts-node "
     "lua ipython Rscript",
     Kind::kProgram},
    {"ssh", Kind::kSsh,
     "-p -i -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w"},
    {"docker podman", Kind::kDocker,
     "-e --env -u --user -w --workdir --env-file -f --file -p"},
    {"make gmake just task mise npm pnpm yarn cargo go invoke nox tox rake "
     "gradle gradlew mvn dotnet swift",
     Kind::kRunner},

    {"open", Kind::kOpen},
    {"goto scroll_down scroll_up", Kind::kScroll},
    {"edit insert", Kind::kEditOpen},
    {"create", Kind::kWriteAll},
    {"search_file search_dir find_file", Kind::kSearchIn},
};

const CommandSpec* Find(absl::string_view name) {
  for (const CommandSpec& spec : kCommands) {
    if (IsOneOfWords(name, spec.names)) return &spec;
  }
  return nullptr;
}

}  // namespace

absl::string_view CommandName(absl::string_view word) {
  const std::size_t slash = word.find_last_of("/\\");
  if (slash != absl::string_view::npos) word.remove_prefix(slash + 1);
  if (!absl::ConsumeSuffix(&word, ".exe")) absl::ConsumeSuffix(&word, ".cmd");
  return word;
}

const CommandSpec& CommandNamed(absl::string_view name) {
  constexpr std::size_t kNameBytesMax = 32;
  name = CommandName(name);
  if (name.empty() || name.size() > kNameBytesMax) return kUnknownCommand;
  const CommandSpec* spec = Find(name);
  if (spec == nullptr) spec = Find(absl::AsciiStrToLower(name));
  return spec == nullptr ? kUnknownCommand : *spec;
}

}  // namespace clerestory
