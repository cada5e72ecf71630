# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whatever is sent, the answer says what was wrong, nothing is stored in part,
and the server goes on."""

import datetime

import grpc
import pytest
from clerestory.v1 import (
    history_service_pb2,
    session_pb2,
    session_service_pb2,
    usage_pb2,
    view_service_pb2,
)

from python_client import CHAT, call, error_of, result, user

SECRET = "planted-secret-4711"

BAD_MESSAGES = {
    "not JSON": (b"hello " + SECRET.encode(), "MESSAGE_INVALID"),
    "empty": (b"", "MESSAGE_INVALID"),
    "an array": (b'[{"role":"user"}]', "MESSAGE_INVALID"),
    "a number": (b"12", "MESSAGE_INVALID"),
    "no role": (b'{"content":"x"}', "MESSAGE_INVALID"),
    "an unknown role": (b'{"role":"wizard","content":"x"}', "MESSAGE_INVALID"),
    "no content": (b'{"role":"user"}', "MESSAGE_INVALID"),
    "cut off": (b'{"role":"user","content":"' + SECRET.encode(), "MESSAGE_INVALID"),
    "a lone surrogate": (b'{"role":"user","content":"\\ud800"}', "MESSAGE_INVALID"),
    "invalid UTF-8": (b'{"role":"user","content":"\xff"}', "MESSAGE_INVALID"),
    "a depth bomb": (
        b'{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "MESSAGE_INVALID",
    ),
    "a name twice": (b'{"role":"user","role":"assistant","content":""}',
                     "MESSAGE_INVALID"),
    "two values": (b'{"role":"user","content":"x"} {}', "MESSAGE_INVALID"),
    "a call without a name": (
        b'{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}',
        "MESSAGE_INVALID",
    ),
    "a result without a call": (result(99, SECRET), "RESULT_WITHOUT_CALL"),
    "65 MB": (user("x" * 65_000_000), "MESSAGE_TOO_LARGE"),
}


@pytest.mark.parametrize("kind", BAD_MESSAGES)
def test_a_bad_message_is_refused_whole(client, session_id, kind):
    message, reason = BAD_MESSAGES[kind]
    client.create(session_id)
    client.append(session_id, [user("before")])
    for attempt in (
        lambda: client.append(session_id, [user("good"), message], 1),
        lambda: client.build(session_id, [user("good"), message], expected_sequence=1),
    ):
        error = error_of(attempt)
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT
        assert error.reason == reason
        assert error.domain == "clerestory.dev"
        assert error.metadata["field"] == error.field == "messages[1]"
        assert SECRET not in error.message
    # Nothing was stored, and the session goes on.
    assert client.read(session_id) == [user("before")]
    assert client.append(session_id, [user("after")], 1).next_sequence == 2


def test_an_unknown_session_is_not_found(client):
    for attempt in (
        lambda: client.get("nobody"),
        lambda: client.append("nobody", [user("x")]),
        lambda: client.build("nobody"),
        lambda: client.read("nobody"),
    ):
        error = error_of(attempt)
        assert error.code == grpc.StatusCode.NOT_FOUND
        assert error.reason == "SESSION_NOT_FOUND"
        assert error.metadata["session_id"] == "nobody"


@pytest.mark.parametrize(
    "name", ["", "a" * 129, "a b", "a/b", "é", "../x", "a\0b", "a\n"]
)
def test_a_malformed_session_id_is_refused(client, name):
    error = error_of(lambda: client.create(name))
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == "FIELD_INVALID"
    assert error.field == "session_id"


def test_a_second_session_of_the_same_id_is_refused(client, session_id):
    client.create(session_id)
    for attempt in (
        lambda: client.create(session_id, CHAT),
        lambda: client.create(session_id, model="another"),
    ):
        error = error_of(attempt)
        assert error.code == grpc.StatusCode.ALREADY_EXISTS
        assert error.reason == "SESSION_EXISTS"
        assert error.metadata["session_id"] == session_id


def test_an_empty_append_is_refused(client, session_id):
    client.create(session_id)
    error = error_of(lambda: client.append(session_id, []))
    assert (error.reason, error.field) == ("FIELD_INVALID", "messages")


def test_a_wrong_expected_sequence_says_where_to_go_on(client, session_id):
    client.create(session_id)
    client.append(session_id, [user("a"), user("b")])
    gap = error_of(lambda: client.append(session_id, [user("c")], 5))
    assert (gap.code, gap.reason) == (grpc.StatusCode.ABORTED, "SEQUENCE_GAP")
    assert gap.metadata["next_sequence"] == "2"
    conflict = error_of(lambda: client.append(session_id, [user("a"), user("x")], 0))
    assert conflict.code == grpc.StatusCode.ABORTED
    assert conflict.reason == "APPEND_CONFLICT"
    assert conflict.metadata["sequence"] == "1"
    assert conflict.metadata["next_sequence"] == "2"
    negative = error_of(lambda: client.append(session_id, [user("a")], -1))
    assert (negative.reason, negative.field) == ("FIELD_INVALID", "expected_sequence")
    assert client.read(session_id) == [user("a"), user("b")]


def test_fields_out_of_range_are_refused(client, session_id):
    client.create(session_id)
    cases = {
        "format": lambda: client.create("x", session_pb2.FORMAT_UNSPECIFIED),
        "model": lambda: client.create("x", model="m" * 129),
        "preamble_tokens": lambda: client.build(session_id, preamble_tokens=-1),
        "page_size": lambda: client.sessions.ListSessions(
            session_service_pb2.ListSessionsRequest(page_size=-1)
        ),
        "outcome": lambda: client.sessions.CloseSession(
            session_service_pb2.CloseSessionRequest(session_id=session_id)
        ),
        "start_sequence": lambda: list(
            client.history.ReadHistory(
                history_service_pb2.ReadHistoryRequest(
                    session_id=session_id, start_sequence=1
                )
            )
        ),
        "observation_id": lambda: client.history.ReadObservation(
            history_service_pb2.ReadObservationRequest(
                session_id=session_id, observation_id="x"
            )
        ),
        "usage": lambda: client.views.ReportUsage(
            view_service_pb2.ReportUsageRequest(session_id=session_id)
        ),
    }
    for field, attempt in cases.items():
        error = error_of(attempt)
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT, field
        assert (error.reason, error.field) == ("FIELD_INVALID", field)


def test_an_unknown_observation_is_not_found(client, session_id):
    client.create(session_id)
    client.append(session_id, [call(0), result(0, "x")])
    error = error_of(
        lambda: client.history.ReadObservation(
            history_service_pb2.ReadObservationRequest(
                session_id=session_id, observation_id="1.1"
            )
        )
    )
    assert error.reason == "OBSERVATION_NOT_FOUND"
    assert error.metadata["observation_id"] == "1.1"


def test_a_page_token_of_another_list_is_refused(client, session_id):
    client.create(session_id)
    for token in ("x", "AAAA", "e30="):
        error = error_of(
            lambda token=token: client.sessions.ListSessions(
                session_service_pb2.ListSessionsRequest(page_token=token)
            )
        )
        assert error.reason == "PAGE_TOKEN_INVALID"


@pytest.mark.parametrize(
    "usage",
    [
        usage_pb2.Usage(output_tokens=-1),
        usage_pb2.Usage(provider_json=b"[]"),
        usage_pb2.Usage(provider_json=b'{"output_tokens":-1}'),
        usage_pb2.Usage(provider_json=b"{"),
    ],
)
def test_bad_usage_is_refused_and_nothing_is_appended(client, session_id, usage):
    client.create(session_id)
    error = error_of(lambda: client.build(session_id, [user("a")], usage=usage))
    assert error.reason == "USAGE_INVALID"
    assert client.read(session_id) == []


def test_bytes_that_are_no_request_are_refused(server):
    with grpc.insecure_channel(server.address) as channel:
        for method in ("ViewService/BuildView", "HistoryService/AppendMessages"):
            attempt = channel.unary_unary(f"/clerestory.v1.{method}")
            with pytest.raises(grpc.RpcError) as failed:
                attempt(b"\xff\xff\xff")
            assert failed.value.code() in (
                grpc.StatusCode.INVALID_ARGUMENT,
                # What gRPC itself answers where it parses.
                grpc.StatusCode.UNIMPLEMENTED,
            )


def test_a_call_may_bring_its_time_in_development_mode_only(
    tmp_path, client, session_id
):
    import server_process  # pylint: disable=import-outside-toplevel
    from python_client import Client  # pylint: disable=import-outside-toplevel

    time = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    client.create(session_id)
    client.build(session_id, [user("a")], call_time=time)
    with server_process.Server(tmp_path) as strict:
        with grpc.insecure_channel(strict.address) as channel:
            other = Client(channel)
            other.create("s")
            error = error_of(lambda: other.build("s", [user("a")], call_time=time))
            assert error.code == grpc.StatusCode.FAILED_PRECONDITION
            assert error.reason == "CALL_TIME_REFUSED"
            assert other.read("s") == []


def test_no_log_line_holds_what_was_sent(server):
    for entry in server.entries():
        assert SECRET not in str(entry)
    assert any(entry["event"] == "call_failed" for entry in server.entries())
