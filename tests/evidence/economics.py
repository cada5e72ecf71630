# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the policies cost under the ways in which providers charge for caches.

usage: ./dev evidence economics [--quick]

Six structures of prices (what a written and a read token cost in parts of an
input token), each forced on four groups of sessions: the published simulation,
sessions of log-normal sizes with and without pauses, and every transcript. The
default policy is held against the best schedule that knows the future, against
raw, and against masking every turn and in blocks; what misses its target is
said. Then how far the counts of tokens are from reported usage, and how many
mistakes in policies are explained.

--quick takes fewer seeds and the smaller transcripts. The last line is one JSON
object, `{"price_structures","sequences","ratio_to_optimum_mean",
"ratio_to_optimum_worst","ratio_to_raw_worst","token_error_after_3",
"token_error_after_10","policy_mistakes_tried","policy_mistakes_explained"}`, of
the default policy; errors are in percent.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import server_process  # noqa: E402
import transcripts  # noqa: E402

QUICK = "--quick" in sys.argv[1:]
QUICK_BYTES_MAX = 500_000
SEEDS = 4 if QUICK else 24
LENGTHS = (20, 40, 60, 100, 200, 300)

# As `clerestory backtest --prices` names them.
STRUCTURES = ("1.25/0.1", "1.25/0.05", "1.25/0.025", "1.0/0.1", "1.0/0.5", "no-cache")
POLICIES = ("adaptive", "rent_or_buy", "every_turn", "block")
# The best schedule masks every tool to the end, so these do.
WITHOUT_LEARNING = "refetch_session_limit=0"

MEAN_MAX = 1.03  # Of the optimum.
WORST_MAX = 1.08
RAW_MAX = 1.01

DEV_BIN = pathlib.Path(__file__).resolve().parents[2] / "build" / "dev" / "bin"


def say(text: str) -> None:
    print(text, flush=True)


# --- sessions under prices ----------------------------------------------------


def groups() -> dict[str, list[str]]:
    """What the back-test is called with, by the name of the group."""
    files = transcripts.files()
    if QUICK:
        files = [p for p in files if transcripts.size_of(p) <= QUICK_BYTES_MAX]

    def log_normal(suffix: str) -> list[str]:
        return [
            f"--simulate=lognormal:{length}:1-{SEEDS}{suffix}" for length in LENGTHS
        ]

    return {
        "published": ["--simulate=published"],
        "log-normal": log_normal(""),
        "log-normal, pauses": log_normal(":pauses"),
        "transcripts": [str(path) for path in files],
    }


def backtest(out: pathlib.Path, structure: str, what: list[str]) -> dict:
    policies = [
        word
        for policy in POLICIES
        for word in ("--policy", f"{policy},{WITHOUT_LEARNING}")
    ]
    ran = server_process.client(
        "backtest", *what, *policies, "--prices", structure, "--json", str(out)
    )
    if ran.returncode != 0:
        raise SystemExit(f"backtest failed: {ran.stderr}")
    return json.loads(out.read_text())


def joined(parts: list[tuple[int, dict]]) -> dict:
    """The summary of several groups, from each one's and its count."""
    count = sum(number for number, _ in parts)
    total = {
        "ratio_to_optimum_mean": sum(
            number * part["ratio_to_optimum_mean"] for number, part in parts
        )
        / count
    }
    for key in (
        "ratio_to_optimum_worst",
        "ratio_to_raw_worst",
        "ratio_to_raw_any_length",
    ):
        total[key] = max(part[key] for _, part in parts)
    return total


def row(name: str, count: int, policy: str, summary: dict) -> str:
    return (
        f"{name:<20} {count:>5}  {policy:<12}"
        f" {summary['ratio_to_optimum_mean']:>8.3f}"
        f" {summary['ratio_to_optimum_worst']:>8.3f}"
        f" {summary['ratio_to_raw_worst']:>8.3f}"
        f" {summary['ratio_to_raw_any_length']:>10.3f}"
    )


def misses(where: str, summary: dict) -> list[str]:
    """Which targets the default policy misses there, and by how much."""
    found = []
    for key, most, what in (
        ("ratio_to_optimum_mean", MEAN_MAX, "of the optimum on average"),
        ("ratio_to_optimum_worst", WORST_MAX, "of the optimum at worst"),
        ("ratio_to_raw_worst", RAW_MAX, "of raw at worst"),
    ):
        if summary[key] > most:
            found.append(
                f"{where}: {summary[key]:.3f} {what}, {summary[key] - most:.3f} "
                f"above {most}"
            )
    return found


def worst_session(report: dict) -> str:
    def ratio(entry: dict) -> float:
        return entry["policies"][0]["ratio_to_optimum"]

    entry = max(report["files"], key=ratio)
    name = pathlib.PurePath(entry["file"]).name
    return f"{name} ({entry['turns']} calls, {ratio(entry):.3f})"


def check_structure(folder: pathlib.Path, structure: str) -> dict:
    say(f"== writes/reads of the cache at {structure} of the input's price")
    say(
        f"{'sessions':<20} {'count':>5}  {'policy':<12} {'of opt.':>8} {'worst':>8}"
        f" {'of raw':>8} {'any length':>10}"
    )
    parts: dict[str, list[tuple[int, dict]]] = {policy: [] for policy in POLICIES}
    missed = []
    worst = []
    for name, what in groups().items():
        report = backtest(folder / "backtest.json", structure, what)
        count = len(report["files"])
        for policy, summary in zip(POLICIES, report["summary"], strict=True):
            parts[policy].append((count, summary))
            say(row(name, count, policy, summary))
        adaptive = report["summary"][0]
        missed += misses(f"{structure}, {name}", adaptive)
        worst.append(f"{name}: {worst_session(report)}")
    count = sum(number for number, _ in parts["adaptive"])
    totals = {policy: joined(some) for policy, some in parts.items()}
    for policy, summary in totals.items():
        say(row("all", count, policy, summary))
    say("adaptive is farthest from the optimum in\n  " + "\n  ".join(worst))
    say("")
    return {"count": count, "totals": totals, "missed": missed}


# --- what other programs measure ----------------------------------------------


def lines_of(folder: pathlib.Path, name: str, *args: str) -> list[str]:
    """What the program prints, which has to end well."""
    ran = subprocess.run(
        [folder / name, *args], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise SystemExit(f"{name} ended with {ran.returncode}: {ran.stderr}")
    return ran.stdout.strip().splitlines()


def token_errors() -> dict:
    """How far the counts are from reported usage, in percent."""
    say("== counts of tokens against reported usage")
    files = [str(path) for path in transcripts.files()]
    lines = lines_of(server_process.BIN, "clerestory_calibration_report", *files)
    begin = next(i for i, line in enumerate(lines) if line.startswith("all calls"))
    say("\n".join(lines[begin:]))
    return json.loads(lines[-1])


def policy_mistakes() -> tuple[int, int]:
    """How many mistakes in policies were tried, and how many explained."""
    say("== mistakes in policies")
    lines = lines_of(DEV_BIN, "policy_test", "--gtest_filter=*EveryMistake*")
    text = "\n".join(lines)
    found = re.search(r"^policy mistakes: (\d+) tried, (\d+) explained$", text, re.M)
    if found is None:
        raise SystemExit(f"policy_test counted no mistakes: {text}")
    say(found[0])
    return int(found[1]), int(found[2])


def main() -> None:
    results = {}
    with tempfile.TemporaryDirectory() as name:
        for structure in STRUCTURES:
            results[structure] = check_structure(pathlib.Path(name), structure)
    say(
        f"== targets of adaptive: {MEAN_MAX} of the optimum on average and "
        f"{WORST_MAX} at worst, never above {RAW_MAX} of raw"
    )
    missed = [line for result in results.values() for line in result["missed"]]
    say("\n".join(missed) if missed else "all are met")
    say(
        "'any length' is a session that ends at its worst moment, right after a "
        "break:"
    )
    for structure, result in results.items():
        adaptive = result["totals"]["adaptive"]
        say(f"{structure}: {adaptive['ratio_to_raw_any_length']:.3f} of raw")
    say("")
    errors = token_errors()
    tried, explained = policy_mistakes()
    total = joined([(r["count"], r["totals"]["adaptive"]) for r in results.values()])
    print(
        json.dumps(
            {
                "price_structures": len(results),
                "sequences": sum(r["count"] for r in results.values()),
                "ratio_to_optimum_mean": round(total["ratio_to_optimum_mean"], 4),
                "ratio_to_optimum_worst": round(total["ratio_to_optimum_worst"], 4),
                "ratio_to_raw_worst": round(total["ratio_to_raw_worst"], 4),
                "token_error_after_3": errors["token_error_after_3"],
                "token_error_after_10": errors["token_error_after_10"],
                "policy_mistakes_tried": tried,
                "policy_mistakes_explained": explained,
            }
        )
    )


if __name__ == "__main__":
    main()
