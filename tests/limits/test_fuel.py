"""Fuel is a ceiling on instructions, not on time: the same script has the same verdict every time."""

from collections.abc import Iterator

import pytest
from tests.limits.machine import Machine

from lodger.sandbox import Outcome, Pool
from lodger.sandbox.errors import SandboxError

WORK = "let n = 0; for (let i = 0; i < 3000; i++) n = (n * 31 + i) % 65521; console.log(n); return n"


@pytest.fixture
def metered() -> Iterator[Machine]:
    machine = Machine("quickjs", metered=True)
    yield machine
    machine.close()


def test_the_same_verdict_a_hundred_times(metered: Machine) -> None:
    enough, short = 1 << 30, 0
    while enough - short > 1:  # the last unit that does not suffice, found by halving
        middle = (enough + short) // 2
        if metered(WORK, fuel=middle, cpu_ms=10_000).outcome is Outcome.OK:
            enough = middle
        else:
            short = middle
    for fuel, outcome in ((enough - 1, Outcome.CPU_LIMIT), (enough, Outcome.OK), (enough + 1, Outcome.OK)):
        found = {metered(WORK, fuel=fuel, cpu_ms=10_000).outcome for _ in range(100)}
        assert found == {outcome}


def test_a_runtime_without_meter_refuses() -> None:
    with pytest.raises(SandboxError, match="quickjs-native"):
        Pool(runtime="quickjs-native", metered=True)
