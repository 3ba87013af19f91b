"""Cost of an attempt in page faults and system calls of a worker, which do not depend on the load of the machine.

Each fault takes 2 µs of CPU time, a third of an attempt's total. The bounds are a tenth above measured values; exceeding one means that
workers import, allocate or execute something new. ``lodger bench attempts`` shows where.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from statistics import median

import pytest
from tests.escape.pool_processes import zygote_pid
from tests.escape.probing import Echo, probe_pool

from lodger.bench.attempts import recorded_deaths
from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Outcome, Pool

SCRIPT = "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }"
#: More garbage in cycles than the engine keeps without a collection, which must not write to the library's thousand pages.
GARBAGE = "export default () => { for (let i = 0; i < 30000; i++) { const a = {}; a.b = { a }; } }"
#: More shapes of objects than half of what the engine's table has room for; a larger table would write to each of the library's.
SHAPES = "export default () => { const made = []; for (let i = 0; i < 500; i++) made.push(Object.create({})); }"
MAX_FAULTS = {"quickjs": 500, "quickjs-native": 525, "probe": 305}
MAX_CALLS = {"quickjs": 44, "quickjs-native": 42}
COUNTER = Path(__file__).with_name("call_counter.py")


@pytest.mark.parametrize(
    ("runtime", "code", "most"),
    [
        *((runtime, SCRIPT, most) for runtime, most in MAX_FAULTS.items()),
        ("quickjs", GARBAGE, 800),
        ("quickjs", SHAPES, 545),
    ],
    ids=[*MAX_FAULTS, "garbage", "shapes"],
)
async def test_page_faults_of_a_worker(runtime: str, code: str, most: int) -> None:
    async with started(probe_pool() if runtime == "probe" else Pool(runtime=runtime, size=1)) as pool:
        with recorded_deaths() as deaths:
            for number in range(15):
                report = await pool.run(Job(Bundle({"main.js": "done('1')" if runtime == "probe" else code})), Echo())
                assert report.outcome is Outcome.OK
                if not number:
                    deaths.clear()

    faults = [death.minor_faults for death in deaths]
    assert len(faults) > 10
    assert median(faults[:14]) <= most, sorted(faults)


@pytest.mark.parametrize("runtime", MAX_CALLS)
def test_system_calls_of_a_worker(runtime: str) -> None:
    if not (counts := asyncio.run(system_calls(runtime))) and os.geteuid() != 0:
        pytest.skip("NOT TESTED as root: this user may not trace the zygote (run as root)")
    assert len(counts) == 4
    assert max(counts) <= MAX_CALLS[runtime], counts


async def system_calls(runtime: str) -> list[int]:
    """Return the number of system calls of four workers, nothing without the right to count them."""
    async with started(Pool(runtime=runtime, size=1)) as pool:
        assert pool.zygote
        counter = await asyncio.create_subprocess_exec(
            sys.executable, str(COUNTER), str(zygote_pid(pool)), "4", stdout=PIPE, stderr=DEVNULL
        )
        assert counter.stdout
        await counter.stdout.readline()
        for _ in range(6):
            assert (await pool.run(Job(Bundle({"main.js": SCRIPT})), Echo())).outcome is Outcome.OK
        return [int(line) for line in (await counter.communicate())[0].split()]
