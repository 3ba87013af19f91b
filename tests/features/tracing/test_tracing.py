"""Spans of a real run, received by a real OTLP receiver on the loopback; nothing of OpenTelemetry while tracing is off."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.egress.peer import Peer, answer, opened, thread_of_peers
from tests.node.harness import OK, SETTINGS, Script, Signals, working

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import serve
from lodger.engine.core.telemetry.json_logs import JsonFormatter
from lodger.engine.effects.finished import Finished
from lodger.engine.features.tracing.enabled import exporter_name

SCRIPT = """
export default async ({ kv }) => {
  await kv.get("n");
  return (await fetch("@@/in")).status;
};
"""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    made = Peer()
    made.paths = {"/v1/traces": answer(b""), "/in": answer(b"hello")}
    with thread_of_peers(made):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url(""))
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-jobs")
        yield made


def spans(receiver: Peer) -> tuple[list[Any], set[str]]:
    """Return the received spans, and the names of their services."""
    found, services = [], set()
    for asked in receiver.asked:
        if "/v1/traces" in asked.line:
            request = ExportTraceServiceRequest.FromString(asked.body)
            for resource in request.resource_spans:
                services |= {
                    each.value.string_value for each in resource.resource.attributes if each.key == "service.name"
                }
                found += [span for scope in resource.scope_spans for span in scope.spans]
    return found, services


def attributes_of(span: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


async def test_a_run_is_one_trace_from_its_slot_to_its_requests(tmp_path: Path, receiver: Peer) -> None:
    settings = opened(receiver, **SETTINGS.model_dump(exclude_defaults=True))
    async with Engine.open(str(tmp_path / "ledger.db"), settings=settings) as engine:
        signals = Signals(engine)
        await engine.tenants.create("acme", grants=["kv", f"fetch:http://127.0.0.1:{receiver.port}"])
        await engine.scripts.put("acme", "job", SCRIPT.replace("@@", receiver.url("")))
        async with engine.node(name="n1"):
            asked = await engine.run_in("acme", "job", 0)
            await signals.wait("finished")
        action = asked.id
    found, services = spans(receiver)
    by_name = {span.name: span for span in found}
    assert services == {"shop-jobs"}
    assert set(by_name) == {"slot", "attempt", "kv.get", "http.fetch", "fetch"}
    assert len({span.trace_id for span in found}) == 1
    parents = {"attempt": "slot", "kv.get": "attempt", "http.fetch": "attempt", "fetch": "http.fetch"}
    for child, parent in parents.items():
        assert by_name[child].parent_span_id == by_name[parent].span_id, child
    assert by_name["slot"].parent_span_id == b""
    assert attributes_of(by_name["attempt"])["lodger.action"] == action
    assert attributes_of(by_name["slot"])["lodger.state"] == "done"
    (sent,) = [each.headers["traceparent"] for each in receiver.asked if "/in" in each.line]
    assert sent == f"00-{by_name['fetch'].trace_id.hex()}-{by_name['fetch'].span_id.hex()}-01"
    assert by_name["slot"].start_time_unix_nano <= by_name["attempt"].start_time_unix_nano


async def test_lateness_leads_to_the_trace_by_exemplars_and_log_lines_carry_its_id(
    tmp_path: Path, receiver: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    noted: list[str] = []

    def play(claim: Claim) -> Finished:
        logging.getLogger("lodger.node").warning("in the attempt")
        noted.append(JsonFormatter().format(caplog.records[-1]))
        assert claim.tenant_id == "acme"
        return OK

    async with working(tmp_path, Script(answer=play)) as (engine, node, signals):
        port, stop = serve(engine.process_metrics, node.problems, "127.0.0.1", 0)
        try:
            await engine.schedules.create("acme", "s", script="job", rules="every 1s")
            await signals.wait("finished")
            url, headers = f"http://127.0.0.1:{port}", {"accept": "application/openmetrics-text; version=1.0.0"}
            text = httpx2.get(f"{url}/metrics", headers=headers, trust_env=False).text
            (exemplar, *_more) = re.findall(
                r'lodger_lateness_seconds_bucket{.*} [0-9.]+ # {trace_id="([0-9a-f]{32})"}', text
            )
            assert "process_cpu_seconds_total" in text
            assert httpx2.get(f"{url}/health/live", trust_env=False).status_code == 200
            assert httpx2.get(f"{url}/health/ready", trust_env=False).json() == {"ok": True}
            await node.lease_keeper.stop()
            node.identity.lease = None
            lost = httpx2.get(f"{url}/health/ready", trust_env=False)
            assert (lost.status_code, lost.json()["problems"]) == (503, ["the node holds no lease"])
            assert httpx2.get(f"{url}/health/live", trust_env=False).status_code == 200
        finally:
            stop()
    assert exemplar in {span.trace_id.hex() for span in spans(receiver)[0]}

    line = json.loads(noted[0])
    assert (line["level"], line["message"], line["tenant_id"]) == ("warning", "in the attempt", "acme")
    assert line["trace_id"] in {span.trace_id.hex() for span in spans(receiver)[0]}
    assert line["action_id"]


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "x"}, None),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, None),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp_proto_http"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, "otlp_proto_http"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "otlp_proto_grpc"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
    ],
)
def test_the_standard_variables_switch_spans_on(variables: dict[str, str], name: str | None) -> None:
    assert exporter_name(variables) == name


#: Runs a node while tracing is off, and one while the extra is missing; prints whether OpenTelemetry was imported.
PROGRAM = """
import asyncio, logging, os, sys
from pathlib import Path
from tests.node.harness import Script, working
logging.basicConfig()
async def go(name):
    (Path(sys.argv[1]) / name).mkdir()
    async with working(Path(sys.argv[1]) / name, Script()) as (engine, node, signals):
        await engine.run_in("acme", "job", 0)
        await signals.wait("finished")
asyncio.run(go("off"))
print([name for name in sys.modules if name.startswith("opentelemetry")])
os.environ["OTEL_TRACES_EXPORTER"] = "otlp"
sys.modules["opentelemetry"] = None
asyncio.run(go("missing"))
"""


def test_nothing_is_imported_while_tracing_is_off_and_a_missing_extra_is_logged(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=root, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(root)}, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == "[]"
    assert ran.stderr.count("pip install 'lodger[otel]'") == 1
