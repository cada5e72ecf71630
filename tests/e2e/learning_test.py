# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learns: what agents fetch again is no longer masked, in a session and for a
tenant, and everybody can see it."""

import json

import pytest
from clerestory.v1 import policy_service_pb2, session_pb2

from driving import document, put, serving
from metrics_test import Scraped
from refetching_agent import RefetchingAgent

EAGER = ("mode: every_turn", "keep: {observations: 3}")
TENANT_ONLY = document(
    *EAGER, "refetch: {session_limit: 0, rate_permille: 130, min_samples: 20}"
)


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "server", "--metrics-address", "127.0.0.1:0") as each:
        yield each


def tools(policies):
    listed = policies.ListTools(policy_service_pb2.ListToolsRequest()).tools
    return {tool.name: tool for tool in listed}


def entries(client, session_id):
    return {entry.tool: entry for entry in client.get(session_id).ledger.tools}


def refetches(client, session_id, tool="Read"):
    counts = {
        each.kind: each.count for each in entries(client, session_id)[tool].repeats
    }
    return counts.get(session_pb2.REPEAT_KIND_REFETCH, 0)


def teach(client, sessions=4, turns=20):
    for i in range(sessions):
        RefetchingAgent(client, f"teaching-{i}", 0.6, seed=i).go_on(turns)


def test_two_refetches_unmask_a_tool_in_its_session(served):
    _, client, policies = served
    put(policies, document(*EAGER, "refetch: {min_samples: 100000}"))
    agent = RefetchingAgent(client, "s", refetch_rate=1.0)
    agent.go_on(8)
    assert refetches(client, "s") >= 2
    assert entries(client, "s")["Read"].is_unmasked
    assert "Read" in agent.answer.report.unmasked_tools
    masked = agent.masked_tools()
    agent.go_on(8)
    after = agent.masked_tools()
    assert after.get("Read", 0) <= masked.get("Read", 0)
    assert after["Lookup"] > masked["Lookup"], "others are masked as before"
    assert not entries(client, "s")["Lookup"].is_unmasked


def test_what_is_unmasked_is_shown_again_at_the_next_break(served):
    _, client, policies = served
    put(policies, document(*EAGER, "refetch: {min_samples: 100000}"))
    agent = RefetchingAgent(client, "s", refetch_rate=1.0)
    agent.go_on(8)
    restored = 0
    for _ in range(6):
        before = list(agent.answer.messages)
        agent.go_on(1)
        brk = agent.answer.report
        if brk.HasField("break"):
            masks = getattr(brk, "break").masks
            restored += sum(mask.is_restored for mask in masks)
        else:
            assert list(agent.answer.messages)[: len(before)] == before
    assert client.get("s").ledger.restore_count >= restored


def test_a_tenant_stops_masking_what_its_agents_fetch_again(served):
    server, client, policies = served
    put(policies, TENANT_ONLY)
    teach(client)
    learned = tools(policies)
    assert learned["Read"].state == policy_service_pb2.TOOL_STATE_UNMASKED
    assert learned["Read"].rate_low_ppm > learned["Read"].break_even_ppm
    assert learned["Lookup"].state != policy_service_pb2.TOOL_STATE_UNMASKED
    assert learned["Lookup"].refetched_count == 0

    agent = RefetchingAgent(client, "after", refetch_rate=0.6, seed=99)
    agent.go_on(12)
    masked = agent.masked_tools()
    assert "Read" not in masked
    assert masked["Lookup"] > 0
    assert entries(client, "after")["Read"].is_unmasked
    assert list(agent.answer.report.unmasked_tools) == ["Read"]

    scraped = Scraped(server)
    labels = {"tenant": "default", "tool": "Read"}
    assert scraped.value("clerestory_breaker_state", **labels) == 2
    changed = "clerestory_breaker_transitions_total"
    assert scraped.value(changed, **labels, **{"from": "closed", "to": "open"}) == 1
    counted = sum(
        value
        for key, value in scraped.values.items()
        if key[0] == "clerestory_tool_observations_total" and ("event", "refetch") in key
    )
    assert counted >= learned["Read"].refetched_count
    lines = [e for e in server.entries() if e["event"] == "tool_state_changed"]
    assert [(e["tool"], e["to"]) for e in lines] == [("Read", "unmasked")]


def test_what_was_learned_survives_kill_9_and_a_reset_forgets_it(tmp_path):
    folder = tmp_path / "server"
    with serving(folder) as (server, client, policies):
        put(policies, TENANT_ONLY)
        teach(client)
        before = tools(policies)["Read"]
        assert before.state == policy_service_pb2.TOOL_STATE_UNMASKED
        server.kill()
    with serving(folder) as (_, client, policies):
        after = tools(policies)["Read"]
        assert after.state == before.state
        assert after.masked_count == before.masked_count
        policies.ResetTool(policy_service_pb2.ResetToolRequest(name="Read"))
        agent = RefetchingAgent(client, "after", refetch_rate=0)
        agent.go_on(8)
        assert agent.masked_tools()["Read"] > 0


def test_appends_that_are_repeated_teach_nothing_twice(served):
    _, client, policies = served
    put(policies, TENANT_ONLY)
    agent = RefetchingAgent(client, "s", refetch_rate=1.0)
    agent.go_on(6)
    before = refetches(client, "s")
    history = client.read("s")
    again = client.append("s", history[-2:], expected_sequence=len(history) - 2)
    assert again.next_sequence == len(history)
    assert refetches(client, "s") == before
    assert before > 0
    assert json.loads(history[-1])["role"] == "user"
