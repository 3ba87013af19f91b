"""No sentence means two things: over all languages together, and for every part of an RRULE."""

from contextlib import suppress
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.drawn_sentences import CRON, SCHYNTAX, cron_text, first_slots, schyntax_text
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import DstPolicy, Gap, Recurrence, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schedule import CompiledSchedule, Windows

PARTS = {
    "INTERVAL": ["2", "3", "7"],
    "BYMONTH": ["1", "2", "1,3,5"],
    "BYMONTHDAY": ["1", "-1", "13", "29,31"],
    "BYYEARDAY": ["1", "-1", "100,366"],
    "BYDAY": ["MO", "SA,SU", "MO,TU,WE,TH,FR", "MO,TU,WE,TH,FR,SA,SU"],
    "BYHOUR": ["0", "9", "9,17"],
    "BYMINUTE": ["0", "30", "0,15,30,45"],
    "BYSECOND": ["0", "30", "0,20,40"],
    "BYSETPOS": ["1", "-1", "2"],
    "WKST": ["SU", "WE"],
    "COUNT": ["1", "10", "49"],
    "UNTIL": ["20991231", "20300101T000000"],
}
STARTS = ["DTSTART:20240227T225800", "DTSTART:19990531T000000", "DTSTART;TZID=Europe/Berlin:20240101T090000"]
FREQS = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]


def rrule_text(dice: Random) -> str:
    names = dice.sample(sorted(PARTS), dice.randint(0, 4))
    if "COUNT" in names and "UNTIL" in names:
        names.remove("UNTIL")
    if "BYSETPOS" in names and not any(name in names for name in ("BYDAY", "BYMONTHDAY", "BYHOUR", "BYMINUTE")):
        names.remove("BYSETPOS")
    rule = "".join(f";{name}={dice.choice(PARTS[name])}" for name in names)
    return f"{dice.choice(STARTS)}\nRRULE:FREQ={dice.choice(FREQS)}{rule}"


def heard(texts: list[str]) -> None:
    said: dict[str, str] = {}
    for text in texts:
        words = parse_rule(RuleSpec(text)).text()
        first = said.setdefault(words, text)
        if first != text:
            one, other = (first_slots(parse_rule(RuleSpec(each))) for each in (first, text))
            assert one == other, f"{first!r} and {text!r} share {words!r}"


EVERY = st.integers(1, 400).map(lambda n: f"every {n * 15}m") | st.integers(1, 90).map(lambda n: f"every {n}h")
ONCE = st.integers(10, 28).map(lambda n: f"at 2027-01-{n}T09:00")
RRULE = st.integers(0, 2**32).map(lambda seed: rrule_text(Random(seed)))
BARE = st.tuples(st.sampled_from(FREQS), st.sampled_from(["", ";BYHOUR=9;BYMINUTE=0;BYSECOND=0", ";BYDAY=MO"])).map(
    lambda pair: f"FREQ={pair[0]}{pair[1]}"
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        CRON.map(cron_text) | SCHYNTAX.map(schyntax_text) | EVERY | ONCE | RRULE | BARE,
        min_size=2,
        max_size=60,
        unique=True,
    )
)
def test_no_two_languages_share_a_sentence_for_different_slots(texts: list[str]) -> None:
    heard(texts)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(sorted(PARTS)))
def test_a_changed_or_dropped_part_of_an_rrule_is_heard(seed: int, name: str) -> None:
    text = rrule_text(Random(seed))
    head, _, rule = text.partition("RRULE:")
    kept = [part for part in rule.split(";") if not part.startswith(f"{name}=")]
    if any(part.startswith("BYSETPOS") for part in kept) and not any(
        part.startswith(("BYDAY", "BYMONTHDAY", "BYHOUR", "BYMINUTE")) for part in kept
    ):
        kept = [part for part in kept if not part.startswith("BYSETPOS")]
    blocked = {"COUNT": "UNTIL", "UNTIL": "COUNT"}.get(name, "-")
    if name == "BYSETPOS" or any(part.startswith(blocked) for part in kept):
        return
    others = [f"{head}RRULE:{';'.join([*kept, f'{name}={value}'])}" for value in PARTS[name]]
    heard([*others, f"{head}RRULE:{';'.join(kept)}"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FREQ=DAILY", "FREQ=DAILY;INTERVAL=2"),
        ("FREQ=YEARLY;BYMONTH=1", "FREQ=YEARLY;BYMONTH=2"),
        ("FREQ=MONTHLY;BYDAY=1MO", "FREQ=MONTHLY;BYDAY=-1MO"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1", "FREQ=MONTHLY;BYDAY=MO"),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO;WKST=SU"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU"),
        ("FREQ=DAILY;COUNT=5", "FREQ=DAILY;COUNT=6"),
        ("FREQ=DAILY;UNTIL=20260105", "FREQ=DAILY;UNTIL=20260106"),
        ("FREQ=HOURLY;BYMINUTE=5", "FREQ=HOURLY;BYMINUTE=6"),
        ("FREQ=HOURLY;BYSECOND=5", "FREQ=HOURLY"),
        ("FREQ=DAILY\nEXDATE:20260102T090000", "FREQ=DAILY"),
        ("FREQ=DAILY\nRDATE:20260102T100000", "FREQ=DAILY"),
        ("FREQ=DAILY\nEXRULE:FREQ=WEEKLY", "FREQ=DAILY"),
    ],
)
def test_a_planted_dropped_part_is_caught(one: str, other: str) -> None:
    rules = [parse_rule(RuleSpec(f"DTSTART:20260101T090000\nRRULE:{text}")) for text in (one, other)]
    assert first_slots(rules[0]) != first_slots(rules[1])
    assert rules[0].text() != rules[1].text()


def schedule(*rules: str, but: tuple[str, ...] = (), berlin: tuple[str, ...] = (), **others: object) -> ScheduleRules:
    """Rules in UTC, then some in Berlin, and exclusions in UTC."""
    there = (RuleSpec(text, tz="Europe/Berlin") for text in berlin)
    return ScheduleRules((*map(RuleSpec, rules), *there), tuple(map(RuleSpec, but)), **others)  # type: ignore[arg-type]  # as they come


MORNING, HOURLY, NINE, HALF = "FREQ=DAILY;BYHOUR=9", "FREQ=HOURLY", "0 9 * * *", "30 8 * * *"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # What an EXRULE takes from its own set, an exclusion takes from all rules.
        (schedule(NINE, f"RRULE:{HOURLY}\nEXRULE:{MORNING}"), schedule(NINE, HOURLY, but=(MORNING,))),
        (
            schedule(HALF, f"RRULE:{MORNING}\nRRULE:{HOURLY}\nEXRULE:{MORNING}"),
            schedule(HALF, MORNING, f"RRULE:{HOURLY}\nEXRULE:{MORNING}"),
        ),
        # A zone is that of a set or of groups as a whole, or of the last rule alone.
        (
            schedule(berlin=(f"RRULE:{MORNING}\nRRULE:FREQ=DAILY;BYHOUR=10",)),
            schedule(MORNING, berlin=("FREQ=DAILY;BYHOUR=10",)),
        ),
        (schedule(berlin=("{h(9)} {h(10)}",)), schedule(NINE, berlin=("0 10 * * *",))),
        # What dates alone and an EXRULE mean depends on where the EXRULE counts from.
        *[
            (
                schedule(f"DTSTART:{start}\nRDATE:20260105T090000,20260106T090000\nEXRULE:FREQ=DAILY;INTERVAL=2"),
                schedule("DTSTART:20260101T090000\nRDATE:20260105T090000,20260106T090000\nEXRULE:FREQ=DAILY;INTERVAL=2"),
            )
            for start in ("20260102T090000", "20251231T090000")
        ],
        # A bound between two slots of an interval.
        (
            schedule("every 90m", start=datetime(2025, 1, 1, tzinfo=UTC)),
            schedule("every 90m", start=datetime(2025, 1, 1, 0, 0, 0, 5, tzinfo=UTC)),
        ),
        (
            schedule("every 90m", end=datetime(2025, 1, 1, tzinfo=UTC)),
            schedule("every 90m", end=datetime(2025, 1, 1, 0, 0, 0, 5, tzinfo=UTC)),
        ),
        # A policy that is the default of one group and not of the other.
        (
            schedule(berlin=("{m(30)} {h(5)}",)),
            schedule(berlin=("{m(30)} {h(5)}",), dst=DstPolicy(gap=Gap.NEXT)),
        ),
    ],
)  # fmt: skip
def test_schedules_of_the_same_words_are_told_apart(one: ScheduleRules, other: ScheduleRules) -> None:
    first, second = compile_schedule(one), compile_schedule(other)
    assert not same_slots(first, second)
    assert first.text() != second.text()


def same_slots(one: Recurrence, other: Recurrence) -> bool:
    """By their first slots, and by those around the bounds and changes of clocks of the schedules here."""
    spring = datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 3, 29, tzinfo=UTC)
    bound = datetime(2024, 12, 31, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC)
    nearby = all([*one.between(*span)] == [*other.between(*span)] for span in (spring, bound))
    return nearby and first_slots(one) == first_slots(other)


POOL = [
    MORNING,
    HOURLY,
    f"RRULE:{HOURLY}\nEXRULE:{MORNING}",
    f"RRULE:{MORNING}\nRRULE:{HOURLY}",
    f"RRULE:{MORNING}\nRRULE:{HOURLY}\nEXRULE:{MORNING}",
    NINE,
    "h(10)",
    "{h(9)} {h(10)}",
    "{m(30)} {h(5)}",
    "m(30)",
    "every 90m",
]
BOUNDS = [None, datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, 0, 0, 0, 5, tzinfo=UTC)]


def drawn(dice: Random) -> ScheduleRules:
    """A schedule of few words, put together in as many ways as there are."""

    def specs(count: int) -> tuple[RuleSpec, ...]:
        return tuple(
            RuleSpec(dice.choice(POOL), tz=dice.choice([None, None, None, "Europe/Berlin"])) for _ in range(count)
        )

    return ScheduleRules(
        specs(dice.choice([1, 1, 2, 2, 3])),
        specs(dice.choice([0, 0, 1])),
        dst=DstPolicy(dice.choice([None, None, None, Gap.NEXT, Gap.SKIP])),
        start=dice.choice([None, None, *BOUNDS]),
    )


def said_of(rules: ScheduleRules) -> str:
    """Its sentence, without the work of taking exclusions away."""
    included, excluded = (
        [parse_rule(spec, dst=rules.dst) for spec in each] for each in (rules.rules, rules.exclusions)
    )
    return CompiledSchedule(included, [Windows(opens) for opens in excluded], start=rules.start).text()


@settings(max_examples=examples(1), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**32))
def test_no_two_schedules_share_a_sentence(seed: int) -> None:
    dice, said = Random(seed), dict[str, ScheduleRules]()
    for _ in range(300):
        rules = drawn(dice)
        words = said_of(rules)
        first = said.setdefault(words, rules)
        if first != rules:
            with suppress(RuleInvalid):  # exclusions that are not decided
                same = same_slots(compile_schedule(first), compile_schedule(rules))
                assert same, f"{first} and {rules} share {words!r}"
