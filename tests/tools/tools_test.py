# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the tests are run and counted with."""

import os
import tempfile
import unittest

import count_junit
import fuzz
import serving_address
import tidy_sources


class CountJUnitTest(unittest.TestCase):
    def test_ctest_counts_what_could_not_start_as_failed(self):
        counts = count_junit.count(
            """<testsuite name="(empty)" tests="6">
            <testcase name="a.Passes" classname="a.Passes" status="run"/>
            <testcase name="a.Fails" classname="a.Fails" status="fail">
              <failure message=""/></testcase>
            <testcase name="a.Skips" classname="a.Skips" status="notrun">
              <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
            <testcase name="a.Disabled" classname="a" status="disabled"/>
            <testcase name="b_NOT_BUILT" classname="b_NOT_BUILT" status="notrun">
              <skipped message="Unable to find executable"/></testcase>
            <testcase name="a.P/0  # GetParam() = 4-byte object"
              classname="a.P/0  # GetParam() = 4-byte object" status="fail"/>
            </testsuite>"""
        )
        self.assertEqual(counts, (1, ["a.Fails", "b_NOT_BUILT", "a.P/0"], 2))

    def test_pytest_counts_errors_as_failed(self):
        counts = count_junit.count(
            """<testsuites><testsuite><testcase classname="e2e" name="a"/>
            <testcase classname="e2e" name="b"><error/></testcase>
            <testcase classname="e2e" name="c"><skipped type="pytest.skip"/>
            </testcase></testsuite></testsuites>"""
        )
        self.assertEqual(counts, (1, ["e2e.b"], 1))

    def test_output_that_xml_forbids_is_no_matter(self):
        counts = count_junit.count(
            '<testsuite><testcase name="a"><system-out>\x1b[1m\x00&#x1B;&#0;'
            "&#10;&#x20;</system-out></testcase></testsuite>"
        )
        self.assertEqual(counts, (1, [], 0))

    def test_file_cut_short_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cut.xml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('<testsuite><testcase name="a"/>')
            counts = count_junit.count_file(path)
        self.assertEqual((counts.passed, len(counts.failed)), (0, 1))

    def test_file_that_is_not_there_counts_nothing(self):
        self.assertEqual(count_junit.count_file("no/such/file.xml"), (0, [], 0))


class FuzzTest(unittest.TestCase):
    def test_executions_are_those_of_the_last_statistics(self):
        self.assertEqual(
            fuzz.executions_of(
                "#2 INITED cov: 9\nstat::number_of_executed_units: 7\n"
                "stat::number_of_executed_units: 1234\nstat::peak_rss_mb: 61\n"
            ),
            1234,
        )
        self.assertEqual(fuzz.executions_of("killed"), 0)


class ServingAddressTest(unittest.TestCase):
    def test_found_among_other_lines(self):
        lines = ["# words\n", "[1]\n", '{"event": "start", "address": "no"}\n']
        self.assertIsNone(serving_address.address_in(lines))
        lines.append('{"time": 1, "address": "[::1]:50051", "event": "serving"}\n')
        self.assertEqual(serving_address.address_in(lines), "[::1]:50051")


class TidySourcesTest(unittest.TestCase):
    _BUILT = {
        "a/x.cc": '#include "a/x.h"\n',
        "a/x_test.cc": '#include "a/x.h"\n#include "a/only_header.h"\n',
        "a/y.cc": "",
    }

    def test_changed_source(self):
        self.assertEqual(
            tidy_sources.choose(self._BUILT, ["a/y.cc", "a/not_built.cc"]), ["a/y.cc"]
        )

    def test_changed_header_is_read_by_its_own_source(self):
        self.assertEqual(tidy_sources.choose(self._BUILT, ["a/x.h"]), ["a/x.cc"])

    def test_changed_header_without_source_is_read_by_one_that_includes_it(self):
        self.assertEqual(
            tidy_sources.choose(self._BUILT, ["a/only_header.h"]), ["a/x_test.cc"]
        )


if __name__ == "__main__":
    unittest.main()
