# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether masking helps: sessions of both arms, closed, and the report on them."""

import grpc
import pytest
from clerestory.v1 import (
    report_service_pb2,
    report_service_pb2_grpc,
    session_pb2,
    session_service_pb2,
)
from google.protobuf import timestamp_pb2

import server_process
from driving import Agent, document, put, serving
from python_client import error_of

ARM = report_service_pb2
HALF = document(
    "mode: every_turn",
    "keep: {observations: 3}",
    "control: {share_permille: 500}",
)
# 200 lines of words that nothing refers to later.
OUTPUT = "".join(f"kept_{line:05} and more\n" for line in range(200))
TURNS = 8
SESSIONS = 40


def close(client, session_id, outcome):
    client.sessions.CloseSession(
        session_service_pb2.CloseSessionRequest(
            session_id=session_id, outcome=outcome
        )
    )


def report(address, **fields):
    with grpc.insecure_channel(address) as channel:
        return report_service_pb2_grpc.ReportServiceStub(channel).TenantReport(
            report_service_pb2.TenantReportRequest(**fields)
        )


def arms_of(answer):
    return {arm.arm: arm for arm in answer.arms}


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A server with closed sessions, whose ids are known by arm."""
    folder = tmp_path_factory.mktemp("report")
    arms = {True: [], False: []}
    with serving(folder) as (server, client, policies):
        put(policies, HALF)
        for number in range(SESSIONS):
            session_id = f"s{number:03}"
            agent = Agent(
                client, session_id, OUTPUT, labels={"app": f"a{number % 2}"}
            )
            answer = agent.go_on(TURNS)
            arms[answer.report.is_control].append(session_id)
            outcome = (
                session_pb2.OUTCOME_FAILED
                if number % 4 == 3
                else session_pb2.OUTCOME_RESOLVED
            )
            close(client, session_id, outcome)
        Agent(client, "still-open").go_on(1)
        before = report(server.address)
        server.kill()
    with server_process.Server(folder) as server:
        yield server, arms, before


def test_the_report_survives_kill_9(reported):
    server, _, before = reported
    assert report(server.address) == before


def test_sessions_are_in_the_arm_that_they_were_served_in(reported):
    server, ids, _ = reported
    answer = report(server.address)
    assert answer.scanned_session_count == SESSIONS + 1
    assert answer.open_session_count == 1
    assert not answer.next_page_token
    arms = arms_of(answer)
    masked, control = arms[ARM.SESSION_ARM_MASKED], arms[ARM.SESSION_ARM_CONTROL]
    assert set(arms) == {ARM.SESSION_ARM_MASKED, ARM.SESSION_ARM_CONTROL}
    assert masked.session_count == len(ids[False]) > 5
    assert control.session_count == len(ids[True]) > 5
    for arm in (masked, control):
        assert arm.call_count == TURNS * arm.session_count
        assert arm.observation_count == (TURNS - 1) * arm.session_count
        assert arm.turns_per_session_thousandths.value == (TURNS - 1) * 1000
        assert arm.resolved_count + arm.failed_count == arm.session_count
        rate = arm.resolved_rate_ppm
        assert 0 < rate.low < rate.value < rate.high < 1_000_000
        cost = arm.cost_per_resolved_session_micro_usd
        total = arm.view_cost_pico_usd + arm.output_cost_pico_usd
        assert abs(cost.value - total // arm.resolved_count // 10**6) < 100
        assert cost.low < cost.value < cost.high
    assert control.masked_count == 0
    assert not control.HasField("refetch_rate_ppm")
    assert control.view_tokens == control.raw_tokens
    assert masked.masked_count > masked.session_count
    assert masked.view_tokens < masked.raw_tokens
    assert masked.refetch_rate_ppm.value <= masked.refetch_rate_ppm.high
    # Fewer than 30 in an arm say nothing yet.
    assert answer.comparison.verdict == ARM.MASKING_VERDICT_UNSPECIFIED
    assert answer.comparison.HasField("cost_difference_micro_usd")


def test_what_is_read_for_nothing_is_told_by_tool(reported):
    server, _, _ = reported
    (tool,) = report(server.address).tools
    assert tool.observation_count == SESSIONS * (TURNS - 1)
    # Only the first of a session has words that are new, and it is named by
    # nothing.
    assert tool.judged_count == tool.unreferenced_count == SESSIONS
    assert ARM.TOOL_ADVICE_READ_LESS in tool.advice


def test_labels_and_times_choose_sessions(reported):
    server, _, _ = reported

    def count(**fields):
        return sum(
            arm.session_count for arm in report(server.address, **fields).arms
        )

    early = timestamp_pb2.Timestamp(seconds=1)
    assert count() == SESSIONS
    assert count(labels={"app": "a0"}) == SESSIONS / 2
    assert count(labels={"app": "other"}) == 0
    assert count(close_time_from=early) == SESSIONS
    assert count(close_time_before=early) == 0


def test_what_is_wrong_is_named(reported):
    server, _, _ = reported
    late = timestamp_pb2.Timestamp(seconds=2)
    for fields, field, reason in (
        (
            {"close_time_from": late, "close_time_before": late},
            "close_time_before",
            "FIELD_INVALID",
        ),
        ({"labels": {"a b": "c"}}, "labels", "FIELD_INVALID"),
        ({"page_token": "x"}, "page_token", "PAGE_TOKEN_INVALID"),
    ):
        error = error_of(lambda fields=fields: report(server.address, **fields))
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT
        assert error.reason == reason
        assert error.metadata["field"] == field
