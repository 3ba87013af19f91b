"""CPU and wall limits: three lines behind each other for CPU, each seen to stop a loop by itself."""

import time

import pytest
from tests.escape.probing import Echo, probe

from lodger.sandbox import Outcome
from lodger.sandbox.job import LogLine

LOOP = "while True: pass"
SPEAK_THEN_LOOP = 'log("go")\nwhile True: pass'


class Stalled(Echo):
    """An engine whose event loop stands still after the first line: the parent's own look at the clock cannot come."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def log(self, line: LogLine) -> None:
        time.sleep(self.seconds)


def test_cpu_limit_says_so() -> None:
    report = probe(LOOP, cpu_ms=100)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.error is not None
    assert "100 ms" in report.error.message
    assert 90 <= report.usage.cpu_ms <= 1000


def test_kernel_timer_alone() -> None:
    report = probe(SPEAK_THEN_LOOP, host=Stalled(0.8), cpu_ms=50)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.usage.cpu_ms < 250
    report = probe(SPEAK_THEN_LOOP, ("cpu_timer",), host=Stalled(0.8), cpu_ms=50)
    assert report.outcome is Outcome.CPU_LIMIT, "the parent's look stops it, late"
    assert report.usage.cpu_ms > 300


def test_parents_look_alone() -> None:
    report = probe(LOOP, ("cpu_timer", "rlimits"), cpu_ms=100)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.usage.cpu_ms <= 1000


def test_parents_look_gone_with_the_others_only_the_wall_limit_is_left() -> None:
    report = probe(SPEAK_THEN_LOOP, ("cpu_timer", "rlimits"), host=Stalled(0.5), cpu_ms=50, wall_ms=90)
    assert report.outcome is Outcome.WALL_LIMIT


@pytest.mark.slow
def test_rlimit_cpu_is_the_last_line() -> None:
    report = probe(SPEAK_THEN_LOOP, ("cpu_timer",), host=Stalled(4.0), cpu_ms=10)
    assert report.outcome is Outcome.CPU_LIMIT
    assert 1500 < report.usage.cpu_ms < 3000


def test_wall_limit_of_a_sleeper() -> None:
    report = probe("hear()", wall_ms=60)
    assert report.outcome is Outcome.WALL_LIMIT
    assert 55 <= report.usage.wall_ms < 1200
    assert report.usage.cpu_ms < 55


def test_wall_limit_of_half_a_frame() -> None:
    report = probe("os.write(channel._descriptor, b'\\x00\\x04\\x00')\nhear()", wall_ms=60)
    assert report.outcome is Outcome.WALL_LIMIT


def test_warm_up_is_not_charged() -> None:
    report = probe('done("1")')
    assert report.outcome is Outcome.OK
    assert 0 <= report.usage.cpu_ms < 20


def test_memory_is_measured_from_an_idle_worker() -> None:
    small = probe('done("1")').usage.memory_peak_bytes
    large = probe(
        "x = bytearray(32 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\ndone('1')"
    ).usage.memory_peak_bytes
    assert small < 8 << 20
    assert 30 << 20 < large < 48 << 20


def test_memory_limit_within_sixteen_mib() -> None:
    report = probe("hold = []\nwhile True: hold.append(bytearray(1 << 20))", memory_bytes=32 << 20)
    assert report.outcome is Outcome.MEMORY_LIMIT
    assert report.usage.memory_peak_bytes <= (32 + 16 + 4) << 20
