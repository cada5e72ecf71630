# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""An agent reads back what was masked, and has things kept from being masked."""

import json

import grpc
import pytest
from clerestory.v1 import session_pb2, session_service_pb2

import sdk_types
from driving import Agent, document, put, serving
from python_client import call, dumps, error_of, user

# All but the newest three, in every turn.
EVERY_TURN = document("mode: every_turn", "keep: {observations: 3}")

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 64},
}


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "server") as (server, client, policies):
        put(policies, EVERY_TURN)
        yield server, client, policies


def recalling(client, session_id="s", **header):
    """An agent that has the tool; its n-th observation is `2n.0`."""
    return Agent(client, session_id, recall_tool=True, **header)


def whole(client, session_id, observation_id, limit):
    """All parts of an observation, read in pages."""
    parts = []
    offset = 0
    while True:
        page = client.recall(session_id, observation_id, offset, limit)
        parts += page.parts
        offset = page.next_offset
        if not offset:
            return parts, page.total_bytes


def close(client, session_id):
    client.sessions.CloseSession(
        session_service_pb2.CloseSessionRequest(
            session_id=session_id, outcome=session_pb2.OUTCOME_RESOLVED
        )
    )


def tool_of(client, session_id, name="read_file"):
    (entry,) = [
        tool for tool in client.ledger(session_id).tools if tool.tool == name
    ]
    return entry


def test_a_placeholder_says_what_to_recall_and_that_is_what_comes(served):
    _, client, _ = served
    agent = recalling(client)
    view = agent.go_on(8)
    placeholder = client.observations("s")[0].placeholder
    assert placeholder.endswith("] (recall id 2.0)")
    assert placeholder in view.messages[2].decode()
    text = f"1: {agent.output}"
    page = client.recall("s", "2.0")
    assert [part.text for part in page.parts] == [text]
    assert page.is_masked and page.tool == "read_file" and not page.is_error
    assert page.total_bytes == len(text)
    assert page.next_offset == 0
    # In small pages it is the same.
    parts, total = whole(client, "s", "2.0", 1000)
    assert len(parts) == -(-len(text) // 1000)
    assert "".join(part.text for part in parts) == text
    assert total == len(text)


def test_a_session_without_the_tool_is_told_nothing_of_it(served):
    _, client, _ = served
    agent = Agent(client, "s")
    view = agent.go_on(8)
    assert view.report.masked_count > 0
    assert not any(b"recall id" in message for message in view.messages)
    session = client.get("s").session
    assert not session.recall_tool and session.recall_tool_definition == b""
    # What was masked can be read back all the same.
    assert client.recall("s", "2.0").is_masked


def test_the_definition_is_a_tool_of_the_format(served):
    _, client, _ = served
    for name, number in (
        ("anthropic", session_pb2.FORMAT_ANTHROPIC_MESSAGES),
        ("chat", session_pb2.FORMAT_OPENAI_CHAT),
        ("responses", session_pb2.FORMAT_OPENAI_RESPONSES),
        ("gemini", session_pb2.FORMAT_GEMINI),
        ("converse", session_pb2.FORMAT_BEDROCK_CONVERSE),
    ):
        created = client.create(name, number, recall_tool=True).session
        assert created.recall_tool
        definition = created.recall_tool_definition
        assert client.get(name).session.recall_tool_definition == definition
        tool = json.loads(definition)
        sdk_types.check_tool(name, tool)
        with pytest.raises(ValueError):
            sdk_types.check_tool(name, {key: 7 for key in tool})


def test_creating_it_with_or_without_the_tool_is_not_the_same(served):
    _, client, _ = served
    client.create("s", recall_tool=True)
    assert client.create("s", recall_tool=True).session.recall_tool
    error = error_of(lambda: client.create("s"))
    assert error.code == grpc.StatusCode.ALREADY_EXISTS
    assert error.reason == "SESSION_EXISTS"


def test_blocks_come_typed_and_uncut(served):
    _, client, _ = served
    agent = recalling(client)
    agent.go_on()
    text = "größe 😀\n" * 40
    content = [{"type": "text", "text": text}, IMAGE, {"type": "text", "text": "end"}]
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    agent.client.build("s", [call(1), dumps({"role": "user", "content": [block]})])
    agent.turn += 1
    agent.go_on(6)
    assert client.observations("s")[0].HasField("placeholder")
    for limit in (1, 7, 100, 0):
        parts, total = whole(client, "s", "2.0", limit)
        pictures = [part.json for part in parts if part.WhichOneof("part") == "json"]
        assert pictures == [dumps(IMAGE)]
        assert "".join(part.text for part in parts) == text + "end"
        assert total == len((text + "end").encode()) + len(dumps(IMAGE))
    # It begins where a part or a character does.
    for offset in (3, len(text.encode()) + 1, total + 1, -1):
        error = error_of(lambda offset=offset: client.recall("s", "2.0", offset))
        assert (error.reason, error.field) == ("FIELD_INVALID", "offset")
    error = error_of(lambda: client.recall("s", "2.0", 0, -1))
    assert (error.reason, error.field) == ("FIELD_INVALID", "limit")


PICTURE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
PHOTO = {"image": {"format": "png", "source": {"bytes": "aGk="}}}
SCREEN = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}

# A call of each format, its result, and what stands beside the text "a\nb".
RESULTS = {
    session_pb2.FORMAT_OPENAI_CHAT: (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "r", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "a\nb"},
        [],
    ),
    session_pb2.FORMAT_OPENAI_RESPONSES: (
        {"type": "function_call", "call_id": "a", "name": "r", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_text", "text": "a\nb"}, SCREEN],
        },
        [SCREEN],
    ),
    session_pb2.FORMAT_GEMINI: (
        {"role": "model", "parts": [{"functionCall": {"name": "r", "args": {}}}]},
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "r",
                        "parts": [PICTURE],
                        "response": {"output": "a\nb"},
                    }
                }
            ],
        },
        [PICTURE],
    ),
    session_pb2.FORMAT_BEDROCK_CONVERSE: (
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "a", "name": "r", "input": {}}}],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "a\nb"}, PHOTO]}}
            ],
        },
        [PHOTO],
    ),
}


@pytest.mark.parametrize("wire_format", RESULTS)
def test_every_format_comes_as_text_and_blocks(served, wire_format):
    _, client, _ = served
    asked, answered, beside = RESULTS[wire_format]
    client.create("s", wire_format, recall_tool=True)
    client.append("s", [dumps(asked), dumps(answered)])
    page = client.recall("s", "1.0")
    assert page.parts[0].text == "a\nb"
    assert [part.json for part in page.parts[1:]] == [dumps(each) for each in beside]
    assert page.tool == "r" and not page.is_masked


def test_a_recall_counts_once_and_twice_keeps_the_tool(served):
    _, client, _ = served
    agent = recalling(client)
    agent.go_on(8)
    for _ in range(3):
        whole(client, "s", "2.0", 500)
    tool = tool_of(client, "s")
    assert tool.recall_count == 1
    assert tool.refetched_count == 1
    assert tool.lost_pico_usd > 0
    assert tool.masked_once_count == client.ledger("s").mask_count
    first, second = client.observations("s")[:2]
    assert first.is_recalled and first.is_refetched
    assert not second.is_recalled
    # What is shown is not missed.
    client.recall("s", f"{2 * (agent.turn - 1)}.0")
    assert tool_of(client, "s").recall_count == 1
    assert not tool_of(client, "s").is_unmasked

    client.recall("s", "4.0")
    assert tool_of(client, "s").is_unmasked
    before = client.ledger("s").mask_count
    view = agent.go_on(6)
    assert list(view.report.unmasked_tools) == ["read_file"]
    assert view.report.masked_count == before
    # What is masked comes back where it costs nothing: another model's cache.
    view = client.build("s", model="claude-haiku-4-5")
    broken = getattr(view.report, "break")
    assert len(broken.masks) == before
    assert all(mask.is_restored and not mask.placeholder for mask in broken.masks)
    assert list(view.messages) == client.read("s")
    assert client.ledger("s").restore_count == before


def test_recalls_survive_kill_9(tmp_path):
    with serving(tmp_path) as (server, client, policies):
        put(policies, EVERY_TURN)
        recalling(client).go_on(8)
        page = client.recall("s", "2.0", 10, 500)
        tools = list(client.ledger("s").tools)
        server.kill()
    with serving(tmp_path) as (server, client, _):
        assert client.recall("s", "2.0", 10, 500) == page
        assert client.get("s").session.recall_tool
        assert list(client.ledger("s").tools) == tools
        assert client.observations("s")[0].is_recalled


def test_a_closed_session_answers_and_counts_nothing(served):
    _, client, _ = served
    recalling(client).go_on(8)
    close(client, "s")
    assert client.recall("s", "2.0").is_masked
    assert tool_of(client, "s").recall_count == 0
    error = error_of(lambda: client.pin("s", tool="read_file"))
    assert error.reason == "SESSION_CLOSED"


def test_an_unknown_id_is_told_why(served):
    _, client, _ = served
    recalling(client).go_on(3)
    for observation_id in ("", "2", "2.0.0", "t1", "(recall id 2.0)", "02.0"):
        error = error_of(lambda name=observation_id: client.recall("s", name))
        assert (error.reason, error.field) == ("FIELD_INVALID", "observation_id")
        assert "as in 12.0" in error.message
    for observation_id, why in (
        ("99.0", "the session has no message 99; the last one is 4"),
        ("1.0", "message 1 holds no tool result"),
        ("2.1", "message 2 holds no tool result 1; the last one is 2.0"),
    ):
        for ask in (
            lambda name=observation_id: client.recall("s", name),
            lambda name=observation_id: client.pin("s", observation_id=name),
        ):
            error = error_of(ask)
            assert error.code == grpc.StatusCode.NOT_FOUND
            assert error.reason == "OBSERVATION_NOT_FOUND"
            assert error.metadata["observation_id"] == observation_id
            assert error.message == why
    error = error_of(lambda: client.recall("nobody", "2.0"))
    assert error.reason == "SESSION_NOT_FOUND"


def test_what_is_pinned_stays_and_comes_back_at_a_free_break(served):
    _, client, _ = served
    agent = Agent(client, "s")
    agent.go_on(8)
    assert client.observations("s")[0].HasField("placeholder")
    assert client.pin("s", observation_id="2.0").is_changed
    again = client.pin("s", observation_id="2.0")
    assert not again.is_changed and again.pin_count == 1
    assert client.observations("s")[0].is_pinned
    newest = f"{2 * (agent.turn - 1)}.0"
    client.pin("s", observation_id=newest)
    view = agent.go_on(6)
    # Only a break that is due shows it again; the other one was never masked.
    assert b"masked" in view.messages[2]
    by_id = {each.observation_id: each for each in client.observations("s")}
    assert not by_id[newest].HasField("placeholder")
    view = client.build("s", model="claude-haiku-4-5")
    assert view.messages[2] == client.read("s")[2]
    (mask,) = getattr(view.report, "break").masks
    assert mask.observation_id == "2.0" and mask.is_restored
    pins = [pin.observation_id for pin in client.ledger("s").pins]
    assert pins == ["2.0", newest]
    assert client.pin("s", observation_id="2.0", unpin=True).is_changed
    assert not client.pin("s", observation_id="2.0", unpin=True).is_changed
    view = agent.go_on()
    assert b"masked" in view.messages[2]


def test_a_pinned_tool_is_not_masked_until_it_is_unpinned(served):
    _, client, _ = served
    agent = Agent(client, "s")
    agent.go_on()
    assert client.pin("s", tool="read_file").is_changed
    assert client.pin("s", resource="src/main.py").pin_count == 2
    assert agent.go_on(8).report.masked_count == 0
    assert {pin.WhichOneof("target") for pin in client.ledger("s").pins} == {
        "tool",
        "resource",
    }
    assert not tool_of(client, "s").is_unmasked
    assert client.pin("s", tool="read_file", unpin=True).pin_count == 1
    assert agent.go_on().report.masked_count > 0


def test_pins_are_checked_and_bounded(served):
    _, client, _ = served
    client.create("s")
    client.append("s", [user("do it")])
    for target, field in (
        ({}, "target"),
        ({"tool": ""}, "tool"),
        ({"resource": ""}, "resource"),
        ({"observation_id": "1"}, "observation_id"),
        ({"tool": "t" * 1025}, "tool"),
        ({"resource": "r" * 4097}, "resource"),
    ):
        error = error_of(lambda target=target: client.pin("s", **target))
        assert (error.reason, error.field) == ("FIELD_INVALID", field)
    for number in range(1000):
        client.pin("s", tool=f"tool-{number}")
    error = error_of(lambda: client.pin("s", tool="one more"))
    assert (error.reason, error.field) == ("FIELD_INVALID", "tool")
    assert "has 1000 pins" in error.message
    client.pin("s", tool="tool-7", unpin=True)
    assert client.pin("s", tool="one more").pin_count == 1000
