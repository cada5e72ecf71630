# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each check finds what it is for: a small tree in order has no problems, and
with one thing planted in it exactly that one."""

import os
import tempfile
import unittest

import layers
import rules
from tree import Tree

_LICENCE = (
    "{0} Copyright The Clerestory Authors.\n{0} SPDX-License-Identifier: Apache-2.0\n"
)


def cpp(body: str) -> str:
    return _LICENCE.format("//") + "\n" + body


def header(guard: str, body: str = "") -> str:
    return cpp(f"#ifndef {guard}\n#define {guard}\n{body}\n#endif  // {guard}\n")


_IN_ORDER = {
    "CMakeLists.txt": "add_subdirectory(server)\nadd_subdirectory(proto)\n",
    "README.md": "# Some words\n\n[view](server/view/view.cc) [top](#some-words)\n"
    "[all](server) [out](https://example.com/x)\n\n```\n[no](such-file)\n```\n",
    "run.sh": "#!/bin/sh\n" + _LICENCE.format("#"),
    "proto/CMakeLists.txt": "protos(clerestory/v1/errors.proto)\n",
    rules.ERRORS_PROTO: cpp(
        "// All.\nenum ErrorReason {\n  // Never sent.\n"
        "  ERROR_REASON_UNSPECIFIED = 0;\n\n  // Field 7 = bad.\n"
        "  ERROR_REASON_FIELD_INVALID = 1;\n}\n"
    ),
    "server/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(view)\n",
    "server/base/CMakeLists.txt": "library(SOURCES time.cc)\n",
    rules.REASON_H: header(
        "CLERESTORY_SERVER_BASE_REASON_H_",
        "enum class Reason {\n  kUnspecified = 0,\n  kFieldInvalid = 1,\n};\n",
    ),
    "server/base/time.cc": cpp(
        '#include <chrono>\n\n#include "server/base/reason.h"\n'
        "auto now = std::chrono::system_clock::now();\n"
    ),
    "server/view/CMakeLists.txt": "library(SOURCES view.cc)\ntest(view_test.cc)\n",
    "server/view/view.h": header(
        "CLERESTORY_SERVER_VIEW_VIEW_H_",
        '#include "absl/container/flat_hash_map.h"\n'
        "absl::flat_hash_map<int, std::map<int, int>> masks_;\n",
    ),
    "server/view/view.cc": cpp(
        '#include "server/view/view.h"\n\n#include <vector>\n\n'
        '#include "server/base/reason.h"\n'
        "// double, std::mutex and sleep_for(1) are but words here\n"
        'const char* words = "std::string_view\\" absl::Now()"; int n = 1\'000;\n'
        "for (int i : sorted) masks_.find(i);\n"
    ),
    "server/view/view_test.cc": cpp(
        "#include <gtest/gtest.h>\n\n"
        '#include "server/view/view.h"\n#include "tests/support/fake.h"\ndouble x;\n'
    ),
    "tests/support/fake.h": header("CLERESTORY_TESTS_SUPPORT_FAKE_H_"),
    "tests/testdata/session.json": '{"path": "/ro' 'ot/x", "text": "TO' 'DO"}\n',
    layers.LAYERS: "server/base | | |\nserver/view | server/base | simdjson@json.cc |\n"
    "tests/support | * | * |\nheader absl absl/*\nheader gtest gtest/*\n"
    "header simdjson simdjson.h\n",
}


class ChecksTest(unittest.TestCase):
    def problems(self, check, changes=None) -> list[str]:
        """What `check` finds when the tree has also `changes`."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in (_IN_ORDER | (changes or {})).items():
                if text is not None:
                    path = os.path.join(root, path)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
            return check(Tree(root))

    def expect(self, check, planted: dict, *wanted: str):
        """`check` finds each of `wanted` in a line of its own, and no more."""
        self.assertEqual(self.problems(check), [])
        problems = self.problems(check, planted)
        self.assertEqual(len(problems), len(wanted), problems)
        for problem, part in zip(problems, wanted):
            self.assertIn(part, problem)

    def expect_in_view(self, check, code: str, found: str):
        """`check` finds `code` in server/view, at its place."""
        text = _IN_ORDER["server/view/view.cc"]
        place = f"server/view/view.cc:{text.count(chr(10)) + 1}: {found}"
        self.expect(check, {"server/view/view.cc": text + code + "\n"}, place)

    def test_include_of_a_higher_layer(self):
        self.expect(
            layers.check_includes,
            {"server/base/time.cc": cpp('#include "server/view/view.h"\n')},
            "server/base/time.cc:4: server/base may not include server/view",
        )

    def test_include_of_a_third_party_by_another_file(self):
        self.expect(
            layers.check_includes,
            {
                "server/view/json.cc": cpp("#include <simdjson.h>\n"),
                "server/view/json_test.cc": cpp("#include <simdjson.h>\n"),
                "server/view/view.cc": cpp("#include <simdjson.h>\n"),
            },
            "server/view/view.cc may not see simdjson",
        )

    def test_include_of_gtest_by_the_product(self):
        self.expect(
            layers.check_includes,
            {"server/view/view.cc": cpp("#include <gtest/gtest.h>\n")},
            "server/view/view.cc may not see gtest",
        )

    def test_include_of_test_support_by_the_product(self):
        self.expect(
            layers.check_includes,
            {"server/view/view.cc": cpp('#include "tests/support/fake.h"\n')},
            "server/view may not include tests/support",
        )

    def test_include_of_an_unknown_library(self):
        self.expect(
            layers.check_includes,
            {"server/view/view.cc": cpp("#include <boost/any.hpp>\n")},
            "whose header is boost/any.hpp?",
        )

    def test_include_of_a_missing_file(self):
        self.expect(
            layers.check_includes,
            {"server/view/view.cc": cpp('#include "server/view/gone.h"\n')},
            "there is no file server/view/gone.h",
        )

    def test_folder_without_a_layer(self):
        self.expect(
            layers.check_includes,
            {"server/new/a.cc": cpp("")},
            "server/new/a.cc:1: its folder has no row",
        )

    def test_cycle_of_layers(self):
        table = _IN_ORDER[layers.LAYERS].replace("base | |", "base | server/view |", 1)
        self.expect(
            layers.check_table,
            {layers.LAYERS: table},
            "server/base: includes itself",
            "server/view: includes itself",
        )

    def test_layer_that_is_unknown(self):
        table = _IN_ORDER[layers.LAYERS] + "server/app | server/zap | curl |\n"
        self.expect(
            layers.check_table,
            {layers.LAYERS: table},
            "no row for server/zap",
            "no header of curl",
        )

    def test_source_that_is_not_built(self):
        self.expect(
            rules.check_sources_are_built,
            {
                "server/view/dead.cc": cpp(""),
                "server/view/lost_test.cc": cpp(""),
                "server/view/CMakeLists.txt": "library(view.cc)\n"
                "test(view_test.cc)\n# test(lost_test.cc)\n",
            },
            "server/view/dead.cc:1",
            "server/view/lost_test.cc:1",
        )

    def test_folder_that_is_not_built(self):
        self.expect(
            rules.check_folders_are_built,
            {"server/new/CMakeLists.txt": ""},
            "server/new/CMakeLists.txt:1",
        )

    def test_header_that_only_tests_use(self):
        self.expect(
            rules.check_headers_are_used,
            {
                "server/view/view.cc": cpp(""),
                "tests/support/old.h": header("CLERESTORY_TESTS_SUPPORT_OLD_H_"),
            },
            "server/view/view.h:1: nothing but tests",
            "tests/support/old.h:1: no source",
        )

    def test_string_view_of_std(self):
        self.expect_in_view(
            rules.check_string_view, "std::string_view a;", "std::string_view"
        )

    def test_string_view_include(self):
        self.expect_in_view(
            rules.check_string_view, "#include <string_view>", "#include"
        )

    def test_mutex_of_std(self):
        self.expect_in_view(rules.check_mutex, "std::shared_mutex m;", "std::shared_m")

    def test_lock_of_std(self):
        self.expect_in_view(rules.check_mutex, "std::lock_guard l(m);", "std::lock_g")

    def test_mutex_of_absl(self):
        self.expect_in_view(rules.check_mutex, "absl::Mutex m;", "absl::Mutex")

    def test_clock_of_absl(self):
        self.expect_in_view(rules.check_clock, "auto t = absl::Now();", "absl::Now")

    def test_clock_of_std(self):
        self.expect_in_view(
            rules.check_clock, "std::chrono::system_clock::now();", "system_clock"
        )

    def test_sleep(self):
        for call in "std::this_thread::sleep_for(s);", "usleep(1);", "sleep(1);":
            self.expect_in_view(rules.check_sleep, call, "")

    def test_sleep_in_a_test_of_the_client(self):
        sleeping = cpp("std::this_thread::sleep_until(t);\n")
        self.expect(
            rules.check_sleep,
            {"client/cli/replay.cc": sleeping, "client/cli/replay_test.cc": sleeping},
            "client/cli/replay_test.cc:4",
        )

    def test_floating_point(self):
        self.expect_in_view(rules.check_floating_point, "double cost = 0;", "double")

    def test_randomness(self):
        self.expect_in_view(rules.check_randomness, "int n = rand();", "rand(")

    def test_iteration_over_a_hashed_member(self):
        self.expect_in_view(
            rules.check_hashed_iteration,
            "for (const auto& [a, b] : view.masks_) {}",
            "masks_",
        )

    def test_iteration_over_a_hashed_argument(self):
        self.expect_in_view(
            rules.check_hashed_iteration,
            "void F(const std::unordered_set<int>& seen) { use(seen.begin()); }",
            "seen",
        )

    def test_leftover(self):
        self.expect(
            rules.check_no_leftovers,
            {"README.md": "one\nTO" "DO: two\n"},
            "README.md:2",
        )

    def test_silenced_check_without_a_name(self):
        self.expect_in_view(rules.check_nolint_has_name, "int a;  // NOLINT", "name")

    def test_long_file(self):
        self.expect(
            rules.check_length,
            {"server/view/view.cc": "\n" * 501},
            "server/view/view.cc:501: 501 lines",
        )

    def test_missing_licence(self):
        self.expect(
            rules.check_licence,
            {"a.py": "import os\n", "b": "#!/bin/sh\n", "server/view/view.cc": "\n"},
            "server/view/view.cc:1",
            "a.py:1",
            "b:1",
        )

    def test_wrong_guard(self):
        self.expect(
            rules.check_header_guards,
            {"server/view/view.h": header("CLERESTORY_VIEW_H_")},
            "CLERESTORY_SERVER_VIEW_VIEW_H_",
        )

    def test_reason_that_the_proto_has_not(self):
        text = _IN_ORDER[rules.REASON_H].replace("};", "  kStoreFull = 2,\n};")
        self.expect(
            rules.check_reasons,
            {rules.REASON_H: text},
            "2 is STORE_FULL here and nothing in",
        )

    def test_reason_of_another_name(self):
        text = _IN_ORDER[rules.ERRORS_PROTO].replace("FIELD_INVALID", "FIELD_BAD")
        self.expect(
            rules.check_reasons,
            {rules.ERRORS_PROTO: text},
            "1 is FIELD_INVALID here and FIELD_BAD in",
        )

    def test_broken_link(self):
        self.expect(
            rules.check_links,
            {"server/A.md": "# A\n\n[x](../gone.md)\n\n[y]: ../READ.md\n"},
            "server/A.md:3: there is no gone.md",
            "server/A.md:5: there is no READ.md",
        )

    def test_broken_anchor(self):
        self.expect(
            rules.check_links,
            {"A.md": "[x](README.md#some-words) [y](README.md#no-words)\n"},
            "A.md:1: README.md has no heading #no-words",
        )

    def test_registry(self):
        self.expect(
            rules.check_hosts_and_paths,
            {"a.yaml": "url: https://registry" ".npmjs.org/buf\n"},
            "a.yaml:1: registry",
        )

    def test_path_of_one_machine(self):
        self.expect(
            rules.check_hosts_and_paths,
            {"run.sh": "x\ncd /wo" "rk/main\ncat /ro" "ot/.x\ncd build/work\n"},
            "run.sh:2: /wo" "rk",
            "run.sh:3: /ro" "ot",
        )


if __name__ == "__main__":
    unittest.main()
