"""CPU and wall limits: each of the three walls for CPU time stops a loop by itself."""

import asyncio
import time

import pytest
from tests.escape.probing import Echo, probe, probe_job, probe_pool

from lodger.escape.runner import started
from lodger.sandbox import Outcome, Report
from lodger.sandbox.job import LogLine
from lodger.sandbox.workers.worker_run import cpu_ms

LOOP = "while True: pass"
SPEAK_THEN_LOOP = 'log("go")\nwhile True: pass'


class Stalled(Echo):
    """Host that blocks the event loop from the first log line until the worker ended or used some CPU time."""

    def __init__(self, until_ms: float) -> None:
        super().__init__()
        self.until_ms = until_ms
        self.pid = 0

    def log(self, line: LogLine) -> None:
        patience = time.monotonic() + 60
        while 0 <= cpu_ms(self.pid) < self.until_ms and time.monotonic() < patience:
            time.sleep(0.005)


def probe_stalled(without: tuple[str, ...], until_ms: float, **limits: int) -> Report:
    async def go() -> Report:
        host = Stalled(until_ms)
        async with started(probe_pool(without)) as pool:
            host.pid = pool.ready[0]
            return await pool.run(probe_job(SPEAK_THEN_LOOP, **limits), host)

    return asyncio.run(go())


def test_cpu_limit_says_so() -> None:
    report = probe(LOOP, cpu_ms=100)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.error is not None
    assert "100 ms" in report.error.message
    assert 90 <= report.usage.cpu_ms <= 1000


def test_kernel_timer_alone() -> None:
    report = probe_stalled((), 500, cpu_ms=50)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.usage.cpu_ms < 400
    report = probe_stalled(("cpu_timer",), 500, cpu_ms=50)
    assert report.outcome is Outcome.CPU_LIMIT, "the parent's look stops it, late"
    assert report.usage.cpu_ms > 450


def test_parents_look_alone() -> None:
    report = probe(LOOP, ("cpu_timer", "rlimits"), cpu_ms=100)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.usage.cpu_ms <= 1000


def test_with_all_three_gone_only_the_wall_limit_is_left() -> None:
    report = probe(LOOP, ("cpu_timer", "rlimits"), cpu_ms=100, wall_ms=140)  # the parent's CPU deadline is at 150 ms
    assert report.outcome is Outcome.WALL_LIMIT


@pytest.mark.slow
def test_rlimit_cpu_is_the_last_line() -> None:
    report = probe_stalled(("cpu_timer",), 4000, cpu_ms=10)
    assert report.outcome is Outcome.CPU_LIMIT
    assert 1500 < report.usage.cpu_ms < 3500


def test_wall_limit_of_a_sleeper() -> None:
    report = probe("hear()", wall_ms=60)
    assert report.outcome is Outcome.WALL_LIMIT
    assert 55 <= report.usage.wall_ms < 20_000
    assert report.usage.cpu_ms < 55


def test_warm_up_is_not_charged() -> None:
    report = probe('done("1")')
    assert report.outcome is Outcome.OK
    assert 0 <= report.usage.cpu_ms < 60
