# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The vendors' own types take every view of what they take.

The sessions are random ones of clerestory_random_views, which is
$CLERESTORY_RANDOM_VIEWS.
"""

import json
import os

import grpc
import pytest
from clerestory.v1 import session_pb2

import sdk_views
import server_process
from python_client import Client

PROGRAM = os.environ["CLERESTORY_RANDOM_VIEWS"]
SEEDS = 60
# Sessions of each format that go through the server, of at least so many steps.
SERVED_SESSIONS = 3
SERVED_STEPS_MIN = 20

CONFIG = """
policy:
  mode: every_turn
  keep_observations: 3
"""


@pytest.fixture(scope="module", name="eager_client")
def client_of_a_server_that_masks_all_it_may(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eager")
    config = folder / "config.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    with server_process.Server(
        folder, "--development", "--config", str(config)
    ) as server:
        with grpc.insecure_channel(server.address) as channel:
            yield Client(channel)


def served_sessions(wire_format):
    """The messages of some sessions, in a list for each step; by seed."""
    sessions = {}
    for entry in sdk_views.views_of(PROGRAM, wire_format, SEEDS):
        ends = entry["steps"]
        if len(ends) >= SERVED_STEPS_MIN:
            messages = [text.encode() for text in entry["history"]]
            sessions[entry["seed"]] = [
                messages[begin:end] for begin, end in zip([0, *ends], ends)
            ]
    return list(sessions.items())[:SERVED_SESSIONS]


@pytest.mark.parametrize("wire_format", sdk_views.CHECKS)
def test_takes_random_histories_and_all_their_views(wire_format):
    found = sdk_views.check_format(PROGRAM, wire_format, SEEDS)
    assert found["errors"] == []
    assert found["refused"] == 0
    assert SEEDS <= found["histories"] == found["views"] <= 2 * SEEDS
    assert found["masked"] > SEEDS / 2


@pytest.mark.parametrize("wire_format", sdk_views.CHECKS)
def test_takes_what_a_server_answers_after_every_step(eager_client, wire_format):
    sessions = served_sessions(wire_format)
    assert len(sessions) == SERVED_SESSIONS
    for seed, steps in sessions:
        session_id = f"{wire_format}-{seed}"
        eager_client.create(session_id, session_pb2.Format.Value(f"FORMAT_{wire_format}"))
        sent = []
        for step in steps:
            answer = eager_client.build(session_id, step, expected_sequence=len(sent))
            sent += step
            sdk_views.CHECKS[wire_format]([json.loads(m) for m in answer.messages])
        assert eager_client.read(session_id) == sent
        assert list(answer.messages) != sent
        assert answer.report.masked_count > 0
