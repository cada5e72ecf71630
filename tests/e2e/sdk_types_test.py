# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""The vendors' types take what they should, and see what is broken."""

import pytest

import sdk_types


def anthropic_result(**members):
    return [{"role": "user", "content": [{"type": "tool_result", **members}]}]


def response_part(**members):
    return [{"role": "user", "parts": [{"functionResponse": members}]}]


def converse_result(**members):
    return [{"role": "user", "content": [{"toolResult": members}]}]


TEXT = {"type": "text", "text": "t"}

VALID = [
    (
        sdk_types.check_anthropic,
        [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": "s"},
                    TEXT,
                    {"type": "tool_use", "id": "a", "name": "r", "input": {}},
                ],
            },
        ],
    ),
    (
        sdk_types.check_anthropic,
        anthropic_result(
            tool_use_id="a",
            is_error=True,
            content=[{**TEXT, "cache_control": {"type": "ephemeral"}}],
        ),
    ),
    (sdk_types.check_anthropic, anthropic_result(tool_use_id="a")),
    (
        sdk_types.check_chat,
        [
            {"role": "developer", "content": "be brief"},
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
            {"role": "tool", "tool_call_id": "a", "content": [TEXT]},
        ],
    ),
    (
        sdk_types.check_responses,
        [
            {"role": "user", "content": "go"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "encrypted_content": "g",
            },
            {
                "type": "function_call",
                "call_id": "a",
                "name": "r",
                "arguments": "{}",
            },
            {
                "type": "function_call_output",
                "call_id": "a",
                "output": [{"type": "input_text", "text": "t"}],
            },
            {
                "type": "shell_call_output",
                "call_id": "b",
                "output": [
                    {
                        "stdout": "[4 lines]",
                        "stderr": "",
                        "outcome": {"type": "exit", "exit_code": 1},
                    }
                ],
            },
        ],
    ),
    (
        sdk_types.check_gemini,
        [
            {"role": "user", "parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"name": "r", "args": {}},
                        "thoughtSignature": "Q3M=",
                    }
                ],
            },
        ],
    ),
    (sdk_types.check_gemini, response_part(name="r", response={"output": "t"})),
    (
        sdk_types.check_converse,
        [
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "a", "name": "r", "input": {}}},
                    {"cachePoint": {"type": "default"}},
                ],
            }
        ],
    ),
    (
        sdk_types.check_converse,
        converse_result(
            toolUseId="a",
            status="error",
            content=[{"text": "t"}, {"json": {"n": 1.0}}],
        ),
    ),
]

BROKEN = [
    (sdk_types.check_anthropic, [{"role": "tool", "content": "t"}]),
    (sdk_types.check_anthropic, [{"role": "user"}]),
    (sdk_types.check_anthropic, anthropic_result(content="t")),
    (sdk_types.check_anthropic, anthropic_result(tool_use_id="a", content=1)),
    (
        sdk_types.check_anthropic,
        anthropic_result(tool_use_id="a", content=[{"type": "text"}]),
    ),
    (
        sdk_types.check_anthropic,
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}],
    ),
    (sdk_types.check_chat, [{"role": "tool", "content": "t"}]),
    (
        sdk_types.check_chat,
        [{"role": "tool", "tool_call_id": "a", "content": [{"type": "text"}]}],
    ),
    (
        sdk_types.check_chat,
        [
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function"}],
            }
        ],
    ),
    (
        sdk_types.check_responses,
        [{"type": "function_call_output", "call_id": "a"}],
    ),
    (
        sdk_types.check_responses,
        [{"type": "function_call_output", "call_id": "a", "output": [TEXT]}],
    ),
    (
        sdk_types.check_responses,
        [{"type": "shell_call_output", "call_id": "a", "output": "t"}],
    ),
    (
        sdk_types.check_responses,
        [
            {
                "type": "computer_call_output",
                "call_id": "a",
                "output": "[masked]",
            }
        ],
    ),
    (sdk_types.check_responses, [{"type": "from_the_future"}]),
    (sdk_types.check_gemini, response_part(name="r", response="t")),
    (sdk_types.check_gemini, [{"role": "user", "parts": [{"text": 1}]}]),
    (sdk_types.check_gemini, [{"role": "user", "content": "t"}]),
    (sdk_types.check_converse, [{"role": "user", "content": "t"}]),
    (sdk_types.check_converse, converse_result(toolUseId="a")),
    (sdk_types.check_converse, converse_result(toolUseId="a", content="t")),
    (
        sdk_types.check_converse,
        converse_result(toolUseId="a", content=[{"text": "t", "json": {}}]),
    ),
]


def names(cases):
    return [f"{check.__name__}_{i}" for i, (check, _) in enumerate(cases)]


@pytest.mark.parametrize("check, messages", VALID, ids=names(VALID))
def test_takes_what_the_vendor_documents(check, messages):
    check(messages)


@pytest.mark.parametrize("check, messages", BROKEN, ids=names(BROKEN))
def test_refuses_what_is_broken_and_says_where(check, messages):
    with pytest.raises(ValueError, match=r"messages[.\[]0"):
        check(messages)
