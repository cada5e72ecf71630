# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The include graph against layers.txt."""

import fnmatch
import os
from typing import NamedTuple

from tree import Tree, is_test

LAYERS = "tests/tidy/layers.txt"


class Row(NamedTuple):
    # Each maps what may be included to the files that may, with commas, or to "".
    folders: dict[str, str]
    third_parties: dict[str, str]
    tests: dict[str, str]

    def allows(self, names: str, wanted: str, path: str) -> bool:
        allowed = getattr(self, names)
        for name in (wanted, "*"):
            if name in allowed:
                tested = os.path.basename(path).replace("_test.cc", ".cc")
                return not allowed[name] or tested in allowed[name].split(",")
        return False


class Layers(NamedTuple):
    rows: dict[str, Row]
    headers: dict[str, list[str]]  # Patterns, by third party.


def _cell(text: str) -> dict[str, str]:
    return {
        name: file for name, _, file in (word.partition("@") for word in text.split())
    }


def parse(text: str) -> Layers:
    """Raises ValueError with the line that is none."""
    layers = Layers({}, {})
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line.startswith("header "):
            _, name, *patterns = line.split()
            layers.headers[name] = patterns
        elif line:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 4 or cells[0] in layers.rows:
                raise ValueError(f"{LAYERS}:{number}: not a row, or a second one")
            layers.rows[cells[0]] = Row(*(_cell(cell) for cell in cells[1:]))
    return layers


def _third_party(layers: Layers, header: str) -> str:
    for name, patterns in layers.headers.items():
        if any(fnmatch.fnmatchcase(header, pattern) for pattern in patterns):
            return name
    return ""


def _problem(tree: Tree, layers: Layers, path: str, header: str) -> str:
    """What is wrong with `path` including `header`, or ""."""
    folder = os.path.dirname(path)
    row = layers.rows[folder]
    tested = is_test(path)
    if header.startswith(("server/", "client/", "tests/", "proto/")):
        if header not in tree.files:
            return f"there is no file {header}"
        target = os.path.dirname(header)
        if target == folder or (tested and target == "tests/support"):
            return ""
        if row.allows("folders", target, path):
            return ""
        if tested and row.allows("tests", target, path):
            return ""
        return f"{folder} may not include {target}"
    owner = _third_party(layers, header)
    if not owner:
        if "/" in header or "." in header:
            return f"whose header is {header}? See the end of {LAYERS}"
        return ""  # The standard library.
    if owner == "absl" or (owner == "gtest" and tested):
        return ""
    names = "folders" if owner.startswith("proto/") else "third_parties"
    if row.allows(names, owner, path):
        return ""
    if tested and row.allows("tests", owner, path):
        return ""
    return f"{path} may not see {owner}"


def check_includes(tree: Tree) -> list[str]:
    layers = parse(tree.text(LAYERS))
    problems = []
    for path in tree.cpp():
        if os.path.dirname(path) not in layers.rows:
            problems.append(f"{path}:1: its folder has no row in {LAYERS}")
            continue
        for line, header in tree.includes(path):
            problem = _problem(tree, layers, path, header)
            if problem:
                problems.append(f"{path}:{line}: {problem}")
    return problems


def check_table(tree: Tree) -> list[str]:
    """The table itself: it names what it knows, and nothing points back."""
    layers = parse(tree.text(LAYERS))
    problems = []
    for folder, row in layers.rows.items():
        for target in [*row.folders, *row.tests]:
            if target not in layers.rows and target not in layers.headers:
                if target != "*":
                    problems.append(f"{LAYERS}: {folder}: no row for {target}")
        for owner in row.third_parties:
            if owner not in layers.headers and owner != "*":
                problems.append(f"{LAYERS}: {folder}: no header of {owner}")
        reached = set()
        queue = [target for target in row.folders if target in layers.rows]
        while queue:
            target = queue.pop()
            if target not in reached:
                reached.add(target)
                queue += [t for t in layers.rows[target].folders if t in layers.rows]
        if folder in reached:
            problems.append(f"{LAYERS}: {folder}: includes itself over others")
    return problems
