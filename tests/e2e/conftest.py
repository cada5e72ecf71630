# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a real server with RocksDB, and a Python client of it."""

import itertools
import pathlib
import sys

import grpc
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import server_process  # noqa: E402
from python_client import Client  # noqa: E402

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process.Server(
        tmp_path_factory.mktemp("server"), "--development"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with grpc.insecure_channel(
        server.address,
        options=[
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
        ],
    ) as channel:
        yield Client(channel)


@pytest.fixture
def session_id():
    """An id that no other test uses."""
    return f"session-{next(_numbers)}"
