"""Host calls of ``crypto.subtle``; what they compute is checked by tests/conformance/web_platform/crypto.js."""

import asyncio
import base64
import json
import sys

import pytest

from lodger.engine.node.executors.sandbox_executor import finished
from lodger.engine.recurrence.calendar.zones import zone_names
from lodger.escape.cases.tenants.world import TenantHost
from lodger.sandbox.job import Report, Usage
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome

CALLS = {
    "crypto.aes": {"decrypt": False, "key": "AAAAAAAAAAAAAAAAAAAAAA==", "iv": "AAAAAAAAAAAAAAAA", "data": "", "tagBits": 128},
    "crypto.derive": {"kind": "PBKDF2", "hash": "SHA-256", "key": "YQ==", "salt": "", "iterations": 1, "bits": 256},
    "crypto.key": {"kind": "EC", "format": "spki", "data": "", "curve": "P-256"},
    "crypto.verify": {"kind": "ECDSA", "hash": "SHA-256", "key": "", "curve": "P-256", "signature": "", "data": ""},
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_node_without_the_package_names_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in {"cryptography", *(each for each in sys.modules if each.partition(".")[0] == "cryptography")}:
        monkeypatch.setitem(sys.modules, module, None)
    reply = asyncio.run(TenantHost(Limits()).call(name, json.dumps(CALLS[name])))
    assert not reply.ok
    assert json.loads(reply.json)["code"] == "crypto_missing"
    assert "lodger with the extra secrets" in json.loads(reply.json)["message"]


def test_the_engines_cpu_time_is_charged_to_the_run() -> None:
    """A salt is hashed anew for each digest of the result, whatever the iterations: the time itself is what counts."""
    salt = base64.b64encode(b"s" * 390_000).decode()
    given = {"kind": "PBKDF2", "hash": "SHA-1", "key": "YQ==", "salt": salt, "iterations": 1, "bits": 8192}

    async def until_refused() -> tuple[TenantHost, str]:
        host = TenantHost(Limits(cpu_ms=50))
        for _ in range(100):
            reply = await host.call("crypto.derive", json.dumps(given))
            if not reply.ok:
                return host, reply.json
        return host, "never refused"

    host, refusal = asyncio.run(until_refused())
    assert json.loads(refusal)["code"] == "budget_exceeded", refusal
    assert "CPU time, 50 ms" in json.loads(refusal)["message"]
    usage = finished(host.attempt.claim, host.attempt, Report(Outcome.OK, result="1", usage=Usage(cpu_ms=1.0))).usage
    assert usage.cpu_ms >= 51.0
    other = asyncio.run(TenantHost(Limits(cpu_ms=50)).call("crypto.derive", json.dumps(given)))
    assert other.ok

    async def zones() -> list[str]:
        host = TenantHost(Limits(cpu_ms=10))
        asked = [{"name": name, "far": far} for name in sorted(zone_names()) for far in (True, False)]
        return [reply.json for each in asked if not (reply := await host.call("time.zone", json.dumps(each))).ok]

    refused = asyncio.run(zones())
    assert "CPU time, 10 ms" in refused[0], "zones beyond those that the engine keeps"
