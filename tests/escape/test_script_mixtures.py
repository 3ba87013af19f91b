"""Random mixtures of the suite's scripts in timers, jobs, handlers and compiled code; none may cause an engine fault.

Seeded; ``LODGER_FUZZ=whole`` runs many more.
"""

import asyncio
import json
import os
import random

import pytest
from tests.escape.probing import Echo

from lodger.escape.cases import all_cases
from lodger.escape.evidence import LEAKS
from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool
from lodger.sandbox.limits import MIB

MANY = 5000 if os.environ.get("LODGER_FUZZ") == "whole" else 60
LIMITS = Limits(cpu_ms=40, wall_ms=3000, memory_bytes=16 * MIB)
#: Outcomes that must not occur: engine fault, protocol error, lost worker. Attacks that crash the guest's engine are excluded, so
#: that other crashes are detected.
NEVER = {Outcome.ENGINE_FAULT, Outcome.PROTOCOL_ERROR, Outcome.WORKER_LOST, Outcome.CRASHED}
WAYS = (
    "try { await (async () => { BODY })() } catch (e) { globalThis.e = e }",
    "try { await (async () => { BODY })() } catch (e) { globalThis.e = e }",
    "setTimeout(async () => { BODY }, 1)",
    "queueMicrotask(() => { (async () => { BODY })() })",
    "(async () => { BODY })().catch(() => {})",
    "try { new Function('kv', 'action', TEXT)(kv, action) } catch {}",
    "await (async () => { BODY })()",
)
ENDS = (
    "return 1",
    "throw globalThis.e",
    "await new Promise(() => {})",
    "return globalThis.e",
    "await new Promise((r) => setTimeout(r, 5)); return 2",
    "console.log(globalThis.e); return globalThis",
)


def bodies() -> list[str]:
    """Return the scripts of the suite that can be mixed."""
    cases = [case for case in all_cases("scripts", "commands") if case.script and case.number not in (1, 2)]
    scripts = [case.script for case in cases if "export" not in case.script and len(case.script) < 2000]
    return [script.replace("bridge.callSync(", "kv.get(").replace("bridge.call(", "kv.get(") for script in scripts]


def mixture(drawn: random.Random, scripts: list[str]) -> str:
    """Return a script made of several attacks."""
    parts = []
    for _ in range(drawn.choice((2, 2, 3, 4))):
        body = drawn.choice(scripts)
        parts.append(drawn.choice(WAYS).replace("BODY", body).replace("TEXT", json.dumps(body)))
    return "\n".join((*parts, drawn.choice(ENDS)))


@pytest.mark.timeout(60 + MANY // 5)
@pytest.mark.parametrize(("runtime", "above"), [("quickjs", 40), ("quickjs-native", 16)])
async def test_mixed_scripts(runtime: str, above: int) -> None:
    pool = Pool(runtime=runtime, size=3)
    await pool.start()
    drawn, scripts = random.Random(f"20261122/{runtime}"), bodies()
    assert len(scripts) > 300
    left = [mixture(drawn, scripts) for _ in range(MANY)]
    wrong: dict[str, str] = {}

    async def some() -> None:
        while left:
            script = left.pop()
            report = await pool.run(Job(Bundle({"main.js": script}), LIMITS, now_us=1), Echo())
            error = report.error
            said = "" if error is None else f"{error.name} {error.message} {error.stack}"
            if report.outcome in NEVER or LEAKS.search(said) is not None:
                wrong[script] = f"{report.outcome}: {said[:300]}"
            if report.usage.memory_peak_bytes > LIMITS.memory_bytes + above * MIB:
                wrong[script] = f"held {report.usage.memory_peak_bytes / MIB:.0f} MiB"

    try:
        await asyncio.gather(*(some() for _ in range(3)))
    finally:
        await pool.stop()
    assert wrong == {}
