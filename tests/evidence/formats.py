# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every provider's format, lossless and valid under hostile histories.

usage: ./dev evidence formats [--quick]

Random valid histories of five formats under random policies, checked by
validators that know the vendors' rules and not our adapters; every public
transcript through its format under five policies; the vendors' own SDK types
on histories and views; the user reports that are regression tests; the fuzzers
for a while; and the error of our token counts against a real vocabulary. The
last line is one JSON object of counts.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEV = ROOT / "build/dev/bin"
TOOLS = ROOT / "tests/tools"
RESULTS = ROOT / "build/test-results/evidence-formats"

FORMATS = 5
VOCABULARY = "bpe-openai==0.1.4"


def run_tests(program, environment=None):
    """Runs a gtest program and returns the properties of its cases by name."""
    report = RESULTS / f"{program}.xml"
    done = subprocess.run(
        [DEV / program, f"--gtest_output=xml:{report}", "--gtest_brief=1"],
        env={**os.environ, **(environment or {})},
        check=False,
    )
    cases = {}
    failures = 0
    for case in ElementTree.parse(report).iter("testcase"):
        failures += case.find("failure") is not None
        cases[f'{case.get("classname")}.{case.get("name")}'] = {
            item.get("name"): int(item.get("value"))
            for item in case.iter("property")
        }
    if done.returncode != 0 and failures == 0:
        failures = 1
    return cases, failures


def total(cases, name):
    return sum(properties.get(name, 0) for properties in cases.values())


def last_json(command, environment=None):
    """The JSON object of the last line that `command` prints."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        print(f"{command[1]} ended with {done.returncode}", file=sys.stderr)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def say(text):
    print(f"\n== {text}", flush=True)


def main():
    quick = "--quick" in sys.argv[1:]
    RESULTS.mkdir(parents=True, exist_ok=True)

    say("random histories of five formats under random policies")
    seeds = 200 if quick else 2000
    histories, rejected = run_tests(
        "format_property_test", {"CLERESTORY_SEEDS": str(seeds)}
    )

    lossless = total(histories, "lossless_mismatches")

    say("public transcripts under five policies")
    transcripts, failures = run_tests("transcript_views_test")
    rejected += failures
    files = max(
        (properties.get("files", 0) for properties in transcripts.values()),
        default=0,
    )

    say("the vendors' own types")
    sdk = last_json(
        [
            sys.executable,
            TOOLS / "sdk_views.py",
            DEV / "clerestory_random_views",
            "20" if quick else "100",
        ]
    )
    rejected += sdk.get("refused", 0)

    say("user reports")
    reports, failures = run_tests("reports_test")
    rejected += failures
    numbers = sorted(
        {
            int(match.group(1))
            for name in reports
            if (match := re.search(r"\.N(\d+)_", name))
        }
    )
    print(f"{len(reports)} tests of {len(numbers)} reports")

    say("fuzzers")
    fuzz = last_json(
        [sys.executable, TOOLS / "fuzz.py", "3" if quick else "10"]
    )

    say("token counts against o200k_base")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", VOCABULARY], check=True
    )
    tokens = last_json(
        [sys.executable, TOOLS / "token_error.py", DEV / "clerestory_token_counts"]
    )

    print(
        json.dumps(
            {
                "histories": total(histories, "histories")
                + total(transcripts, "sessions")
                + sdk.get("histories", 0),
                "views": total(histories, "views")
                + total(transcripts, "views")
                + sdk.get("views", 0),
                "rejected": rejected,
                "lossless_mismatches": lossless,
                "transcripts": files,
                "reports_covered": numbers,
                "fuzz_executions": fuzz.get("executions"),
                "fuzz_crashes": fuzz.get("crashes"),
                "token_error_median": tokens.get("median"),
                "drops": total(histories, "drops") + total(transcripts, "drops"),
                "argument_masks": total(histories, "argument_masks")
                + total(transcripts, "argument_masks"),
                "token_error_worst_class": tokens.get("worst_class"),
                "token_error_worst_class_median": tokens.get(
                    "worst_class_median"
                ),
            }
        )
    )


if __name__ == "__main__":
    main()
