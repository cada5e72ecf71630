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
import urllib.request

import grpc
from clerestory.v1 import session_service_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))

import server_process  # noqa: E402
import transcripts  # noqa: E402
from python_client import Client  # noqa: E402

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


def build_view_micros() -> float:
    """What BuildView takes a server on RocksDB, for each observation that comes
    with it: over replays of some transcripts, by the server's own metrics."""
    files = transcripts.files(["claude-code", "codex", "mini-swe-agent"])[::2]
    seconds = 0.0
    observations = 0
    with tempfile.TemporaryDirectory() as folder:
        with server_process.Server(
            pathlib.Path(folder),
            *("--metrics-address", "127.0.0.1:0", "--development"),
        ) as server:
            for path in files:
                if server_process.client(
                    *("replay", str(path), "--target", server.address, "--quiet")
                ).returncode:
                    raise SystemExit(f"{path}: the replay failed")
            serving = next(e for e in server.entries() if e["event"] == "serving")
            address = f"http://{serving['metrics_address']}/metrics"
            with urllib.request.urlopen(address) as answer:
                for line in answer.read().decode().splitlines():
                    if line.startswith("grpc_server_handling_seconds_sum") and (
                        'grpc_method="BuildView"' in line
                    ):
                        seconds = float(line.split()[-1])
            with grpc.insecure_channel(server.address) as channel:
                sessions = Client(channel).sessions
                listed = sessions.ListSessions(
                    session_service_pb2.ListSessionsRequest(page_size=1000)
                ).sessions
                observations = sum(
                    sessions.GetSession(
                        session_service_pb2.GetSessionRequest(session_id=s.session_id)
                    ).session.observation_count
                    for s in listed
                )
    return 1e6 * seconds / observations


def main() -> None:
    print("== the detector against labels", flush=True)
    labels = last_json(
        RELEASE / "clerestory_refetch_labels", transcripts.SHARED, LABELS
    )
    print("== the breaker against agents of known rates", flush=True)
    breaker = last_json(RELEASE / "clerestory_breaker_trial")
    print("== a live server", flush=True)
    live_count = live()
    build_view = build_view_micros()
    print(
        f"BuildView took {build_view:.0f} us for each observation that came with "
        f"it, of which looking at what it repeats takes {labels['look_micros']} us, "
        f"{labels['of_append']:.2f} of what parsing and appending it takes",
        flush=True,
    )
    print(
        json.dumps(
            {
                "labelled": labels["labelled"],
                "held_back": labels["held_back"],
                "precision": labels["held_back_repeats"]["precision"],
                "recall": labels["held_back_repeats"]["recall"],
                "breaker_error_rate": breaker["breaker_error_rate"],
                "regret": breaker["regret"],
                "detection_overhead": round(labels["look_micros"] / build_view, 4),
                "keep_10_precision": labels["held_back_keep_10"]["precision"],
                "keep_10_recall": labels["held_back_keep_10"]["recall"],
                "live_checks": live_count,
            }
        )
    )


main()
