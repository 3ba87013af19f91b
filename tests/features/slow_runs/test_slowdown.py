"""Slow-downs: a jump and a drift are found once each, against a baseline that does not follow the runs."""

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.features.slow_runs.slowdown import Onset, Slowdown, review
from lodger.engine.policy.pace import MAX_RUNS, Timing


def slowdowns(walls: list[float], every: int = 1) -> list[tuple[int, Slowdown]]:
    """Review after every so many runs, as a node does; return each slow-down with the number of the run that showed it."""
    baseline, found = None, []
    for number in range(1, len(walls) + 1):
        if number % every == 0:
            known = [Timing(index, walls[index]) for index in range(number)][::-1][:MAX_RUNS]
            baseline, slowdown = review(baseline, known)
            if slowdown is not None:
                found.append((number, slowdown))
    return found


def test_a_jump_is_found_at_its_third_run_and_once() -> None:
    ((number, slowdown),) = slowdowns([112.0] * 30 + [2525.0] * 100)
    assert number == 33
    assert slowdown == Slowdown(Onset.JUMP, 112.0, 2525.0)


def test_a_jump_is_found_when_runs_are_reviewed_seldom() -> None:
    ((number, slowdown),) = slowdowns([112.0] * 40 + [2525.0] * 60, every=20)
    assert (number, slowdown.onset) == (60, Onset.JUMP)


def test_a_drift_is_found_though_no_run_is_slow_beside_the_ones_before_it() -> None:
    found = slowdowns([1000.0 * 1.005**number for number in range(300)])
    assert [slowdown.onset for _number, slowdown in found] == [Onset.DRIFT] * len(found)
    assert 1 <= len(found) <= 2  # 1000 ms → 4450 ms: twice as long, and once more
    assert found[0][1].to_ms >= 2 * found[0][1].from_ms


def test_a_second_jump_after_a_recovery_is_found() -> None:
    walls = [112.0] * 30 + [2525.0] * 30 + [112.0] * 30 + [2525.0] * 30
    assert [number for number, _slowdown in slowdowns(walls)] == [33, 93]


def test_single_outliers_and_the_first_runs_are_no_slowdown() -> None:
    assert slowdowns(([100.0] * 9 + [9000.0]) * 10) == []
    assert slowdowns([100.0] * 4 + [9000.0] * 4) == []


def test_quick_runs_that_stay_quick_are_no_slowdown() -> None:
    assert slowdowns([10.0] * 30 + [900.0] * 30) == []


@given(st.floats(1, 1e6), st.lists(st.floats(0.75, 1.25), min_size=1, max_size=120))
def test_noise_of_a_quarter_is_no_slowdown(level: float, noise: list[float]) -> None:
    assert slowdowns([level * each for each in noise]) == []
