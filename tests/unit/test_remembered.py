"""A recurrence that remembers answers as the one that does not, in whatever order it is asked."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import Union
from lodger.engine.store.remembered import KEPT, Remembered

BEGIN = datetime(2026, 3, 28, tzinfo=UTC)
SCHEDULES = [
    ScheduleRules((RuleSpec("every 90m", dtstart="2026-03-28T00:30:00+00:00"),)),
    ScheduleRules((RuleSpec("30 1,2 * * *"), RuleSpec("*/40 3 * * *")), tz="Europe/Berlin"),
    ScheduleRules((RuleSpec("every 50m"),), (RuleSpec("* 2-4 * * *"),), start=BEGIN, end=BEGIN + timedelta(days=2)),
    ScheduleRules((RuleSpec("2026-03-29T01:00:00+00:00"),)),
]


def compiled(number: int) -> Union:
    return compile_schedule(SCHEDULES[number], now=BEGIN)


@given(
    st.integers(0, len(SCHEDULES) - 1),
    st.lists(st.tuples(st.integers(-600, 4000), st.booleans()), min_size=1, max_size=30),
)
def test_it_answers_as_what_it_remembers(number: int, asked: list[tuple[int, bool]]) -> None:
    plain, remembered = compiled(number), Remembered(compiled(number))
    for minutes, inclusive in asked:
        instant = BEGIN + timedelta(minutes=minutes)
        expected = plain.next_after(instant, inclusive=inclusive)
        assert remembered.next_after(instant, inclusive=inclusive) == expected
        # Slots themselves are asked about most of all.
        if expected is not None:
            assert remembered.next_after(expected) == plain.next_after(expected)
            assert remembered.next_after(expected, inclusive=True) == expected


def test_it_asks_once_and_keeps_few() -> None:
    class Counted(Union):
        questions = 0

        def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
            self.questions += 1
            return super().next_after(instant, inclusive=inclusive)

    inner = Counted(compiled(0).rules)
    remembered = Remembered(inner)
    first = remembered.next_after(BEGIN)
    assert first is not None
    for minutes in range(30):
        assert remembered.next_after(BEGIN + timedelta(minutes=minutes)) == first
    assert inner.questions == 1
    slot: datetime | None = first
    for _ in range(100):
        assert slot is not None
        slot = remembered.next_after(slot)
    assert inner.questions == 101
    before = inner.questions
    assert remembered.next_after(BEGIN) == first
    assert inner.questions == before + 1, f"only the last {KEPT} answers are remembered"
