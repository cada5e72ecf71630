# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""A client in Python, as an agent backend would write one: generated stubs."""

import hashlib
import json

import grpc
from clerestory.v1 import (
    history_service_pb2,
    history_service_pb2_grpc,
    session_pb2,
    session_service_pb2,
    session_service_pb2_grpc,
    usage_pb2,
    view_service_pb2,
    view_service_pb2_grpc,
)
from google.rpc import error_details_pb2, status_pb2

ANTHROPIC = session_pb2.FORMAT_ANTHROPIC_MESSAGES
CHAT = session_pb2.FORMAT_OPENAI_CHAT


class Client:
    """The services of one server."""

    def __init__(self, channel: grpc.Channel):
        self.sessions = session_service_pb2_grpc.SessionServiceStub(channel)
        self.history = history_service_pb2_grpc.HistoryServiceStub(channel)
        self.views = view_service_pb2_grpc.ViewServiceStub(channel)

    def create(
        self,
        session_id,
        wire_format=ANTHROPIC,
        model="claude-sonnet-4-6",
        labels=None,
        recall_tool=False,
    ):
        return self.sessions.CreateSession(
            session_service_pb2.CreateSessionRequest(
                session_id=session_id,
                format=wire_format,
                model=model,
                labels=labels,
                recall_tool=recall_tool,
            )
        )

    def get(self, session_id):
        return self.sessions.GetSession(
            session_service_pb2.GetSessionRequest(session_id=session_id)
        )

    def append(self, session_id, messages, expected_sequence=None):
        return self.history.AppendMessages(
            history_service_pb2.AppendMessagesRequest(
                session_id=session_id,
                messages=messages,
                expected_sequence=expected_sequence,
            )
        )

    def build(self, session_id, messages=(), **fields):
        return self.views.BuildView(
            view_service_pb2.BuildViewRequest(
                session_id=session_id, messages=messages, **fields
            )
        )

    def report(self, session_id, **usage):
        """Reports usage, in our fields or as `provider_json`."""
        return self.views.ReportUsage(
            view_service_pb2.ReportUsageRequest(
                session_id=session_id, usage=usage_pb2.Usage(**usage)
            )
        )

    def ledger(self, session_id):
        return self.get(session_id).ledger

    def recall(self, session_id, observation_id, offset=0, limit=0):
        return self.history.RecallObservation(
            history_service_pb2.RecallObservationRequest(
                session_id=session_id,
                observation_id=observation_id,
                offset=offset,
                limit=limit,
            )
        )

    def pin(self, session_id, unpin=False, **target):
        return self.history.PinObservation(
            history_service_pb2.PinObservationRequest(
                session_id=session_id, unpin=unpin, **target
            )
        )

    def observations(self, session_id):
        """The first thousand."""
        return self.history.ListObservations(
            history_service_pb2.ListObservationsRequest(
                session_id=session_id, page_size=1000
            )
        ).observations

    def read(self, session_id):
        parts = self.history.ReadHistory(
            history_service_pb2.ReadHistoryRequest(session_id=session_id)
        )
        return [message.message for part in parts for message in part.messages]


class Error:
    """What a failed call says."""

    def __init__(self, error: grpc.RpcError):
        self.code = error.code()
        self.message = error.details()
        self.reason = ""
        self.metadata = {}
        self.field = None
        self.retry = False
        status = status_pb2.Status()
        for key, value in error.trailing_metadata():
            if key == "grpc-status-details-bin":
                status.ParseFromString(value)
        for detail in status.details:
            info = error_details_pb2.ErrorInfo()
            bad = error_details_pb2.BadRequest()
            if detail.Unpack(info):
                self.reason = info.reason
                self.domain = info.domain
                self.metadata = dict(info.metadata)
            elif detail.Unpack(bad):
                self.field = bad.field_violations[0].field
            elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
                self.retry = True


def error_of(call) -> Error:
    """The error with which `call()` must fail."""
    try:
        call()
    except grpc.RpcError as error:
        return Error(error)
    raise AssertionError("the call did not fail")


def dumps(message) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()


def user(text: str) -> bytes:
    return dumps({"role": "user", "content": text})


def call(number: int, tool: str = "read_file", wire_format=ANTHROPIC) -> bytes:
    """An assistant message with one call."""
    if wire_format == ANTHROPIC:
        block = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": {}}
        return dumps({"role": "assistant", "content": [block]})
    function = {"name": tool, "arguments": "{}"}
    item = {"id": f"t{number}", "type": "function", "function": function}
    return dumps({"role": "assistant", "content": None, "tool_calls": [item]})


def result(number: int, text: str, wire_format=ANTHROPIC) -> bytes:
    """The message with its result."""
    if wire_format == ANTHROPIC:
        block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        return dumps({"role": "user", "content": [block]})
    return dumps({"role": "tool", "tool_call_id": f"t{number}", "content": text})


def view_digest(messages) -> str:
    """The digest of a view, as the API's reference defines it."""
    digest = bytes(32)
    for message in messages:
        digest = hashlib.sha256(digest + hashlib.sha256(message).digest()).digest()
    return digest.hex()
