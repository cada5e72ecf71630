# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs unittest's cases and writes JUnit's XML, with Python alone.

usage: run_unittest.py --junit FILE FOLDER...

The cases are in `check_*.py` and `*_test.py` of the folders. Exits with 1 if
one failed, or if there was none.
"""

import argparse
import os
import sys
import unittest
from xml.etree import ElementTree


class JUnitResult(unittest.TextTestResult):
    """Keeps one <testcase> for each test."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.suite = ElementTree.Element("testsuite")

    def _add(self, test, outcome=None, text=""):
        group, _, name = test.id().rpartition(".")
        case = ElementTree.SubElement(
            self.suite, "testcase", classname=group, name=name
        )
        if outcome:
            ElementTree.SubElement(case, outcome).text = text

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._add(test, "failure", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self._add(test, "error", str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skipped", reason)


def load(folders: list[str]) -> unittest.TestSuite:
    suite = unittest.TestSuite()
    for folder in folders:
        sys.path.insert(0, folder)
        for name in sorted(os.listdir(folder)):
            module, extension = os.path.splitext(name)
            if extension == ".py" and (
                module.startswith("check_") or module.endswith("_test")
            ):
                suite.addTests(unittest.defaultTestLoader.loadTestsFromName(module))
    return suite


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--junit", required=True)
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    runner = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, resultclass=JUnitResult
    )
    result = runner.run(load([os.path.abspath(f) for f in arguments.folders]))
    ElementTree.ElementTree(result.suite).write(arguments.junit)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
