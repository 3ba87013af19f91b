"""Fuel limits instructions, not time: the same program has the same outcome every time."""

from collections.abc import Iterator

import pytest
from tests.escape.commands import command
from tests.limits.machine import Machine

from lodger.sandbox import Outcome, Pool
from lodger.sandbox.errors import SandboxError

PROGRAMS: dict[str, str | bytes] = {
    "quickjs": "let n = 0; for (let i = 0; i < 3000; i++) n = (n * 31 + i) % 65521; console.log(n); return n",
    "wasm": command(
        """(loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3000))))
           (call $say (local.get $i))""",
        locals_="(local $i i32)",
    ),
}
TIMES = 100


@pytest.fixture(params=list(PROGRAMS))
def metered(request: pytest.FixtureRequest) -> Iterator[Machine]:
    machine = Machine(request.param, metered=True)
    yield machine
    machine.close()


def test_the_same_verdict_a_hundred_times(metered: Machine) -> None:
    program = PROGRAMS[metered.name]
    enough, short = 1 << 30, 0
    while enough - short > 1:  # bisection of the greatest insufficient amount
        middle = (enough + short) // 2
        if metered(program, fuel=middle, cpu_ms=10_000).outcome is Outcome.OK:
            enough = middle
        else:
            short = middle
    assert enough > 3000, "an instruction costs a unit"
    for fuel, outcome in ((enough - 1, Outcome.CPU_LIMIT), (enough, Outcome.OK), (enough + 1, Outcome.OK)):
        found = {metered(program, fuel=fuel, cpu_ms=10_000).outcome for _ in range(TIMES)}
        assert found == {outcome}


@pytest.mark.parametrize(
    "endless",
    [
        "Array.prototype.reverse.call({ length: 2 ** 53 - 2 })",
        "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return a",
        "for (;;) JSON.parse('[1,2,3]')",
    ],
)
def test_what_never_asks_is_stopped_at_the_same_place(endless: str) -> None:
    machine = Machine("quickjs", metered=True)
    try:
        reports = [machine(endless, fuel=200_000_000, cpu_ms=20_000, wall_ms=60_000) for _ in range(3)]
    finally:
        machine.close()
    assert {report.outcome for report in reports} == {Outcome.CPU_LIMIT}
    assert all(report.error is not None and "fuel" in report.error.message for report in reports)


def test_a_runtime_without_meter_refuses() -> None:
    with pytest.raises(SandboxError, match="quickjs-native"):
        Pool(runtime="quickjs-native", metered=True)
