# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is fetched again is noticed, and no longer masked where that costs more.

usage: ./dev evidence learning

The detector against repetitions in public transcripts that were labelled by
reading (tests/testdata/refetch), apart for files that it was tuned on and files
that were held back; the tenant's breaker against made-up agents of known rates;
and agents over gRPC that read again what is masked, whose tool a live server
then stops masking, as GetSession, ListTools and the metrics show. The last line
is one JSON object, `{"labelled","held_back","precision","recall",
"breaker_error_rate","regret","detection_overhead"}` and more: precision and
recall are those of repetitions in files that were held back, whether the
earlier output is masked or not; `keep_10_*` are those of re-fetches there with
the newest ten observations shown, of which there are few.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))

import transcripts  # noqa: E402

RELEASE = ROOT / "build/release/bin"
LABELS = ROOT / "tests/testdata/refetch/labels.jsonl"


def last_json(*command) -> dict:
    """Prints what the program prints; returns the JSON of its last line."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def live() -> int:
    """How many tests of a live server passed."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-rA", "--no-header"),
                *("-p", "no:cacheprovider", f"--basetemp={folder}/tests"),
                str(ROOT / "tests/e2e/learning_test.py"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    lines = [line for line in done.stdout.splitlines() if "::" in line]
    print("\n".join(lines), flush=True)
    if done.returncode != 0:
        raise SystemExit("a live server did not learn what it should")
    return sum(line.startswith("PASSED") for line in lines)


def main() -> None:
    print("== the detector against labels", flush=True)
    labels = last_json(
        RELEASE / "clerestory_refetch_labels", transcripts.SHARED, LABELS
    )
    print("== the breaker against agents of known rates", flush=True)
    breaker = last_json(RELEASE / "clerestory_breaker_trial")
    print("== a live server", flush=True)
    live_count = live()
    print(
        json.dumps(
            {
                "labelled": labels["labelled"],
                "held_back": labels["held_back"],
                "precision": labels["held_back_repeats"]["precision"],
                "recall": labels["held_back_repeats"]["recall"],
                "breaker_error_rate": breaker["breaker_error_rate"],
                "regret": breaker["regret"],
                "detection_overhead": labels["detection_overhead"],
                "keep_10_precision": labels["held_back_keep_10"]["precision"],
                "keep_10_recall": labels["held_back_keep_10"]["recall"],
                "live_checks": live_count,
            }
        )
    )


main()
