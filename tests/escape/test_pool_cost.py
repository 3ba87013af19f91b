"""Cost of an attempt in page faults of a worker, which do not depend on the load of the machine.

Each fault takes 1.5 µs of CPU time, half of an attempt's total. The bounds are a tenth above measured values; exceeding one means that
workers import, allocate or execute something new. ``lodger bench attempts`` and bench/pool.py show where.
"""

import asyncio
from statistics import median

import pytest
from tests.escape.probing import Echo, probe_pool

from lodger.sandbox import Bundle, Job, Outcome, Pool
from lodger.sandbox.workers import launcher as launching

SCRIPT = "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }"
MAX_FAULTS = {"quickjs": 490, "quickjs-native": 550, "probe": 300}


@pytest.mark.parametrize("runtime", MAX_FAULTS)
def test_page_faults_of_a_worker(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[int] = []
    real = launching.WorkerEnd.record_end

    def ended(self: launching.WorkerEnd, death: launching.Death | None) -> None:
        if death is not None and ran:
            faults.append(death.minor_faults)
        real(self, death)

    ran: list[bool] = []
    monkeypatch.setattr(launching.WorkerEnd, "record_end", ended)

    async def go() -> None:
        pool = probe_pool() if runtime == "probe" else Pool(runtime=runtime, size=1)
        await pool.start()
        try:
            code = "done('1')" if runtime == "probe" else SCRIPT
            for _ in range(15):
                report = await pool.run(Job(Bundle({"main.js": code})), Echo())
                assert report.outcome is Outcome.OK
                ran.append(True)
        finally:
            await pool.stop()

    asyncio.run(go())
    assert len(faults) > 10
    assert median(faults[:14]) <= MAX_FAULTS[runtime], sorted(faults)
