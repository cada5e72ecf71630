# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chooses what clang-tidy must read to have seen some changed files.

usage: tidy_sources.py COMPILE_COMMANDS < CHANGED

CHANGED are paths from the current folder, each ended by NUL. Prints the
absolute paths of sources in the compile database, one a line: each changed
source, and for each changed header one source that includes it by itself, its
own if it can be. What the database does not build is left out.
"""

import json
import os
import re
import sys

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def choose(built: dict[str, str], changed: list[str]) -> list[str]:
    """`built` has the text of each built source by its path."""
    chosen = {path for path in changed if path in built}
    for header in changed:
        if not header.endswith(".h"):
            continue
        own = header.removesuffix(".h") + ".cc"
        including = [
            path
            for path, text in sorted(built.items())
            if header in _INCLUDE.findall(text)
        ]
        if own in including:
            chosen.add(own)
        elif including:
            chosen.add(including[0])
    return sorted(chosen)


def main() -> int:
    root = os.getcwd()
    with open(sys.argv[1], encoding="utf-8") as file:
        commands = json.load(file)
    built = {}
    for command in commands:
        path = os.path.join(command["directory"], command["file"])
        relative = os.path.relpath(path, root)
        if relative.startswith(("..", "build/")) or not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            built[relative] = file.read()
    changed = [path for path in sys.stdin.read().split("\0") if path]
    for path in choose(built, changed):
        print(os.path.join(root, path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
