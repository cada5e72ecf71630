# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the vendors' own libraries say about the messages and tools of a request.

One function for each format takes the messages as parsed JSON and raises
ValueError, naming the message, if the library's types refuse one. They know of
types and required fields, not of the pairing of calls and results, and they are
of one release: what a vendor has added since is refused by them.
"""

import functools
import typing
from collections.abc import Iterator

import botocore.loaders
import botocore.model
import botocore.validate
import pydantic
from anthropic.types import MessageParam, ToolParam
from google.genai import types as genai_types
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
)
from openai.types.responses import FunctionToolParam, ResponseInputItemParam


def check_anthropic(messages: list[dict]) -> None:
    _check_all(MessageParam, "role", messages)


def check_chat(messages: list[dict]) -> None:
    _check_all(ChatCompletionMessageParam, "role", messages)


def check_responses(items: list[dict]) -> None:
    # Only of messages the type may be left out.
    _check_all(ResponseInputItemParam, "type", items, otherwise="message")


def check_gemini(contents: list[dict]) -> None:
    for index, content in enumerate(contents):
        try:
            genai_types.Content.model_validate(content)
        except pydantic.ValidationError as error:
            raise ValueError(f"messages.{index}: {error}") from error


def check_converse(messages: list[dict]) -> None:
    report = botocore.validate.ParamValidator().validate(
        {"modelId": "m", "messages": messages}, _converse_input()
    )
    if report.has_errors():
        raise ValueError(report.generate_report())


def check_tool(wire_format: str, tool: dict) -> None:
    """The same of an element of the array of tools, of `anthropic` and so on."""
    if wire_format == "converse":
        report = botocore.validate.ParamValidator().validate(
            {"modelId": "m", "messages": [], "toolConfig": {"tools": [tool]}},
            _converse_input(),
        )
        if report.has_errors():
            raise ValueError(report.generate_report())
        return
    adapter = pydantic.TypeAdapter(
        {
            "anthropic": ToolParam,
            "chat": ChatCompletionFunctionToolParam,
            "responses": FunctionToolParam,
            "gemini": genai_types.Tool,
        }[wire_format]
    )
    _exhaust(adapter.validate_python(tool))


def _check_all(
    union: typing.Any, tag: str, messages: list[dict], otherwise: str = ""
) -> None:
    for index, message in enumerate(messages):
        value = message.get(tag, otherwise)
        adapter = _adapters(union, tag).get(value)
        if adapter is None:
            raise ValueError(f"messages.{index}: {tag} {value!r}")
        try:
            _exhaust(adapter.validate_python(message))
        except pydantic.ValidationError as error:
            raise ValueError(f"messages.{index}: {error}") from error


@functools.cache
def _adapters(union: typing.Any, tag: str) -> dict[str, pydantic.TypeAdapter]:
    """By tag. The whole union would take a broken item for another kind."""
    members: dict[str, list] = {}
    for member in typing.get_args(union):
        for value in _literals(typing.get_type_hints(member)[tag]):
            members.setdefault(value, []).append(member)
    return {
        value: pydantic.TypeAdapter(typing.Union[tuple(kinds)])
        for value, kinds in members.items()
    }


def _literals(annotation: typing.Any) -> list[str]:
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    return [
        literal
        for argument in typing.get_args(annotation)
        for literal in _literals(argument)
    ]


def _exhaust(value: typing.Any) -> None:
    """Pydantic checks what is typed as an Iterable only while it is read."""
    if isinstance(value, dict):
        for member in value.values():
            _exhaust(member)
    elif isinstance(value, (list, Iterator)):
        for element in value:
            _exhaust(element)


@functools.cache
def _converse_input() -> botocore.model.StructureShape:
    description = botocore.loaders.Loader().load_service_model(
        "bedrock-runtime", "service-2"
    )
    service = botocore.model.ServiceModel(description)
    return service.operation_model("Converse").input_shape
