# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests in JUnit's XML, as ctest and pytest write it.

usage: count_junit.py FILE...

Prints the numbers of those that passed, failed and were skipped on one line,
and the names of those that failed on stderr, one a line. A file that is not
there counts nothing; one that cannot be read is one failure.
"""

import os
import re
import sys
from typing import NamedTuple
from xml.etree import ElementTree

# What the output of a test may contain and XML may not.
_NOT_XML = re.compile(
    r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    r"|&\#(?:x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]));",
    re.IGNORECASE,
)


class Counts(NamedTuple):
    passed: int
    failed: list[str]
    skipped: int


def _name(case: ElementTree.Element) -> str:
    name = case.get("name") or "(no name)"
    group = case.get("classname") or ""
    if name == group:
        # ctest's; gtest adds to it how the parameter looks in memory.
        return name.partition("  # GetParam() = ")[0]
    return f"{group}.{name}" if group else name


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if case.get("status") == "notrun":
        # ctest's word for a test that skipped itself, and for one that could
        # not be started: a program that is not built is no skipped test.
        reason = "" if skipped is None else skipped.get("message") or ""
        return "skipped" if reason.startswith("SKIP_") else "failed"
    if skipped is not None or case.get("status") == "disabled":
        return "skipped"
    return "passed" if case.get("status") in (None, "run") else "failed"


def count(text: str) -> Counts:
    """Raises ElementTree.ParseError if `text` is no XML."""
    passed, failed, skipped = 0, [], 0
    for case in ElementTree.fromstring(_NOT_XML.sub("?", text)).iter("testcase"):
        outcome = _outcome(case)
        if outcome == "failed":
            failed.append(_name(case))
        elif outcome == "skipped":
            skipped += 1
        else:
            passed += 1
    return Counts(passed, failed, skipped)


def count_file(path: str) -> Counts:
    if not os.path.exists(path):
        return Counts(0, [], 0)
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        return count(text)
    except ElementTree.ParseError as error:
        return Counts(0, [f"{path}: not JUnit's XML: {error}"], 0)


def main() -> int:
    counts = [count_file(path) for path in sys.argv[1:]]
    for one in counts:
        for name in one.failed:
            print(name, file=sys.stderr)
    print(
        sum(one.passed for one in counts),
        sum(len(one.failed) for one in counts),
        sum(one.skipped for one in counts),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
