# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions that go on turn by turn on a server of their own."""

import contextlib
import time

import grpc
from clerestory.v1 import policy_service_pb2, policy_service_pb2_grpc

import server_process
from python_client import Client, call, result, user

OUTPUT = "a line of tool output\n" * 200


def document(*lines):
    """One of one policy."""
    text = "".join(f"    {line}\n" for line in lines)
    return f"policies:\n  - name: main\n{text}".encode()


class Agent:
    """A session that goes on turn by turn."""

    def __init__(self, client, session_id, output=OUTPUT, **header):
        self.client = client
        self.session_id = session_id
        self.output = output
        self.turn = 0
        client.create(session_id, **header)

    def go_on(self, turns=1, **fields):
        """Builds so many views with these fields; returns the last answer."""
        for _ in range(turns):
            pending = [user("do the task")]
            if self.turn:
                pending = [
                    call(self.turn),
                    result(self.turn, f"{self.turn}: {self.output}"),
                ]
            answer = self.client.build(self.session_id, pending, **fields)
            self.turn += 1
        return answer


@contextlib.contextmanager
def serving(folder, *args):
    """A server, a client of its sessions and one of its policies."""
    with server_process.Server(folder, *args) as server:
        with grpc.insecure_channel(server.address) as channel:
            yield (
                server,
                Client(channel),
                policy_service_pb2_grpc.PolicyServiceStub(channel),
            )


def put(policies, yaml, **fields):
    """Stores a document of policies."""
    return policies.SetPolicy(
        policy_service_pb2.SetPolicyRequest(yaml=yaml, **fields)
    ).policy


def wait_until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
