# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""What prices, reports of usage and policies make of real sessions."""

import json
import os
import signal
import time

import pytest
from clerestory.v1 import session_pb2

from driving import Agent, document, put, serving, wait_until
from python_client import CHAT, call, result, user

# Of claude-sonnet-4-6, in pico-dollars for a token.
INPUT, WRITE, READ, OUTPUT_PRICE = 3_000_000, 3_750_000, 300_000, 15_000_000

ADAPTIVE = document("mode: adaptive", "keep: {observations: 3}")
EVERY_TURN = document("mode: every_turn", "keep: {observations: 3}")
OFF = document("mode: off")


def price_file(dollars, read=None):
    """A file in which a token of `house-1` costs that many millionths."""
    return f"""as_of: 2026-11-30
extends: built-in
models:
  - model: house-1
    source: our contract
    window_tokens: 200000
    answer_tokens: 8000
    cache_ttl_seconds: 300
    cache_tokens_min: 1024
    prices: [{{input: {dollars}, read: {read or dollars / 10}, output: 50}}]
"""


def events(server, name):
    return [entry for entry in server.entries() if entry["event"] == name]


def total(tokens):
    return tokens.read + tokens.written + tokens.uncached


def reason_of(answer):
    return getattr(answer.report, "break").reason


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "server", "--development") as all_of_it:
        yield all_of_it


# --- prices -------------------------------------------------------------------


def test_a_file_of_prices_is_watched_and_a_bad_version_keeps_the_good_one(tmp_path):
    file = tmp_path / "prices.yaml"
    file.write_text(price_file(10))
    with serving(tmp_path, "--prices-file", str(file)) as (server, client, _):
        numbers = iter(range(99))

        def price():
            """What a token of a first view costs now."""
            session_id = f"s{next(numbers)}"
            client.create(session_id, model="house-1")
            text = user("a line of a task\n" * 500)
            report = client.build(session_id, [text]).report
            assert report.is_model_known
            return report.view_cost_pico_usd / total(report.view_call)

        def loaded():
            return len(events(server, "prices_loaded"))

        assert price() == 10_000_000
        assert loaded() == 1

        # As an editor writes: beside it, and then in its place.
        (tmp_path / ".new").write_text(price_file(20))
        os.replace(tmp_path / ".new", file)
        wait_until(lambda: loaded() == 2)
        assert price() == 20_000_000

        file.write_text(price_file(30, read=40))
        wait_until(lambda: events(server, "file_refused"))
        (refused,) = events(server, "file_refused")
        assert refused["file"] == str(file)
        assert (refused["line"], refused["column"]) == (10, 32)
        assert refused["message"].startswith(
            f"{file}:10:32: models[0].prices[0].read: "
        )
        assert price() == 20_000_000

        # Read again at once, and not logged again.
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: events(server, "reloading"))
        time.sleep(0.3)
        assert len(events(server, "file_refused")) == 1
        assert price() == 20_000_000

        file.write_text(price_file(30))
        wait_until(lambda: loaded() == 3)
        assert price() == 30_000_000

        # A file that is gone takes no prices away.
        file.unlink()
        wait_until(lambda: len(events(server, "file_refused")) == 2)
        assert price() == 30_000_000
        assert server.stop() == 0


def test_sighup_reads_prices_that_came_back(tmp_path):
    folder = tmp_path / "prices"
    folder.mkdir()
    file = folder / "prices.yaml"
    file.write_text(price_file(10))
    with serving(tmp_path, "--prices-file", str(file)) as (server, _, _):
        # What is watched is another directory from now on.
        os.rename(folder, tmp_path / "away")
        folder.mkdir()
        file.write_text(price_file(20))
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(events(server, "prices_loaded")) == 2)
        assert server.stop() == 0


def test_a_model_without_prices_is_told_of_once(served):
    server, client, _ = served
    for session_id in ("a", "b"):
        client.create(session_id, model="nobody-knows-1")
        assert not client.build(session_id, [user("go")]).report.is_model_known
        assert not client.build(session_id).report.is_model_known
    assert client.build("a", model="claude-sonnet-4-6").report.is_model_known
    (logged,) = events(server, "model_unknown")
    assert logged["model"] == "nobody-knows-1"
    client.build("a", model="nobody-knows-2")
    assert len(events(server, "model_unknown")) == 2


# --- policies -----------------------------------------------------------------


def test_labels_choose_a_policy(served):
    _, client, policies = served
    put(
        policies,
        b"policies:\n"
        b"  - name: demo\n"
        b"    match: {labels: {app: demo}}\n"
        b"    mode: every_turn\n"
        b"    keep: {observations: 3}\n"
        b"  - name: rest\n"
        b"    mode: off\n",
    )
    demo = Agent(client, "a", labels={"app": "demo", "team": "x"}).go_on(8).report
    rest = Agent(client, "b", labels={"app": "other"}).go_on(8).report
    assert (demo.policy_name, rest.policy_name) == ("demo", "rest")
    assert demo.policy_digest != rest.policy_digest
    assert demo.masked_count > 0
    assert rest.masked_count == 0


def test_the_share_of_the_control_group_is_about_right_and_stays(tmp_path):
    ids = [f"session-{number}" for number in range(400)]
    shared = document("mode: adaptive", "control: {share_permille: 250}")

    def group(client):
        return {i for i in ids if client.build(i, dry_run=True).report.is_control}

    with serving(tmp_path) as (server, client, policies):
        put(policies, shared)
        for session_id in ids:
            client.create(session_id)
        control = group(client)
        # Five standard deviations.
        assert 57 <= len(control) <= 143
        server.kill()
    with serving(tmp_path) as (_, client, policies):
        assert group(client) == control
        # A larger share has all of the smaller one.
        put(policies, shared.replace(b"250", b"500"))
        assert group(client) > control
        masked = next(i for i in ids if i in control)
        put(policies, document("mode: every_turn", "control: {share_permille: 250}"))
        messages = [user("go")]
        for turn in range(20):
            messages += [call(turn), result(turn, "a line of tool output\n" * 50)]
        assert client.build(masked, messages).report.masked_count == 0


def test_a_session_keeps_its_masks_when_its_policy_changes(served):
    _, client, policies = served
    put(policies, EVERY_TURN)
    agent = Agent(client, "s")
    before = agent.go_on(8)
    assert before.report.masked_count > 0
    for other in (
        OFF,
        document("mode: block", "block: {size: 50}"),
        document("mode: delegate"),
        document("mode: adaptive", "control: {share_permille: 1000}"),
        document("mode: adaptive", "keep: {observations: 30}"),
    ):
        put(policies, other)
        after = agent.go_on()
        assert list(after.messages)[: len(before.messages)] == list(before.messages)
        assert after.report.masked_count == before.report.masked_count
        before = after


def test_a_delegated_session_is_masked_by_its_provider(served):
    _, client, policies = served
    put(
        policies,
        document(
            "mode: delegate",
            "threshold: {tokens: 2000}",
            "keep: {observations: 4}",
            "tools: {exclude: [read_*]}",
        ),
    )
    answer = Agent(client, "s").go_on(12)
    assert answer.report.masked_count == 0
    assert list(answer.messages) == client.read("s")
    (edit,) = json.loads(answer.report.context_management)["edits"]
    assert edit == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 2000},
        "keep": {"type": "tool_uses", "value": 4},
        "exclude_tools": ["read_file"],
    }

    client.create("chat", wire_format=CHAT, model="gpt-5")
    messages = [user("go")]
    for turn in range(12):
        output = "a line of tool output\n" * 200
        messages += [call(turn, wire_format=CHAT), result(turn, output, CHAT)]
    answer = client.build("chat", messages)
    assert answer.report.context_management == b""
    assert answer.report.masked_count == 0


# --- the provider's cache -----------------------------------------------------


def test_another_preamble_makes_a_free_break(served):
    _, client, policies = served
    put(policies, ADAPTIVE)
    agent = Agent(client, "s")
    before = agent.go_on(6, preamble_digest="one")
    assert reason_of(before) == session_pb2.BREAK_REASON_UNSPECIFIED
    assert before.report.view_call.read > 0
    after = agent.go_on(preamble_digest="two")
    assert reason_of(after) == session_pb2.BREAK_REASON_PREAMBLE_CHANGED
    assert getattr(after.report, "break").price_pico_usd == 0
    assert after.report.masked_count > before.report.masked_count
    assert after.report.view_call.read == 0
    again = agent.go_on(preamble_digest="two")
    assert reason_of(again) != session_pb2.BREAK_REASON_PREAMBLE_CHANGED
    assert again.report.view_call.read > 0


def test_a_cache_that_holds_nothing_is_believed_and_then_not_expected(served):
    _, client, policies = served
    put(policies, ADAPTIVE)
    agent = Agent(client, "s", output="a line of tool output\n" * 600)
    answer = agent.go_on(8)
    masked = answer.report.masked_count
    statuses = []
    for turn in range(3):
        tokens = total(answer.report.view_call)
        client.report(
            "s",
            input_uncached_tokens=tokens,
            cache_read_tokens=0,
            cache_write_tokens=0,
            output_tokens=10,
        )
        statuses.append(client.ledger("s").cache_status)
        answer = agent.go_on()
        assert answer.report.cache_status == statuses[-1]
        if turn == 0:
            # Nothing is cached, so a break costs nothing.
            assert reason_of(answer) == session_pb2.BREAK_REASON_CACHE_MISSED
            assert getattr(answer.report, "break").price_pico_usd == 0
            assert answer.report.masked_count > masked
    assert statuses == [
        session_pb2.CACHE_STATUS_MISSES,
        session_pb2.CACHE_STATUS_MISSES,
        session_pb2.CACHE_STATUS_ABSENT,
    ]
    # From now on whatever is not kept is masked at once.
    for _ in range(4):
        masked = answer.report.masked_count
        answer = agent.go_on()
        assert answer.report.masked_count == masked + 1
        assert answer.report.view_call.read == answer.report.view_call.written == 0
        assert answer.report.view_call.uncached > 0
    # A report that has it again is believed, too.
    client.report(
        "s",
        input_uncached_tokens=0,
        cache_read_tokens=total(answer.report.view_call),
        cache_write_tokens=0,
        output_tokens=10,
    )
    assert client.ledger("s").cache_status == session_pb2.CACHE_STATUS_WORKS
    assert agent.go_on(2).report.view_call.read > 0


# --- the ledger ---------------------------------------------------------------


def test_the_ledger_adds_up_and_tells_what_became_of_breaks(served):
    _, client, policies = served
    put(policies, ADAPTIVE)
    agent = Agent(client, "s")
    reports = [agent.go_on().report for _ in range(40)]
    ledger = client.ledger("s")
    assert ledger.call_count == 40
    assert ledger.raw_cost_pico_usd == sum(r.raw_cost_pico_usd for r in reports)
    assert ledger.view_cost_pico_usd == sum(r.view_cost_pico_usd for r in reports)
    assert total(ledger.view_call) == sum(total(r.view_call) for r in reports)
    # Masking in every turn sends the fewest tokens, and pays the most for them.
    assert total(ledger.every_turn_call) < total(ledger.view_call)
    assert total(ledger.view_call) < total(ledger.raw_call)
    assert ledger.every_turn_call.written > ledger.view_call.written
    assert ledger.every_turn_cost_pico_usd > ledger.view_cost_pico_usd
    assert ledger.view_cost_pico_usd < ledger.raw_cost_pico_usd

    breaks = [getattr(r, "break") for r in reports if r.HasField("break")]
    entries = list(ledger.break_entries)
    assert 0 < len(entries) == len(breaks) == sum(b.count for b in ledger.breaks)
    for entry, made in zip(entries, breaks):
        assert entry.reason == made.reason
        assert entry.sequence == made.sequence
        assert entry.price_pico_usd == made.price_pico_usd > 0
        assert entry.rent_pico_usd == made.rent_pico_usd
        assert entry.mask_count == len(made.masks)
        assert entry.saved_tokens == made.saved_tokens > 0
    assert sum(entry.mask_count for entry in entries) == ledger.mask_count

    # The same breaks, some calls later, have saved more.
    agent.go_on(3)
    later = list(client.ledger("s").break_entries)
    for before, after in zip(entries, later):
        assert after.saved_so_far_pico_usd > before.saved_so_far_pico_usd
        assert after.saved_so_far_pico_usd - before.saved_so_far_pico_usd == (
            3 * READ * after.saved_tokens
        )
        after.saved_so_far_pico_usd = before.saved_so_far_pico_usd
        assert after == before
    assert entries[0].saved_so_far_pico_usd > entries[0].price_pico_usd


def test_reports_of_usage_give_the_real_cost_and_the_error_of_estimates(served):
    _, client, _ = served
    agent = Agent(client, "s")
    estimated = reported = error = cost = 0
    for turn in range(5):
        tokens = total(agent.go_on(preamble_tokens=2000).report.view_call)
        real = tokens + (100 if turn % 2 else -60)
        written = real // 2 if turn else 0
        client.report(
            "s",
            provider_json=json.dumps(
                {
                    "input_tokens": real - written - written // 2,
                    "cache_read_input_tokens": written // 2,
                    "cache_creation_input_tokens": written,
                    "output_tokens": 50,
                }
            ).encode(),
        )
        estimated += tokens
        reported += real
        error += abs(tokens - real)
        cost += (real - written - written // 2) * INPUT + 50 * OUTPUT_PRICE
        cost += written * WRITE + written // 2 * READ
    ledger = client.ledger("s")
    assert ledger.usage_count == 5
    assert ledger.usage_cost_pico_usd == cost
    assert ledger.estimate_error == session_pb2.EstimateError(
        call_count=5,
        estimated_tokens=estimated,
        reported_tokens=reported,
        error_tokens=error,
    )


def test_what_is_learned_of_tokens_helps_new_sessions_and_outlives_kill_9(tmp_path):
    text = user("a line of a task of a session\n" * 1500)
    scale = 1.3

    def error_of_first_view(client, session_id):
        """How far off the estimate is, of a provider that counts 1.3 times."""
        client.create(session_id)
        fields = {"preamble_tokens": 1000}
        report = client.build(session_id, [text], **fields).report
        own = report.view_tokens
        real = round(
            scale * (1000 + own.user + own.assistant + own.calls + own.observations)
        )
        client.report(session_id, input_uncached_tokens=real)
        return abs(total(report.view_call) - real) / real

    with serving(tmp_path) as (server, client, _):
        first = error_of_first_view(client, "a")
        assert first > 0.2
        for session_id in ("b", "c"):
            error_of_first_view(client, session_id)
        assert error_of_first_view(client, "d") < 0.02
        # Of another model nothing is known.
        client.create("e", model="claude-opus-4-8")
        other = client.build("e", [text]).report
        assert total(other.view_call) == other.view_tokens.user
        server.kill()
    with serving(tmp_path) as (server, client, _):
        assert error_of_first_view(client, "f") < 0.02
        assert not events(server, "calibrations_lost")
