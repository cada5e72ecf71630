# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Policies of tenants: by RPC, and from a directory that is watched."""

import os
import signal
import subprocess
import time

import grpc
import pytest
from clerestory.v1 import (
    policy_service_pb2,
    session_pb2,
    session_service_pb2,
)
from google.protobuf import timestamp_pb2
from google.rpc import error_details_pb2, status_pb2

import server_process
from driving import OUTPUT, Agent, document, put, serving, wait_until
from python_client import call, error_of, result, user

SOURCE = policy_service_pb2.PolicySource


OFF = document("mode: off")
EVERY_TURN = document("mode: every_turn", "keep: {observations: 3}")
BLOCK = document("mode: block", "block: {size: 3}", "keep: {observations: 3}")
BAD = document("mode: block", "colour: blue", "block: {size: 0}")


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "server") as all_of_it:
        yield all_of_it


def get(policies, source=SOURCE.POLICY_SOURCE_UNSPECIFIED):
    return policies.GetPolicy(
        policy_service_pb2.GetPolicyRequest(source=source)
    ).policy


def delete(policies, **fields):
    policies.DeletePolicy(policy_service_pb2.DeletePolicyRequest(**fields))


def violations_of(function):
    """The (field, description) of each violation of the error of `function()`."""
    with pytest.raises(grpc.RpcError) as caught:
        function()
    status = status_pb2.Status()
    bad = error_details_pb2.BadRequest()
    for key, value in caught.value.trailing_metadata():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    for detail in status.details:
        detail.Unpack(bad)
    return [(each.field, each.description) for each in bad.field_violations]


def test_a_tenant_without_a_document_has_the_servers(served):
    _, _, policies = served
    there = get(policies)
    assert there.source == SOURCE.POLICY_SOURCE_BUILT_IN
    assert there.name == "default"
    assert not there.HasField("update_time")
    for source in (SOURCE.POLICY_SOURCE_STORED, SOURCE.POLICY_SOURCE_FILE):
        error = error_of(lambda source=source: get(policies, source))
        assert error.code == grpc.StatusCode.NOT_FOUND
        assert error.reason == "POLICY_NOT_FOUND"
    listed = policies.ListPolicies(policy_service_pb2.ListPoliciesRequest())
    assert [policy.source for policy in listed.policies] == [
        SOURCE.POLICY_SOURCE_BUILT_IN
    ]
    # What it says of itself says the same when it is stored.
    assert put(policies, there.yaml).digest == there.digest


def test_a_stored_document_is_in_force_at_once_and_after_kill_9(tmp_path):
    with serving(tmp_path) as (server, client, policies):
        agent = Agent(client, "s")
        before = agent.go_on()
        stored = put(policies, EVERY_TURN, etag="")
        assert stored.yaml == EVERY_TURN
        assert stored.source == SOURCE.POLICY_SOURCE_STORED
        after = agent.go_on(8)
        assert after.report.policy_digest != before.report.policy_digest
        assert after.report.masked_count > 0
        listed = policies.ListPolicies(policy_service_pb2.ListPoliciesRequest())
        assert after.report.policy_digest == listed.policies[0].digest
        server.kill()
    with serving(tmp_path) as (server, client, policies):
        assert get(policies) == stored
        again = client.build("s")
        assert list(again.messages) == list(after.messages)
        assert again.report.policy_digest == after.report.policy_digest
        delete(policies, etag=stored.etag)
        assert get(policies).source == SOURCE.POLICY_SOURCE_BUILT_IN
        error = error_of(lambda: delete(policies))
        assert error.reason == "POLICY_NOT_FOUND"


def test_a_document_is_replaced_only_where_it_is_the_expected_one(served):
    _, _, policies = served
    first = put(policies, OFF, etag="")
    for function in (
        lambda: put(policies, BLOCK, etag=""),
        lambda: put(policies, BLOCK, etag="", validate_only=True),
        lambda: put(policies, BLOCK, etag="another"),
        lambda: delete(policies, etag="another"),
    ):
        error = error_of(function)
        assert error.code == grpc.StatusCode.ABORTED
        assert error.reason == "POLICY_CONFLICT"
        assert error.metadata["etag"] == first.etag
    second = put(policies, BLOCK, etag=first.etag)
    assert second.etag != first.etag
    assert put(policies, OFF).etag == first.etag


def test_a_bad_document_is_refused_with_every_place(served):
    _, _, policies = served
    stored = put(policies, OFF)
    for fields in ({}, {"validate_only": True}):
        error = error_of(lambda fields=fields: put(policies, BAD, **fields))
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT
        assert error.reason == "POLICY_INVALID"
        violations = violations_of(lambda fields=fields: put(policies, BAD, **fields))
        assert [field for field, _ in violations] == [
            "policies[0]",
            "policies[0].block.size",
        ]
        assert [what.split(": ")[0] for _, what in violations] == ["4:5", "5:19"]
    assert get(policies) == stored


def test_a_document_with_very_many_problems_still_has_an_answer(served):
    _, _, policies = served
    bad = document(*(f"unknown_key_number_{i}: 1" for i in range(5000)))
    violations = violations_of(lambda: put(policies, bad))
    assert 5 < len(violations) < 200
    assert "more; correct these first" in violations[-1][1]


def test_validating_stores_nothing(served):
    _, _, policies = served
    validated = put(policies, OFF, validate_only=True)
    assert validated.yaml == OFF
    assert get(policies).source == SOURCE.POLICY_SOURCE_BUILT_IN


def test_checking_plays_a_stored_session_and_changes_nothing(served):
    _, client, policies = served
    put(policies, OFF)
    agent = Agent(client, "s")
    before = agent.go_on(12)
    checked = policies.CheckPolicy(
        policy_service_pb2.CheckPolicyRequest(yaml=EVERY_TURN, session_id="s")
    )
    assert checked.candidate.yaml == EVERY_TURN
    present, candidate = checked.present_trial, checked.candidate_trial
    # The last view has no answer yet.
    assert present.call_count == candidate.call_count == 11
    assert not present.breaks
    assert present.cost_pico_usd == present.raw_cost_pico_usd
    assert present.policy.digest == before.report.policy_digest
    assert candidate.raw_cost_pico_usd == present.raw_cost_pico_usd
    assert candidate.breaks
    for each in candidate.breaks:
        assert each.reason == session_pb2.BREAK_REASON_SCHEDULE or (
            each.reason == session_pb2.BREAK_REASON_CACHE_COLD
        )
        assert each.observation_ids
        assert each.saved_tokens > 0
    assert candidate.input.read + candidate.input.written < (
        present.input.read + present.input.written
    )
    assert get(policies).yaml == OFF
    assert client.build("s").report.masked_count == 0


def test_checking_plays_messages_that_are_posted(served):
    _, _, policies = served
    messages = [user("do the task")]
    for turn in range(12):
        messages += [call(turn), result(turn, f"{turn}: {OUTPUT}")]
    posted = policy_service_pb2.PostedSession(
        format=session_pb2.FORMAT_ANTHROPIC_MESSAGES,
        model="claude-sonnet-4-6",
        labels={"app": "demo"},
        messages=[
            policy_service_pb2.PostedMessage(
                message=message,
                time=timestamp_pb2.Timestamp(seconds=1_790_000_000 + i),
            )
            for i, message in enumerate(messages)
        ],
    )
    checked = policies.CheckPolicy(
        policy_service_pb2.CheckPolicyRequest(yaml=BLOCK, posted=posted)
    )
    assert checked.candidate_trial.call_count == 12
    assert checked.candidate_trial.breaks
    assert checked.present_trial.call_count == 12

    posted.messages[3].message = b"[]"
    request = policy_service_pb2.CheckPolicyRequest(yaml=BLOCK, posted=posted)
    error = error_of(lambda: policies.CheckPolicy(request))
    assert error.reason == "MESSAGE_INVALID"
    assert error.field == "posted.messages[3]"


def test_checking_says_what_is_missing_or_wrong(served):
    _, _, policies = served
    for request, reason in (
        (policy_service_pb2.CheckPolicyRequest(), "FIELD_INVALID"),
        (
            policy_service_pb2.CheckPolicyRequest(yaml=OFF, session_id="none"),
            "SESSION_NOT_FOUND",
        ),
        (
            policy_service_pb2.CheckPolicyRequest(yaml=document("mode: pink")),
            "POLICY_INVALID",
        ),
    ):
        error = error_of(lambda request=request: policies.CheckPolicy(request))
        assert error.reason == reason


def test_labels_are_kept_and_part_of_what_a_session_is_created_with(served):
    _, client, _ = served

    def create(labels):
        return client.sessions.CreateSession(
            session_service_pb2.CreateSessionRequest(
                session_id="s",
                format=session_pb2.FORMAT_OPENAI_CHAT,
                labels=labels,
            )
        ).session

    labels = {"app": "demo", "team/name": "a@b:8+c"}
    assert create(labels).labels == labels
    assert create(labels).labels == labels
    assert client.get("s").session.labels == labels
    assert error_of(lambda: create({})).reason == "SESSION_EXISTS"
    assert error_of(lambda: create({"a b": "c"})).field == "labels"
    assert error_of(lambda: create({"a": "b c"})).field == "labels[a]"


def test_a_directory_is_watched_and_its_files_are_the_tenants(tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    file = folder / "default.yaml"
    file.write_bytes(OFF)
    with serving(tmp_path, "--policy-dir", str(folder)) as (server, client, policies):
        assert get(policies).source == SOURCE.POLICY_SOURCE_FILE
        agent = Agent(client, "s")
        before = agent.go_on(8)
        assert before.report.masked_count == 0

        # As an editor writes: beside it, and then in its place.
        (folder / ".new").write_bytes(EVERY_TURN)
        os.replace(folder / ".new", file)
        wait_until(lambda: get(policies).yaml == EVERY_TURN)
        masked = agent.go_on()
        assert masked.report.policy_digest != before.report.policy_digest
        assert masked.report.masked_count > 0

        # What is masked stays masked, with the same bytes.
        file.write_bytes(OFF)
        wait_until(lambda: get(policies).yaml == OFF)
        after = agent.go_on(2)
        assert after.report.policy_digest == before.report.policy_digest
        assert after.report.masked_count == masked.report.masked_count
        assert list(after.messages)[: len(masked.messages)] == list(masked.messages)

        # What is stored wins, and the file is there when it is gone.
        put(policies, BLOCK)
        assert get(policies).source == SOURCE.POLICY_SOURCE_STORED
        assert get(policies, SOURCE.POLICY_SOURCE_FILE).yaml == OFF
        delete(policies)
        assert get(policies).source == SOURCE.POLICY_SOURCE_FILE

        file.unlink()
        wait_until(lambda: get(policies).source == SOURCE.POLICY_SOURCE_BUILT_IN)
        assert server.stop() == 0


def test_the_swap_of_a_config_map_is_one_change(tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()

    def publish(name, yaml):
        """As the kubelet does it."""
        (folder / name).mkdir()
        (folder / name / "default.yaml").write_bytes(yaml)
        os.symlink(name, folder / "..data_tmp")
        os.rename(folder / "..data_tmp", folder / "..data")

    publish("..2026_11_30_1", OFF)
    os.symlink("..data/default.yaml", folder / "default.yaml")
    with serving(tmp_path, "--policy-dir", str(folder)) as (_, client, policies):
        agent = Agent(client, "s")
        before = agent.go_on()
        publish("..2026_11_30_2", BLOCK)
        wait_until(lambda: get(policies).yaml == BLOCK)
        after = agent.go_on()
        assert after.report.policy_digest != before.report.policy_digest
        assert get(policies).source == SOURCE.POLICY_SOURCE_FILE


def test_a_bad_version_keeps_the_good_one_and_is_logged_once(tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    file = folder / "default.yaml"
    file.write_bytes(OFF)
    with serving(tmp_path, "--policy-dir", str(folder)) as (server, _, policies):

        def refused():
            return [e for e in server.entries() if e["event"] == "file_refused"]

        file.write_bytes(BAD)
        wait_until(lambda: len(refused()) == 2)
        assert [(entry["line"], entry["column"]) for entry in refused()] == [
            (4, 5),
            (5, 19),
        ]
        assert refused()[0]["message"].startswith(
            f'{file}:4:5: policies[0]: unknown name "colour"'
        )
        assert get(policies).yaml == OFF

        # Read again at once, and not logged again.
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: any(e["event"] == "reloading" for e in server.entries()))
        time.sleep(0.3)
        assert len(refused()) == 2
        assert get(policies).yaml == OFF

        file.write_bytes(BLOCK)
        wait_until(lambda: get(policies).yaml == BLOCK)


def test_sighup_reads_files_again_and_stops_nothing(tmp_path):
    # A directory that comes back is seen by then at the latest.
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "default.yaml").write_bytes(OFF)
    with serving(tmp_path, "--policy-dir", str(folder)) as (server, client, policies):
        os.rename(folder, tmp_path / "away")
        time.sleep(0.3)
        assert get(policies).yaml == OFF
        os.rename(tmp_path / "away", folder)
        (folder / "default.yaml").write_bytes(BLOCK)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: get(policies).yaml == BLOCK)
        assert Agent(client, "s").go_on().messages
        assert server.stop() == 0


def test_sighup_without_a_directory_stops_nothing(served):
    server, client, _ = served
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any(e["event"] == "reloading" for e in server.entries()))
    assert Agent(client, "s").go_on().messages


def test_a_bad_file_at_the_start_is_an_error_with_every_place(tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.yaml").write_bytes(BAD)
    (folder / "b.yaml").write_bytes(document("mode: pink"))
    ran = subprocess.run(
        [
            str(server_process.BIN / "clerestory-server"),
            *("--listen", "127.0.0.1:0", "--store", "memory"),
            *("--policy-dir", str(folder)),
        ],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ran.returncode != 0
    assert f'{folder}/a.yaml:4:5: policies[0]: unknown name "colour"' in ran.stderr
    assert f"{folder}/b.yaml:3:11: policies[0].mode" in ran.stderr
