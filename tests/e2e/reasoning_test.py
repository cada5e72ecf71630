# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reasoning that its provider binds to what stands before it."""

import json

import pytest

from driving import document, put, serving
from python_client import call, dumps, result, user

EVERY_TURN = document("mode: every_turn", "keep: {observations: 3}")
BOUND = "claude-sonnet-5-5"


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "server") as all_of_it:
        yield all_of_it


def thinking_call(number):
    """An assistant message that thinks and then calls a tool."""
    message = json.loads(call(number))
    thought = {"type": "thinking", "thinking": f"hm {number}", "signature": "Eq"}
    message["content"].insert(0, thought)
    return dumps(message)


def thoughtful_session(client, session_id):
    """Three turns with reasoning, and then some without; returns the views."""
    client.create(session_id, model=BOUND)
    views = [client.build(session_id, [user("go")])]
    for turn in range(7):
        make = thinking_call if turn < 3 else call
        views.append(
            client.build(session_id, [make(turn), result(turn, "a line\n" * 500)])
        )
    return views


def thoughts_of(view):
    return [i for i in range(3) if f"hm {i}".encode() in b"".join(view.messages)]


def test_reasoning_behind_a_break_is_left_out_and_never_comes_back(tmp_path):
    with serving(tmp_path) as (server, client, policies):
        put(policies, EVERY_TURN)
        views = thoughtful_session(client, "s")
        assert [thoughts_of(view) for view in views[:5]] == [
            [],
            [0],
            [0, 1],
            [0, 1, 2],
            [0],
        ]
        made = getattr(views[4].report, "break")
        assert (made.sequence, made.stripped_from) == (2, 3)
        last = views[-1]
        assert not last.report.needs_drop_block
        server.kill()
    with serving(tmp_path) as (_, client, policies):
        assert list(client.build("s").messages) == list(last.messages)
        for number, (yaml, model) in enumerate(
            [
                (document("mode: off"), BOUND),
                (document("mode: every_turn", "thinking: drop_block"), BOUND),
                (document("mode: every_turn", "thinking: avoid"), BOUND),
                (EVERY_TURN, "claude-sonnet-4-6"),
            ]
        ):
            put(policies, yaml)
            view = client.build("s", [user(f"so? {number}")], model=model)
            assert thoughts_of(view) == [0]
        assert len(client.read("s")) == len(last.messages) + 4


def test_a_drop_block_is_asked_for_once_there_is_stale_reasoning(served):
    _, client, policies = served
    put(policies, EVERY_TURN + b"    thinking: drop_block\n")
    views = thoughtful_session(client, "s")
    assert [view.report.needs_drop_block for view in views] == [False] * 4 + [True] * 4
    assert views[-1].report.masked_count > 0
    assert thoughts_of(views[-1]) == [0, 1, 2]
    # A model that binds nothing needs none.
    other = client.build("s", [user("so?")], model="claude-sonnet-4-6")
    assert not other.report.needs_drop_block


def test_no_break_is_made_in_front_of_reasoning_that_is_to_be_kept(served):
    _, client, policies = served
    put(policies, EVERY_TURN + b"    thinking: avoid\n")
    views = thoughtful_session(client, "s")
    assert thoughts_of(views[-1]) == [0, 1, 2]
    for view in views:
        for mask in getattr(view.report, "break").masks:
            assert int(mask.observation_id.split(".")[0]) > 5
