# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""What must hold of the tree and no compiler sees. Each check takes a Tree and
returns its problems, each as `FILE:LINE: what is wrong`."""

import os
import re

from tree import Tree, is_test, line_of

LINES_MAX = 500

# What feeds a view, or money.
_HEART = tuple(
    f"server/{name}/" for name in "model formats cost policy view store".split()
)


def _matches(pattern: str, text: str) -> list[tuple[int, str]]:
    return [(line_of(text, m.start()), m[0]) for m in re.finditer(pattern, text)]


# --- dead files --------------------------------------------------------------


def _cmake_code(tree: Tree, path: str) -> str:
    return re.sub(r"#.*", "", tree.text(path))


def _listed(tree: Tree, extensions: str) -> set[str]:
    """The files that a CMakeLists.txt names."""
    listed = set()
    for cmake in tree.of("CMakeLists.txt"):
        for name in re.findall(
            rf"[\w./-]+\.(?:{extensions})\b", _cmake_code(tree, cmake)
        ):
            listed.add(
                os.path.normpath(os.path.join(os.path.dirname(cmake), name.lstrip("/")))
            )
    return listed


def check_sources_are_built(tree: Tree) -> list[str]:
    listed = _listed(tree, "cc|proto")
    return [
        f"{path}:1: no CMakeLists.txt lists it"
        for path in tree.of(".cc", ".proto")
        if path not in listed
    ]


def check_folders_are_built(tree: Tree) -> list[str]:
    problems = []
    for path in tree.of("CMakeLists.txt"):
        folder = os.path.dirname(path)
        parent, found = folder, not folder
        while parent and not found:
            parent = os.path.dirname(parent)
            cmake = os.path.join(parent, "CMakeLists.txt")
            name = re.escape(os.path.relpath(folder, parent or "."))
            found = cmake in tree.files and bool(
                re.search(
                    rf"add_subdirectory\(\s*{name}\s*\)", _cmake_code(tree, cmake)
                )
            )
        if not found:
            problems.append(f"{path}:1: no add_subdirectory reaches it")
    return problems


def check_headers_are_used(tree: Tree) -> list[str]:
    """A header of the product must be reached from a source of the product."""

    def reach(sources: list[str]) -> set[str]:
        reached: set[str] = set()
        while sources:
            for _, header in tree.includes(sources.pop()):
                if header in tree.files and header not in reached:
                    reached.add(header)
                    sources.append(header)
        return reached

    sources = tree.of(".cc")
    of_product = reach([path for path in sources if not is_test(path)])
    of_all = reach(sources)
    return [
        f"{path}:1: {'no source' if is_test(path) else 'nothing but tests'} includes it"
        for path in tree.of(".h")
        if path not in (of_all if is_test(path) else of_product)
    ]


# --- banned calls ------------------------------------------------------------


def _banned(tree: Tree, pattern: str, why: str, homes=(), where=None) -> list[str]:
    """Problems where the code of a C++ file, but for `homes`, has `pattern`."""
    return [
        f"{path}:{line}: {found.strip()}: {why}"
        for path in tree.cpp()
        if path not in homes and (where is None or where(path))
        for line, found in _matches(pattern, tree.code(path))
    ]


def check_string_view(tree: Tree) -> list[str]:
    return _banned(
        tree,
        r"\bstd::(?:u8|w)?string_view\b|#\s*include\s*<string_view>",
        "absl::string_view, which Debian's absl takes",
        homes=("server/json/document.cc",),
    )


def check_mutex(tree: Tree) -> list[str]:
    return _banned(
        tree,
        r"\bstd::(?:(?:shared_|recursive_|timed_)*mutex|condition_variable(?:_any)?"
        r"|(?:lock|shared_lock|unique_lock|scoped_lock|lock_guard)\b)"
        r"|\babsl::(?:Mutex|MutexLock|CondVar|Notification|BlockingCounter)\b",
        "clerestory::Mutex, which clang and ThreadSanitizer understand",
        homes=("server/base/mutex.h",),
    )


def check_clock(tree: Tree) -> list[str]:
    return _banned(
        tree,
        r"\babsl::Now\b|\bsystem_clock\b|\bgettimeofday\b|\bclock_gettime\b"
        r"|\bstd::time\b|\btime\((?:nullptr|NULL|0)\)",
        "the time comes from a clerestory::Clock",
        # The second for gRPC, whose deadlines are of this clock.
        homes=("server/base/time.cc", "server/app/app.cc"),
    )


def check_type_names(tree: Tree) -> list[str]:
    """Two types of one name in one namespace are linked as one, whatever they
    hold, and write over each other's memory."""
    first: dict[tuple[str, str], str] = {}
    problems = []
    for path in tree.cpp():
        if not path.endswith(".h") or not path.startswith(("server/", "client/")):
            continue
        text = tree.text(path)
        namespace = "::".join(re.findall(r"^namespace ([\w:]+) \{", text, re.M))
        for line, match in _matches(
            r"(?m)^(?:struct|class|enum class) \w+(?: final)?(?: : [^;{]*)? \{", text
        ):
            name = re.sub(r"^(?:struct|enum class|class) ", "", match).split()[0]
            other = first.setdefault((namespace, name), path)
            if other != path:
                problems.append(f"{path}:{line}: {other} has a type {name}, too")
    return problems


def check_sleep(tree: Tree) -> list[str]:
    """Tests wait for what they wait for; so does a server. A client may keep
    the pauses of a transcript."""
    return _banned(
        tree,
        r"\bsleep_(?:for|until)\b|\bu?sleep\(|\bnanosleep\b|\babsl::SleepFor\b",
        "wait for what you wait for",
        where=lambda path: path.startswith("server/") or is_test(path),
    )


def check_floating_point(tree: Tree) -> list[str]:
    return _banned(
        tree,
        r"\b(?:float|double)\b",
        "no floating point in what feeds a view or money",
        where=lambda path: path.startswith(_HEART) and not is_test(path),
    )


def check_randomness(tree: Tree) -> list[str]:
    return _banned(
        tree,
        r"\bs?rand\(|\bstd::random_device\b|\bstd::mt19937\w*|\babsl::\w*BitGen\w*",
        "nothing random in what feeds a view or money",
        where=lambda path: path.startswith(_HEART) and not is_test(path),
    )


_HASHED = re.compile(r"\b(?:(?:flat|node)_hash|unordered)_(?:multi)?(?:map|set)\s*<")


def _hashed_names(code: str) -> set[str]:
    """The names of variables, members and functions of a hashed type."""
    names = set()
    for match in _HASHED.finditer(code):
        depth, at = 1, match.end()
        while depth and at < len(code):
            depth += {"<": 1, ">": -1}.get(code[at], 0)
            at += 1
        name = re.match(r"[\s&*]*(?:const\b)?[\s&*]*(\w+)", code[at:])
        if name:
            names.add(name[1])
    return names


def check_hashed_iteration(tree: Tree) -> list[str]:
    """A heuristic: by the names that are declared in a file and its header."""
    problems = []
    for path in tree.cpp():
        if not path.startswith(_HEART) or is_test(path):
            continue
        code = tree.code(path)
        header = path.removesuffix(".cc") + ".h"
        names = _hashed_names(code)
        if header in tree.files:
            names |= _hashed_names(tree.code(header))
        for name in sorted(names):
            for line, _ in _matches(
                rf"\bfor\s*\([^;{{}}]*?:\s*[^;{{}}]*?\b{name}(?:\(\))?\s*\)"
                rf"|\b{name}(?:\(\))?(?:\.|->)c?begin\(",
                code,
            ):
                problems.append(
                    f"{path}:{line}: {name} is hashed: its order differs between runs"
                )
    return problems


# --- texts -------------------------------------------------------------------


def check_no_leftovers(tree: Tree) -> list[str]:
    pattern = r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b"
    return [
        f"{path}:{line}: {found}: file an issue instead"
        for path in tree.texts()
        for line, found in _matches(pattern, tree.text(path))
    ]


def check_nolint_has_name(tree: Tree) -> list[str]:
    return [
        f"{path}:{line}: name the check that is silenced, and say why"
        for path in tree.cpp()
        for line, _ in _matches(
            r"NOLINT(?:NEXTLINE|BEGIN|END)?\b(?!\([\w,.-]+\))", tree.text(path)
        )
    ]


def _sources(tree: Tree) -> list[str]:
    return [
        path
        for path in tree.cpp() + tree.of(".proto") + tree.scripts()
        if not path.startswith("tests/testdata/")
    ]


def check_length(tree: Tree) -> list[str]:
    return [
        f"{path}:{LINES_MAX + 1}: {lines} lines, of at most {LINES_MAX}"
        for path in _sources(tree) + tree.of("CMakeLists.txt")
        if (lines := tree.text(path).count("\n")) > LINES_MAX
    ]


def check_licence(tree: Tree) -> list[str]:
    problems = []
    for path in _sources(tree):
        mark = "#" if path in tree.scripts() else "//"
        lines = tree.text(path).splitlines()[:3]
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        if lines[:2] != [
            f"{mark} Copyright The Clerestory Authors.",
            f"{mark} SPDX-License-Identifier: Apache-2.0",
        ]:
            problems.append(f"{path}:1: does not begin with the two lines of licence")
    return problems


def check_header_guards(tree: Tree) -> list[str]:
    problems = []
    for path in tree.of(".h"):
        guard = "CLERESTORY_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
        text = tree.text(path)
        if f"\n#ifndef {guard}\n#define {guard}\n" not in text or not text.endswith(
            f"\n#endif  // {guard}\n"
        ):
            problems.append(f"{path}:1: is not guarded by {guard}")
    return problems


# --- the catalogue of errors -------------------------------------------------

REASON_H = "server/base/reason.h"
ERRORS_PROTO = "proto/clerestory/v1/errors.proto"


def check_reasons(tree: Tree) -> list[str]:
    """enum class Reason is ErrorReason, value for value."""
    body = re.search(r"enum class Reason \{(.*?)\}", tree.code(REASON_H), re.DOTALL)
    ours = {
        int(value): re.sub(r"(?<!^)([A-Z])", r"_\1", name).upper()
        for name, value in re.findall(r"\bk(\w+)\s*=\s*(\d+)", body[1] if body else "")
    }
    body = re.search(
        r"\benum ErrorReason \{(.*?)\n\}", tree.code(ERRORS_PROTO), re.DOTALL
    )
    theirs = {
        int(value): name.removeprefix("ERROR_REASON_")
        for name, value in re.findall(r"\b(\w+)\s*=\s*(\d+)", body[1] if body else "")
    }
    if not ours or not theirs:
        return [f"{ERRORS_PROTO}:1: no values in Reason, or none in ErrorReason"]
    return [
        f"{REASON_H}:1: {value} is {ours.get(value, 'nothing')} here and"
        f" {theirs.get(value, 'nothing')} in {ERRORS_PROTO}"
        for value in sorted(ours.keys() | theirs.keys())
        if ours.get(value) != theirs.get(value)
    ]


# --- documents ---------------------------------------------------------------


def _prose(text: str) -> str:
    """Markdown without code, each line where it was."""
    text = re.sub(
        r"^(```+|~~~+).*?^\1`*$",
        lambda match: "\n" * match[0].count("\n"),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    return re.sub(r"`[^`\n]+`", "", text)


def _anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as forges name them."""
    anchors: set[str] = set()
    fenced = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for title in re.findall(r"^#+ +(.*?)[ #]*$", fenced, re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        anchor, count = slug, 0
        while anchor in anchors:
            count += 1
            anchor = f"{slug}-{count}"
        anchors.add(anchor)
    return anchors


def check_links(tree: Tree) -> list[str]:
    problems = []
    for path in tree.of(".md"):
        text = _prose(tree.text(path))
        for match in re.finditer(
            r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*<?(\S+?)>?\s*$",
            text,
            re.MULTILINE,
        ):
            link = match[1] or match[2]
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            target, _, anchor = link.partition("#")
            file = (
                os.path.normpath(os.path.join(os.path.dirname(path), target))
                if target
                else path
            )
            if not tree.exists(file):
                problem = f"there is no {file}"
            elif anchor and file.endswith(".md"):
                if anchor in _anchors(tree.text(file)):
                    continue
                problem = f"{file} has no heading #{anchor}"
            else:
                continue
            problems.append(f"{path}:{line_of(text, match.start())}: {problem}")
    return problems


def check_hosts_and_paths(tree: Tree) -> list[str]:
    """Where packages come from, and where a machine keeps its things, is for
    each machine to say."""
    hosts = (
        r"registry[.]npmjs|\bpypi[.]org|pythonhosted[.]org|deb[.]debian[.]org"
        r"|snapshot[.]debian[.]org|\bcrates[.]io|proxy[.]golang[.]org"
        r"|repo1?[.]maven"
    )
    paths = r"(?<![\w.~$}*/-])/(?:work|root|opt/wheels|home/\w+|Users/\w+)(?=[/\s'\"`:,)]|$)"
    return [
        f"{path}:{line}: {found}: a registry, or a path of one machine"
        for path in tree.texts()
        for line, found in _matches(f"(?m:{hosts}|{paths})", tree.text(path))
    ]
