# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The main job, end to end, on real transcripts.

usage: ./dev evidence main [--quick]

1. The published simulation, against the figures that it must give.
2. A back-test of every transcript that can be read.
3. The same on Claude Code's sessions as another implementation of the cost
   model counts, if that lies beside the repository.
4. Every transcript sent to a real server over gRPC, every view checked, every
   history read back.
5. The server killed with -9 in the middle of replays: the same views after it.

--quick takes the smaller transcripts only. The last line is one JSON object.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import agreement  # noqa: E402
import server_process  # noqa: E402
import transcripts  # noqa: E402

QUICK = "--quick" in sys.argv[1:]
QUICK_BYTES_MAX = 500_000

# Costs in dollars by turns: raw, every turn, blocks of 10, rent or buy, optimum.
SIMULATION = {
    20: ("0.383", "0.932", "0.383", "0.383", "0.383"),
    40: ("0.998", "2.612", "0.981", "0.958", "0.953"),
    60: ("1.860", "4.322", "1.610", "1.568", "1.567"),
    100: ("4.320", "7.838", "2.961", "2.930", "2.889"),
    200: ("14.777", "17.172", "6.886", "6.798", "6.738"),
    300: ("31.383", "27.286", "11.590", "11.448", "11.367"),
}


def say(text: str) -> None:
    print(text, flush=True)


def backtest(folder: pathlib.Path, *args: str) -> dict:
    out = folder / "backtest.json"
    result = server_process.client("backtest", *args, "--json", str(out))
    if result.returncode != 0:
        raise SystemExit(f"backtest failed: {result.stderr}")
    say(result.stdout)
    return json.loads(out.read_text())


def summary_of(report: dict, policy: str) -> dict:
    return next(line for line in report["summary"] if line["policy"] == policy)


def check_simulation(folder: pathlib.Path) -> int:
    say("== the published simulation")
    report = backtest(folder, "--simulate")
    differences = 0
    for entry in report["files"]:
        by_name = {p["policy"]: f"{p['cost_usd']:.3f}" for p in entry["policies"]}
        costs = [
            by_name[name] for name in ("off", "every_turn", "block", "rent_or_buy")
        ]
        costs.append(f"{entry['optimum_cost_usd']:.3f}")
        expected = SIMULATION[entry["turns"]]
        if tuple(costs) != expected:
            differences += 1
            say(f"{entry['turns']} turns: {costs}, expected {expected}")
    say(f"figures that differ from the published ones: {differences} rows\n")
    return differences


def check_agreement(folder: pathlib.Path) -> float | None:
    """The largest difference from the other implementation, in ratios to raw."""
    if not agreement.available():
        return None
    say("== as another implementation counts: 4 characters a token, 10 turns kept")
    keep = "keep_turns=10,keep_observations=3,refetch_session_limit=0"
    report = backtest(
        folder,
        *map(str, transcripts.files(["claude-code"])),
        *("--chars-per-token", "4"),
        *("--preamble-tokens", str(agreement.PREAMBLE_TOKENS)),
        *("--model", "claude-sonnet-4-6"),
        *("--policy", f"every_turn,{keep}", "--policy", f"rent_or_buy,{keep}"),
    )
    worst = 0.0
    for entry in report["files"]:
        theirs = agreement.their_ratios(pathlib.Path(entry["file"]))
        if theirs is None:
            continue
        every, rent = (policy["ratio_to_raw"] for policy in entry["policies"])
        optimum = entry["optimum_cost_usd"] / entry["raw_cost_usd"]
        differences = (
            entry["raw_cost_usd"] / theirs["raw"] - 1,
            rent / theirs["rent_or_buy"] - 1,
            optimum / theirs["optimum"] - 1,
        )
        worst = max(worst, *map(abs, differences))
        say(
            f"{pathlib.Path(entry['file']).name}: turns {entry['turns']} "
            f"({theirs['turns']}), raw ${entry['raw_cost_usd']:.4f} "
            f"(${theirs['raw']:.4f}), rent or buy {rent:.4f} "
            f"({theirs['rent_or_buy']:.4f}), optimum {optimum:.4f} "
            f"({theirs['optimum']:.4f}), every turn {every:.4f} "
            f"({theirs['every_turn']:.4f})"
        )
    say(
        f"largest difference of raw, rent-or-buy and optimum: {worst:.4f}. Masking "
        "every turn is not counted: there they charge a break for a turn whose "
        "outputs are too small to be masked, and here nothing changes then.\n"
    )
    return worst


def replay(
    path: pathlib.Path, server: server_process.Server, out: pathlib.Path, *args: str
) -> subprocess.Popen:
    return server_process.start_client(
        *("replay", str(path), "--target", server.address, "--quiet"),
        *("--json", str(out), *args),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def check_replays(folder: pathlib.Path, files: list[pathlib.Path]) -> dict:
    say("== every transcript over gRPC, every view checked")
    totals = dict.fromkeys(
        (
            "views",
            "lossless_mismatches",
            "invalid_views",
            "prefix_violations",
            "estimate_mismatches",
        ),
        0,
    )
    digests = {}
    with server_process.Server(folder / "replays", "--development") as server:
        for path in files:
            out = folder / "replay.json"
            out.unlink(missing_ok=True)
            replay(path, server, out).wait()
            if not out.exists():
                raise SystemExit(f"{path}: the replay failed")
            sessions = json.loads(out.read_text())["sessions"]
            for session in sessions:
                totals["views"] += len(session["calls"])
                for key in list(totals)[1:]:
                    totals[key] += session[key]
            digests[path] = [
                [call["digest"] for call in session["calls"]] for session in sessions
            ]
            calls = sum(len(session["calls"]) for session in sessions)
            odd = sum(session["estimate_mismatches"] for session in sessions)
            say(
                f"{path.name}: {len(sessions)} sessions, {calls} views, "
                f"{odd} with another estimate of the cache"
            )
        if server.stop() != 0:
            raise SystemExit("the server did not stop cleanly")
    say(f"{json.dumps(totals)}\n")
    return {"totals": totals, "digests": digests}


def check_restarts(
    folder: pathlib.Path, files: list[pathlib.Path], digests: dict
) -> dict:
    say("== kill -9 in the middle of replays: the same views after it")
    restarts = 0
    mismatches = 0
    with server_process.Server(
        folder / "restarts", "--development", fixed=True
    ) as server:
        for path in files:
            out = folder / "restarted.json"
            out.unlink(missing_ok=True)
            client = replay(path, server, out, "--retry-seconds", "60")
            kills = 0
            while client.poll() is None:
                # Longer each time, so that a call that takes longer than that
                # gets through in the end.
                time.sleep(0.15 + 0.005 * kills)
                if client.poll() is None:
                    server.kill()
                    server.start()
                    kills += 1
            if not out.exists():
                raise SystemExit(f"{path}: the replay failed after {kills} kills")
            sessions = json.loads(out.read_text())["sessions"]
            found = [
                [call["digest"] for call in session["calls"]] for session in sessions
            ]
            differing = sum(
                a != b
                for ours, theirs in zip(found, digests[path], strict=True)
                for a, b in zip(ours, theirs, strict=True)
            )
            restarts += kills
            mismatches += differing
            say(f"{path.name}: {kills} kills, {differing} views that differ")
    say("")
    return {"restarts": restarts, "digest_mismatches": mismatches}


def main() -> None:
    files = transcripts.files()
    if QUICK:
        files = [p for p in files if transcripts.size_of(p) <= QUICK_BYTES_MAX]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        simulation_differences = check_simulation(folder)
        say(f"== back-test of {len(files)} transcripts")
        report = backtest(folder, *map(str, files))
        adaptive = summary_of(report, "adaptive")
        agreement = None if QUICK else check_agreement(folder)
        replays = check_replays(folder, files)
        largest = sorted(files, key=transcripts.size_of)
        restarts = check_restarts(
            folder, largest[-2:] if QUICK else largest[-12:], replays["digests"]
        )
    result = {
        "files": len(files),
        "sessions": len(report["files"]),
        **replays["totals"],
        **restarts,
        "simulation_differences": simulation_differences,
        "agreement_worst": agreement,
        "adaptive": {
            key: adaptive[key]
            for key in (
                "ratio_to_optimum_mean",
                "ratio_to_optimum_worst",
                "ratio_to_raw_worst",
                "ratio_to_raw_total",
                "ratio_to_raw_any_length",
            )
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
