# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line client: transcripts played offline and against a server."""

import json
import time
import xml.etree.ElementTree as ElementTree

import pytest

import server_process
import transcripts
from server_process import client

FIXTURE = transcripts.fixtures()[-1]


def test_the_simulation_gives_the_published_figures():
    ran = client("backtest", "--simulate")
    assert ran.returncode == 0
    rows = [line.split() for line in ran.stdout.splitlines()]
    heading = next(row for row in rows if row and row[0] == "turns")
    row = dict(zip(heading, next(row for row in rows if row and row[0] == "100")))
    assert row == {
        "turns": "100",
        "off": "4.320",
        "every_turn": "7.838",
        "block": "2.961",
        "rent_or_buy": "2.930",
        "adaptive": row["adaptive"],
        "optimum": "2.889",
    }
    assert float(row["adaptive"]) <= 1.08 * 2.889


def test_a_backtest_writes_json(tmp_path):
    out = tmp_path / "out.json"
    ran = client("backtest", str(FIXTURE), "--json", str(out), "--policy", "block")
    assert ran.returncode == 0
    report = json.loads(out.read_text())
    (entry,) = report["files"]
    assert entry["file"] == str(FIXTURE)
    assert entry["turns"] > 0
    (policy,) = entry["policies"]
    assert policy["policy"] == "block"
    assert set(policy) == {
        "policy",
        "cost_usd",
        "ratio_to_raw",
        "ratio_to_optimum",
        "breaks",
        "tokens",
    }
    (summary,) = report["summary"]
    assert summary["ratio_to_raw_total"] == policy["ratio_to_raw"]


def test_a_backtest_writes_a_page_that_an_xml_parser_reads(tmp_path):
    odd = tmp_path / "<b>&'\"é.jsonl"
    odd.write_bytes(FIXTURE.read_bytes())
    out = tmp_path / "out.html"
    ran = client("backtest", str(odd), "--html", str(out))
    assert ran.returncode == 0, ran.stderr
    root = ElementTree.parse(out).getroot()
    html = "{http://www.w3.org/1999/xhtml}"
    assert root.tag == f"{html}html"
    assert root.find(f"{html}body/{html}h1").text == f"Back-test of {odd}"
    names = {element.tag for element in root.iter()}
    assert "{http://www.w3.org/2000/svg}polyline" in names
    assert f"{html}script" not in names


def test_prices_can_be_forced_on_a_simulation(tmp_path):
    out = tmp_path / "out.json"
    ran = client(
        *("backtest", "--simulate", "lognormal:40:1-3:pauses", "--json", str(out)),
        *("--prices", "no-cache", "--policy", "adaptive", "--policy", "every_turn"),
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(out.read_text())
    assert [entry["file"] for entry in report["files"]] == [
        f"lognormal:40:{seed}:pauses" for seed in (1, 2, 3)
    ]
    for entry in report["files"]:
        adaptive, every_turn = (p["cost_usd"] for p in entry["policies"])
        assert adaptive == every_turn == entry["optimum_cost_usd"]


def test_a_transcript_cut_in_a_line_is_read_up_to_there(tmp_path):
    whole = FIXTURE.read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    lines = cut.read_bytes().count(b"\n") + 1
    ran = client("backtest", str(cut))
    assert ran.returncode == 0
    assert f"{cut}:{lines}: " in ran.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["backtest", "no-such-file"], "no-such-file"),
        (["backtest", "--policy", "wild", "x"], "unknown value"),
        (["backtest"], "no session could be read"),
        (["backtest", "--prices", "2/1", "x"], "1.25/0.1, 1.25/0.05"),
        (["backtest", "--simulate", "lognormal:9"], "lognormal:TURNS:SEED"),
        (["backtest", "--simulate", "--html", "/no/folder/x"], "cannot write"),
        (["replay", "no-such-file"], "no-such-file"),
        (["dance"], "dance"),
    ],
)
def test_wrong_arguments_are_named(args, says):
    ran = client(*args)
    assert ran.returncode != 0
    assert says in ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The views of the fixture's sessions, from a server left alone."""
    folder = tmp_path_factory.mktemp("reference")
    with server_process.Server(folder, "--development") as server:
        return replay(FIXTURE, server, folder / "out.json")


def replay(path, server, out, *args):
    ran = client(
        *("replay", str(path), "--target", server.address),
        *("--json", str(out), *args),
    )
    assert ran.returncode == 0, ran.stderr
    assert "lossless yes, valid yes, prefix-stable yes" in ran.stdout
    return json.loads(out.read_text())["sessions"]


def test_a_replay_keeps_every_promise_and_costs_what_the_backtest_says(
    reference, tmp_path
):
    out = tmp_path / "backtest.json"
    client("backtest", str(FIXTURE), "--policy", "adaptive", "--json", str(out))
    policy = json.loads(out.read_text())["files"][0]["policies"][0]
    (session,) = reference
    assert session["estimate_mismatches"] == 0
    cost = float(session["cost_usd"]["as the server decided"])
    assert cost == pytest.approx(policy["cost_usd"], rel=1e-9)


@pytest.mark.parametrize("rest", ["", ",errors=drop,argument_tokens_min=50"])
def test_a_replay_on_a_model_that_binds_reasoning_keeps_every_promise(rest, tmp_path):
    # Its transcript has reasoning, which breaks leave out.
    (path,) = [f for f in transcripts.fixtures() if "image_read" in f.name]
    policy = "every_turn,keep_observations=3" + rest
    with server_process.Server(
        tmp_path, "--development", "--policy", policy
    ) as server:
        (session,) = replay(
            *(path, server, tmp_path / "out.json"), "--model", "claude-sonnet-5-5"
        )
        assert session["estimate_mismatches"] == 0


def test_a_server_killed_again_and_again_serves_the_same_views(reference, tmp_path):
    out = tmp_path / "out.json"
    with server_process.Server(tmp_path, "--development", fixed=True) as server:
        process = server_process.start_client(
            *("replay", str(FIXTURE), "--target", server.address, "--quiet"),
            *("--json", str(out), "--retry-seconds", "60"),
        )
        kills = 0
        while process.poll() is None:
            time.sleep(0.05)
            if process.poll() is None and kills < 20:
                server.kill()
                server.start()
                kills += 1
        assert process.returncode == 0
    sessions = json.loads(out.read_text())["sessions"]
    assert kills > 0
    for before, after in zip(reference, sessions, strict=True):
        assert after["history_digest"] == before["history_digest"]
        assert [call["digest"] for call in after["calls"]] == [
            call["digest"] for call in before["calls"]
        ]


def test_a_replay_without_development_mode_says_what_to_do(tmp_path):
    with server_process.Server(tmp_path) as server:
        ran = client("replay", str(FIXTURE), "--target", server.address)
        assert ran.returncode != 0
        assert "CALL_TIME_REFUSED" in ran.stderr
        replay(FIXTURE, server, tmp_path / "out.json", "--no-transcript-times")


def test_every_array_of_messages_replays_valid(tmp_path):
    files = transcripts.files(transcripts.ARRAY_FOLDERS)
    with server_process.Server(tmp_path, "--development") as server:
        for path in files:
            for session in replay(path, server, tmp_path / "out.json", "--quiet"):
                assert session["invalid_views"] == 0
                assert session["lossless_mismatches"] == 0
