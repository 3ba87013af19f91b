"""What a schedule may say about its actions, and what an operator may allow a tenant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.errors import InputError
from lodger.engine.policy.budget_table import ALLOWANCES, CPU, RUNS, Allowance, Used, exhausted
from lodger.engine.policy.conduct import Conduct, Priority, parse_conduct, parse_priority
from lodger.engine.policy.defaults import POLICIES

OPERATOR = Allowance(2, 1000, 10_000, 100, 60, None, None, None, 30, 1000)
counts = st.integers(0, 50)


@given(
    jitter_s=st.floats(0, 86_400),
    expires_s=st.integers(0, 1000),
    priority=st.sampled_from(["high", "normal", "low"]),
    pause_after=st.integers(0, 100),
)
def test_conduct_reads_what_it_writes(jitter_s: float, expires_s: int, priority: str, pause_after: int) -> None:
    conduct = Conduct(jitter_s, expires_s, priority, pause_after)
    assert parse_conduct(conduct.as_dict()) == conduct


def test_without_a_word_nothing_changes() -> None:
    conduct = parse_conduct(None)
    assert (conduct.jitter_s, conduct.expiry_us, conduct.rank) == (0, None, Priority.NORMAL)
    assert not conduct.stops(10_000)


@given(limit=st.integers(1, 20), failures=counts)
def test_a_schedule_is_paused_at_its_number_and_not_before(limit: int, failures: int) -> None:
    assert Conduct(pause_after=limit).stops(failures) == (failures >= limit)


def test_high_goes_first() -> None:
    assert parse_priority("High") < parse_priority("normal") < parse_priority(" low ")


@pytest.mark.parametrize(
    "wish",
    [
        {"jitter_s": -1},
        {"jitter_s": 1e9},
        {"jitter_s": float("nan")},
        {"expires_s": "soon"},
        {"pause_after": 1.5},
        {"pause_after": True},
        {"priority": "urgent"},
        {"colour": 1},
    ],
)
def test_nonsense_is_refused_with_the_way_out(wish: dict[str, object]) -> None:
    with pytest.raises(InputError) as refused:
        parse_conduct(wish)
    assert refused.value.fix


@given(runs=st.none() | counts, cpu=st.none() | counts, used=st.tuples(counts, counts))
def test_nothing_starts_exactly_when_runs_or_cpu_time_are_used_up(
    runs: int | None, cpu: int | None, used: tuple[int, int]
) -> None:
    allowance = Allowance(2, 1000, 10_000, 100, 60, runs, cpu, 0, 30, 1000)
    spent = Used(used[0], used[1] * 1_000_000)
    over = [
        reason
        for reason, most, much in zip((RUNS, CPU), (runs, cpu), used, strict=True)
        if most is not None and much >= most
    ]
    assert exhausted(allowance, spent) == (over[0] if over else None)


def test_a_tenant_may_have_more_or_less_than_the_operators_default() -> None:
    mine = OPERATOR.instead({"min_interval_s": 1, "runs_per_day": 5, "cpu_ms": 7})
    assert (mine.min_interval_s, mine.runs_per_day, mine.schedules) == (1, 5, 100)
    for spec in ALLOWANCES:
        with pytest.raises(InputError, match=spec.name):
            OPERATOR.instead({spec.name: spec.minimum - 1})
        with pytest.raises(InputError, match=spec.name):
            OPERATOR.instead({spec.name: "many"})


def test_every_default_of_conduct_stands_in_the_one_table() -> None:
    assert set(Conduct().as_dict()) <= {spec.name for spec in POLICIES}
