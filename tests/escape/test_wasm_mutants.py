"""Mutated modules: each is refused or runs within its limits, without host texts in its errors.

Seeded; ``LODGER_FUZZ=whole`` runs many more.
"""

import asyncio
import os
import random

import pytest
from tests.escape.commands import HELLO
from tests.escape.probing import Echo

from lodger.escape.cases import all_cases
from lodger.escape.evidence import LEAKS
from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool, Report
from lodger.sandbox.limits import MIB

MANY = 20_000 if os.environ.get("LODGER_FUZZ") == "whole" else 200
LIMITS = Limits(cpu_ms=50, wall_ms=3000, memory_bytes=16 * MIB)
#: Outcomes that no module may cause: engine fault, protocol error, lost worker.
NEVER = {Outcome.ENGINE_FAULT, Outcome.PROTOCOL_ERROR, Outcome.WORKER_LOST, Outcome.CRASHED}
#: Bytes with a meaning in many places: limits of LEB128, end, block, call.
TELLING = (0x00, 0x0B, 0x10, 0x11, 0x40, 0x41, 0x7F, 0x80, 0xFE, 0xFF)


def grown() -> list[bytes]:
    """Return the modules to mutate: the suite's attacks, which are small and use edge cases."""
    modules = [case.module() for case in all_cases("scripts", "commands") if case.wasm is not None]
    return [HELLO, *(module for module in modules if module and len(module) < 4000)]


def mutant(drawn: random.Random, seeds: list[bytes]) -> bytes:
    module = bytearray(drawn.choice(seeds))
    for _ in range(drawn.choice((1, 1, 1, 2, 3, 8))):
        at = drawn.randrange(8, len(module)) if len(module) > 9 else 0
        match drawn.randrange(5):
            case 0:
                module[at] = drawn.randrange(256)
            case 1:
                module[at] = drawn.choice(TELLING)
            case 2:
                del module[at : at + drawn.randrange(1, 5)]
            case 3:
                module[at:at] = drawn.randbytes(drawn.randrange(1, 5))
            case _:
                other = drawn.choice(seeds)
                start = drawn.randrange(len(other))
                module[at : at + 8] = other[start : start + 8]
    return bytes(module)


def faults(report: Report) -> list[str]:
    found = [f"ended as {report.outcome}"] if report.outcome in NEVER else []
    if report.usage.memory_peak_bytes > LIMITS.memory_bytes + 40 * MIB:
        found.append(f"held {report.usage.memory_peak_bytes / MIB:.0f} MiB")
    said = "" if report.error is None else f"{report.error.message}\n{report.error.stack}"
    if LEAKS.search(said) is not None:
        found.append(f"says {said[:200]!r}")
    return found


@pytest.mark.timeout(60 + MANY // 20)
async def test_mutated_modules() -> None:
    pool = Pool(size=1)
    await pool.start()
    drawn, seeds = random.Random(20261122), grown()
    left = [mutant(drawn, seeds) for _ in range(MANY)]
    wrong: dict[str, list[str]] = {}

    async def some(tenant: str) -> None:
        while left:
            module = left.pop()
            found = faults(await pool.run(Job(Bundle({}, wasm=module), LIMITS, now_us=1, tenant=tenant), Echo()))
            if found:
                wrong[module.hex()] = found

    try:
        await asyncio.gather(*(some(tenant) for tenant in ("a", "b", "c")))
        last = await pool.run(Job(Bundle({}, wasm=HELLO), Limits(), now_us=1, tenant="z"), Echo())
        assert last.outcome is Outcome.OK
    finally:
        await pool.stop()
    assert wrong == {}
