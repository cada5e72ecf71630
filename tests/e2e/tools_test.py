# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tools of tenants: what is learned of them, listed and reset."""

import grpc
import pytest
from clerestory.v1 import policy_service_pb2

from driving import serving
from python_client import error_of


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as (_, _, served):
        yield served


def list_tools(policies, **fields):
    return policies.ListTools(policy_service_pb2.ListToolsRequest(**fields))


def reset_tool(policies, name):
    return policies.ResetTool(policy_service_pb2.ResetToolRequest(name=name)).tool


def test_a_tenant_of_which_nothing_was_learned_has_no_tools(policies):
    page = list_tools(policies)
    assert not page.tools
    assert not page.next_page_token


def test_a_reset_is_idempotent_and_leaves_nothing_known(policies):
    for _ in range(2):
        tool = reset_tool(policies, "Read")
        assert tool.name == "Read"
        assert not tool.is_other
        assert tool.state == policy_service_pb2.TOOL_STATE_OBSERVING
        assert tool.masked_count == tool.refetched_count == tool.rate_ppm == 0
        assert (tool.rate_low_ppm, tool.rate_high_ppm) == (0, 1_000_000)
        assert tool.break_even_ppm == 130_000
        assert not tool.HasField("state_time")
        assert not tool.HasField("next_probe_time")
    assert not list_tools(policies).tools


def test_the_empty_name_is_of_all_that_are_not_counted_by_themselves(policies):
    assert reset_tool(policies, "").is_other


def test_names_and_pages_that_cannot_be_are_refused(policies):
    reset_tool(policies, "x" * 256)
    error = error_of(lambda: reset_tool(policies, "x" * 257))
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == "FIELD_INVALID"
    error = error_of(lambda: list_tools(policies, page_size=-1))
    assert error.reason == "FIELD_INVALID"
    error = error_of(lambda: list_tools(policies, page_token="other"))
    assert error.reason == "PAGE_TOKEN_INVALID"
