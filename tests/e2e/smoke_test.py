# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The normal loop of an agent in another language, against a real server."""

import json

import pytest
from clerestory.v1 import (
    history_service_pb2,
    session_pb2,
    session_service_pb2,
    usage_pb2,
    view_service_pb2,
)
from grpc_health.v1 import health_pb2, health_pb2_grpc

from transcripts import ROOT
from python_client import ANTHROPIC, CHAT, call, error_of, result, user, view_digest

OUTPUT = "a line of tool output\n" * 200


def run_agent(client, session_id, wire_format, turns):
    """Builds a view before each of `turns` model calls; returns the answers."""
    client.create(session_id, wire_format)
    sent = 0
    pending = [user("do the task")]
    answers = []
    for turn in range(turns):
        answers.append(
            client.build(session_id, pending, expected_sequence=sent)
        )
        sent += len(pending)
        pending = [
            call(turn, wire_format=wire_format),
            result(turn, f"{turn}: {OUTPUT}", wire_format),
        ]
    return answers


@pytest.mark.parametrize("wire_format", [ANTHROPIC, CHAT])
def test_a_session_is_masked_and_stays_prefix_stable(client, session_id, wire_format):
    answers = run_agent(client, session_id, wire_format, 60)
    breaks = 0
    for before, after in zip(answers, answers[1:]):
        report = after.report
        stable = report.stable.message_count
        if report.HasField("break"):
            breaks += 1
            assert stable == getattr(report, "break").sequence
        else:
            assert stable == len(before.messages)
        assert list(after.messages[:stable]) == list(before.messages[:stable])
        assert report.whole.digest == view_digest(after.messages)
        assert report.stable.digest == view_digest(after.messages[:stable])
    assert breaks > 0
    last = answers[-1]
    masked = [m for m in last.messages if b"[tool output masked: " in m]
    assert len(masked) == last.report.masked_count > 0
    ledger = client.get(session_id).ledger
    assert ledger.call_count == 60
    assert ledger.view_cost_pico_usd < ledger.raw_cost_pico_usd
    assert sum(count.count for count in ledger.breaks) == breaks


def test_history_reads_back_byte_for_byte(client, session_id):
    client.create(session_id)
    messages = [
        b'{ "role":"user" , "content":"\\u00e9 \\/ 12345678901234567890123" }',
        '{"content":"日本語 😀","role":"user","x":1e999}'.encode(),
    ]
    client.append(session_id, messages)
    assert client.read(session_id) == messages
    assert list(client.build(session_id).messages) == messages


def test_append_can_be_repeated_with_an_expected_sequence(client, session_id):
    client.create(session_id)
    for _ in range(3):
        answer = client.append(session_id, [user("a"), user("b")], 0)
        assert answer.next_sequence == 2
    # A longer one appends what is missing.
    assert client.append(session_id, [user("b"), user("c")], 1).next_sequence == 3
    assert len(client.read(session_id)) == 3


def test_a_view_asked_for_again_is_the_same_and_counts_once(client, session_id):
    client.create(session_id)
    usage = usage_pb2.Usage(output_tokens=7)
    first = client.build(session_id, [user("a")], expected_sequence=0, usage=usage)
    again = client.build(session_id, [user("a")], expected_sequence=0, usage=usage)
    assert first == again
    ledger = client.get(session_id).ledger
    assert ledger.call_count == 1
    assert ledger.usage_count == 1
    assert ledger.usage.output_tokens == 7


def test_a_dry_run_changes_nothing(client, session_id):
    client.create(session_id)
    dry = client.build(session_id, [user("a")], dry_run=True)
    assert list(dry.messages) == [user("a")]
    got = client.get(session_id)
    assert got.session.message_count == 0
    assert got.ledger.call_count == 0


def test_provider_usage_is_understood_and_absent_is_not_zero(client, session_id):
    client.create(session_id)
    answer = client.views.ReportUsage(
        view_service_pb2.ReportUsageRequest(
            session_id=session_id,
            usage=usage_pb2.Usage(
                provider_json=json.dumps(
                    {"input_tokens": 10, "cache_read_input_tokens": 900}
                ).encode()
            ),
        )
    )
    assert answer.usage.input_uncached_tokens == 10
    assert answer.usage.cache_read_tokens == 900
    assert not answer.usage.HasField("output_tokens")


def test_observations_are_listed_and_read_in_full_when_masked(client, session_id):
    run_agent(client, session_id, ANTHROPIC, 60)
    observations = []
    token = ""
    while True:
        page = client.history.ListObservations(
            history_service_pb2.ListObservationsRequest(
                session_id=session_id, page_size=7, page_token=token
            )
        )
        observations += page.observations
        token = page.next_page_token
        if not token:
            break
    assert len(observations) == 59
    masked = [o for o in observations if o.HasField("placeholder")]
    assert masked and masked[0].tool == "read_file"
    content = b""
    offset = 0
    while True:
        part = client.history.ReadObservation(
            history_service_pb2.ReadObservationRequest(
                session_id=session_id,
                observation_id=masked[0].observation_id,
                offset=offset,
                limit=1000,
            )
        )
        content += part.content
        offset = part.next_offset
        if not offset:
            break
    assert json.loads(content) == f"0: {OUTPUT}"


def test_sessions_are_listed_closed_and_deleted(client):
    names = [f"list-{i:02}" for i in range(5)]
    for name in names:
        client.create(name)
    listed = []
    token = ""
    while True:
        page = client.sessions.ListSessions(
            session_service_pb2.ListSessionsRequest(page_size=2, page_token=token)
        )
        listed += [session.session_id for session in page.sessions]
        token = page.next_page_token
        if not token:
            break
    assert [name for name in listed if name.startswith("list-")] == names
    assert listed == sorted(listed)

    close = session_service_pb2.CloseSessionRequest(
        session_id=names[0], outcome=session_pb2.OUTCOME_FAILED
    )
    for _ in range(2):
        closed = client.sessions.CloseSession(close).session
        assert closed.outcome == session_pb2.OUTCOME_FAILED
        assert closed.HasField("close_time")
    error = error_of(lambda: client.append(names[0], [user("more")]))
    assert error.reason == "SESSION_CLOSED"

    delete = session_service_pb2.DeleteSessionRequest(session_id=names[1])
    client.sessions.DeleteSession(delete)
    error = error_of(lambda: client.sessions.DeleteSession(delete))
    assert error.reason == "SESSION_NOT_FOUND"
    client.create(names[1])
    assert client.read(names[1]) == []


def test_creating_a_session_again_returns_it(client, session_id):
    first = client.create(session_id).session
    assert client.create(session_id).session == first


def test_health_says_serving(server):
    import grpc  # pylint: disable=import-outside-toplevel

    with grpc.insecure_channel(server.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest()
        )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_the_digest_is_that_of_the_published_vectors(client, session_id):
    vectors = ROOT / "proto/clerestory/v1/testdata/view_digest.txt"
    client.create(session_id)
    for line in vectors.read_text(encoding="utf-8").splitlines():
        kind, _, value = line.partition(" ")
        if kind == "message":
            client.append(session_id, [value.encode()])
        elif kind == "digest":
            assert client.build(session_id).report.whole.digest == value
