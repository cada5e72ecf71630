# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a real server exports, scraped as Prometheus does it."""

import re
import urllib.error
import urllib.request

import pytest
from clerestory.v1 import session_pb2, session_service_pb2
from prometheus_client.parser import text_string_to_metric_families

from driving import Agent, document, serving, wait_until
from python_client import error_of, user
from transcripts import ROOT

GOOD = document("mode: every_turn", "keep: {observations: 3}", "tools: {exclude: [x]}")
BAD = document("mode: pink")


def metrics_address(server):
    return next(
        entry["metrics_address"]
        for entry in server.entries()
        if entry["event"] == "serving"
    )


class Scraped:
    """One scrape: families by name, and the values of their series."""

    def __init__(self, server):
        address = metrics_address(server)
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            self.text = answer.read().decode()
        self.families = {
            family.name: family for family in text_string_to_metric_families(self.text)
        }
        self.values = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name, **labels):
        return self.values[(name, *sorted(labels.items()))]


def rpc(method, service, code=None):
    labels = {
        "grpc_type": "unary",
        "grpc_service": f"clerestory.v1.{service}",
        "grpc_method": method,
    }
    return labels if code is None else {**labels, "grpc_code": code}


def catalogue():
    """The rows of METRICS.md: name to (type, labels, help, most series)."""
    rows = {}
    text = (ROOT / "server/metrics/METRICS.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("| `"):
            continue
        name, kind, _, labels, help_text, series = (
            cell.strip() for cell in line.strip("|").split(" | ")
        )
        rows[name.strip("`")] = (
            kind,
            set(re.findall(r"`(\w+)`", labels)),
            help_text,
            int(series),
        )
    return rows


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "default.yaml").write_bytes(GOOD)
    with serving(
        tmp_path,
        *("--policy-dir", str(folder)),
        *("--metrics-address", "127.0.0.1:0"),
        "--development",
    ) as (server, client, _):
        yield server, client, folder / "default.yaml"


def test_what_is_served_is_what_the_catalogue_says(served):
    server, client, _ = served
    Agent(client, "s").go_on(8)
    rows = catalogue()
    for name, family in Scraped(server).families.items():
        # What the HTTP server counts of its own.
        if name.startswith("exposer_"):
            continue
        listed = name + "_total" if family.type == "counter" else name
        kind, labels, help_text, most = rows[listed]
        assert family.type == kind, name
        assert family.documentation == help_text, name
        assert 0 < len(family.samples) <= most, name
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == labels, name


def test_counters_rise_with_what_is_done(served):
    server, client, _ = served
    before = Scraped(server)
    started = rpc("BuildView", "ViewService")
    ok = rpc("BuildView", "ViewService", "OK")
    assert before.value("grpc_server_started_total", **started) == 0
    assert before.value("grpc_server_handled_total", **ok) == 0

    Agent(client, "s").go_on(8)
    client.report("s", input_uncached_tokens=5, output_tokens=7)
    Agent(client, "u", model="nobody-knows-it").go_on(2)
    assert error_of(lambda: client.get("none")).reason == "SESSION_NOT_FOUND"
    assert client.read("s")
    ledger = client.ledger("s")
    client.sessions.CloseSession(
        session_service_pb2.CloseSessionRequest(
            session_id="s", outcome=session_pb2.OUTCOME_RESOLVED
        )
    )
    after = Scraped(server)
    value = after.value
    assert value("grpc_server_started_total", **started) == 10
    assert value("grpc_server_handled_total", **ok) == 10
    assert value("grpc_server_handling_seconds_count", **started) == 10
    not_found = rpc("GetSession", "SessionService", "NotFound")
    assert value("grpc_server_handled_total", **not_found) == 1
    stream = rpc("ReadHistory", "HistoryService", "OK") | {"grpc_type": "server_stream"}
    assert value("grpc_server_handled_total", **stream) == 1

    tenant = {"tenant": "default"}
    assert value("clerestory_views_total", **tenant) == 10
    assert value("clerestory_reported_tokens_total", type="output", **tenant) == 7
    assert value("clerestory_masks_total", what="observation", **tenant) > 0
    assert value("clerestory_saved_tokens_total", **tenant) > 0
    net = value("clerestory_cost_saved_usd_total", **tenant) - value(
        "clerestory_cost_penalty_usd_total", reason="cache_break", **tenant
    )
    assert net == pytest.approx(
        value("clerestory_full_cost_usd_total", **tenant)
        - value("clerestory_view_cost_usd_total", **tenant)
    )
    breaks = sum(
        number
        for (name, *_), number in after.values.items()
        if name == "clerestory_cache_breaks_total"
    )
    assert breaks >= sum(count.count for count in ledger.breaks) > 0
    closed = {"outcome": "resolved", "arm": "masked", **tenant}
    assert value("clerestory_sessions_closed_total", **closed) == 1
    assert value(
        "clerestory_closed_session_cost_usd_total", **closed
    ) == pytest.approx(
        (ledger.view_cost_pico_usd + ledger.output_cost_pico_usd) / 1e12
    )
    assert value("clerestory_unknown_models_total") == 1
    assert value("clerestory_cached_sessions") == 2
    assert value("clerestory_session_cache_bytes") > 0


def test_a_bad_file_is_counted_and_the_good_one_stays(served):
    server, client, file = served

    def reloads(result):
        return Scraped(server).value("clerestory_file_reloads_total", result=result)

    before = Scraped(server)
    assert before.value("clerestory_file_reloads_total", result="accepted") == 1
    assert before.value("clerestory_file_reloads_total", result="refused") == 0
    assert before.value("clerestory_policy_documents", source="file") == 1
    good = before.value("clerestory_files_last_success_timestamp_seconds")
    assert good > 1_700_000_000
    file.write_bytes(BAD)
    wait_until(lambda: reloads("refused") == 1)
    after = Scraped(server)
    assert after.value("clerestory_file_reloads_total", result="accepted") == 1
    assert after.value("clerestory_policy_documents", source="file") == 1
    assert after.value("clerestory_files") == 1
    answer = Agent(client, "s").go_on(8)
    assert answer.report.masked_count > 0  # As the good one has it.


def test_no_id_model_or_content_becomes_a_label(served):
    server, client, _ = served
    agent = Agent(client, "secret-session", model="secret-model")
    agent.go_on(4)
    client.build("secret-session", [user("secret words")])
    assert "secret" not in Scraped(server).text


def test_only_metrics_are_served_and_only_if_asked_for(served, tmp_path):
    server, _, _ = served
    address = metrics_address(server)
    for path in ("", "etc/passwd", "metrics/x/../../etc/passwd"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://{address}/{path}")
        assert caught.value.code == 404
    with serving(tmp_path / "other") as (other, _, _):
        assert metrics_address(other) == ""


def test_a_server_with_metrics_stops_as_it_should(served):
    server, _, _ = served
    assert server.stop() == 0
