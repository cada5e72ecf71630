# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The checks of rules.py and layers.py on this tree, each a test."""

import os
import unittest

import layers
import rules
from tree import Tree


class TreeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        here = os.path.dirname(os.path.abspath(__file__))
        cls.tree = Tree(os.path.dirname(os.path.dirname(here)))

    def expect_none(self, problems):
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_includes_obey_the_layers(self):
        self.expect_none(layers.check_includes(self.tree))

    def test_table_of_layers_has_no_cycle(self):
        self.expect_none(layers.check_table(self.tree))

    def test_every_source_is_built(self):
        self.expect_none(rules.check_sources_are_built(self.tree))

    def test_every_folder_is_built(self):
        self.expect_none(rules.check_folders_are_built(self.tree))

    def test_every_header_is_used(self):
        self.expect_none(rules.check_headers_are_used(self.tree))

    def test_string_view_is_that_of_absl(self):
        self.expect_none(rules.check_string_view(self.tree))

    def test_mutex_is_ours(self):
        self.expect_none(rules.check_mutex(self.tree))

    def test_time_comes_from_a_clock(self):
        self.expect_none(rules.check_clock(self.tree))

    def test_types_of_a_namespace_have_names_of_their_own(self):
        self.expect_none(rules.check_type_names(self.tree))

    def test_nothing_sleeps(self):
        self.expect_none(rules.check_sleep(self.tree))

    def test_heart_has_no_floating_point(self):
        self.expect_none(rules.check_floating_point(self.tree))

    def test_heart_has_nothing_random(self):
        self.expect_none(rules.check_randomness(self.tree))

    def test_heart_iterates_over_nothing_hashed(self):
        self.expect_none(rules.check_hashed_iteration(self.tree))

    def test_no_leftovers(self):
        self.expect_none(rules.check_no_leftovers(self.tree))

    def test_silenced_checks_are_named(self):
        self.expect_none(rules.check_nolint_has_name(self.tree))

    def test_no_file_is_too_long(self):
        self.expect_none(rules.check_length(self.tree))

    def test_every_source_has_its_licence(self):
        self.expect_none(rules.check_licence(self.tree))

    def test_every_header_is_guarded_by_its_path(self):
        self.expect_none(rules.check_header_guards(self.tree))

    def test_reasons_are_those_of_the_proto(self):
        if rules.ERRORS_PROTO not in self.tree.files:
            self.skipTest(f"there is no {rules.ERRORS_PROTO}")
        self.expect_none(rules.check_reasons(self.tree))

    def test_every_link_leads_somewhere(self):
        self.expect_none(rules.check_links(self.tree))

    def test_no_registry_and_no_path_of_one_machine(self):
        self.expect_none(rules.check_hosts_and_paths(self.tree))


if __name__ == "__main__":
    unittest.main()
