"""What is unusually long: held by its laws."""

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.policy.pace import FACTOR, MIN_MORE_MS, MIN_RUNS, pace

_walls = st.lists(st.floats(0, 1e7), min_size=MIN_RUNS, max_size=50)


@given(st.lists(st.floats(0, 1e7), max_size=MIN_RUNS - 1), st.floats(0, 1e9))
def test_of_too_few_runs_nothing_is_slow(walls: list[float], took: float) -> None:
    assert not pace(walls).slow(took)


@given(_walls, st.floats(0, 1e9), st.floats(0, 1e9))
def test_what_is_longer_than_a_slow_run_is_slow(walls: list[float], took: float, more: float) -> None:
    known = pace(walls)
    if known.slow(took):
        assert known.slow(took + more)


@given(_walls)
def test_half_of_the_runs_are_never_slow_and_a_second_more_is_needed(walls: list[float]) -> None:
    known = pace(walls)
    assert sum(known.slow(wall) for wall in walls) <= len(walls) / 2
    assert not known.slow(known.median_ms + MIN_MORE_MS)
    assert not known.slow(known.median_ms * FACTOR)


@given(_walls, st.floats(1e8, 1e12))
def test_one_outlier_moves_the_limit_no_further_than_the_rest_reaches(walls: list[float], outlier: float) -> None:
    limit = pace([*walls, outlier]).limit_ms
    assert limit is not None
    assert limit < outlier


def test_a_job_of_a_minute_that_takes_two_is_slow_and_one_that_varies_is_not() -> None:
    steady, varying = pace([60_000.0] * 10), pace([20_000.0, 40_000, 60_000, 80_000, 100_000])
    assert steady.slow(120_000)
    assert not steady.slow(61_000)
    assert not varying.slow(120_000)
