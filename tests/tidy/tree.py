# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files that the checks read."""

import functools
import os
import re
import subprocess

_COMMENT_OR_LITERAL = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
    |R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
    |"(?:\\.|[^"\\\n])*"
    |(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'
    """,
    re.DOTALL | re.VERBOSE,
)

_TEXT = (".cc", ".h", ".proto", ".py", ".sh", ".txt", ".md", ".yaml", ".yml", ".json")


class Tree:
    """A folder of files. In a clone of git, the files that git knows or would
    add; elsewhere, all of them."""

    def __init__(self, root: str):
        self._root = root
        self.files = sorted(self._list())

    def _list(self) -> list[str]:
        if os.path.exists(os.path.join(self._root, ".git")):
            listed = subprocess.run(
                ["git", "ls-files", "-z", "-co", "--exclude-standard"],
                cwd=self._root,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split("\0")
            return [p for p in set(listed) if p and self.is_file(p)]
        return [
            os.path.relpath(os.path.join(folder, name), self._root)
            for folder, _, names in os.walk(self._root)
            for name in names
        ]

    def is_file(self, path: str) -> bool:
        return os.path.isfile(os.path.join(self._root, path))

    def exists(self, path: str) -> bool:
        """Whether `path` is a file of the tree, or a folder of one."""
        path = os.path.normpath(path)
        return path == "." or any(
            file == path or file.startswith(path + "/") for file in self.files
        )

    @functools.cache
    def text(self, path: str) -> str:
        with open(
            os.path.join(self._root, path), encoding="utf-8", errors="replace"
        ) as file:
            return file.read()

    def of(self, *extensions: str) -> list[str]:
        return [path for path in self.files if path.endswith(extensions)]

    def cpp(self) -> list[str]:
        return self.of(".cc", ".h")

    def scripts(self) -> list[str]:
        """Programs in Python or for a shell, by their name or first line."""
        return [
            path
            for path in self.files
            if path.endswith((".py", ".sh"))
            or ("." not in os.path.basename(path) and self.text(path)[:2] == "#!")
        ]

    def texts(self) -> list[str]:
        """What people wrote: no fixtures."""
        scripts = set(self.scripts())
        return [
            path
            for path in self.files
            if not path.startswith("tests/testdata/")
            and (path.endswith(_TEXT) or path in scripts or path.startswith(".ci/"))
        ]

    @functools.cache
    def code(self, path: str) -> str:
        """The text of a C++ file without comments and literals, each line where
        it was."""
        return _COMMENT_OR_LITERAL.sub(
            lambda match: ("" if match["comment"] else '""')
            + "\n" * match[0].count("\n"),
            self.text(path),
        )

    @functools.cache
    def includes(self, path: str) -> list[tuple[int, str]]:
        """Line and name of each header that a C++ file includes."""
        text = _COMMENT_OR_LITERAL.sub(
            lambda match: "\n" * match[0].count("\n")
            if match["comment"]
            else match[0],
            self.text(path),
        )
        return [
            (line_of(text, match.start(1)), match[1])
            for match in re.finditer(
                r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', text, re.MULTILINE
            )
        ]


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def is_test(path: str) -> bool:
    return path.startswith("tests/") or path.endswith(("_test.cc", "_bench.cc"))
