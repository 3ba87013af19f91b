"""Randomness and clock: workers of one zygote draw different numbers, and the clock is the job's."""

import pytest
from tests.unit.runtime import harness

RUNTIMES = ("quickjs", "quickjs-native")
BOTH = pytest.mark.parametrize("runtime", RUNTIMES, indirect=True)

DRAW = "return [Math.random(), Math.random()]"


@BOTH
def test_forked_twins_differ(run) -> None:
    drawn = [tuple(run(DRAW).result) for _ in range(20)]
    assert len(set(drawn)) == 20
    assert all(0 <= one < 1 for pair in drawn for one in pair)


@pytest.mark.parametrize("kind", RUNTIMES)
def test_without_the_reseed_twins_are_equal(kind: str) -> None:
    runtime = harness.prepared(kind, without="reseed")
    assert harness.run(runtime, DRAW).result == harness.run(runtime, DRAW).result


@BOTH
def test_kernel_randomness(run) -> None:
    source = "return [crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(8))]]"
    one, two = run(source).result, run(source).result
    assert one[0] != two[0]
    assert one[1] != two[1]
    assert one[0][14] == "4"


@BOTH
def test_the_clock_starts_where_the_job_says(run) -> None:
    now = run("return Date.now()", now_us=1_700_000_000_123_456).result
    assert 1_700_000_000_123 <= now < 1_700_000_060_000


@BOTH
def test_time_zone_is_utc(run) -> None:
    assert run("return [new Date(0).getTimezoneOffset(), new Date(2026, 0, 1).toISOString()]").result == [
        0,
        "2026-01-01T00:00:00.000Z",
    ]
