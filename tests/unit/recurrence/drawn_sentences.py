"""Rules with their sentences, and rules drawn at random."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from lodger.engine.recurrence.rule import Recurrence

STARTS = [
    datetime(2024, 2, 27, 22, 58, 30, tzinfo=UTC),
    datetime(2027, 12, 30, tzinfo=UTC),
    datetime(1999, 5, 31, tzinfo=UTC),
]


MINUTES = ["*", "0", "30", "*/5", "0-59", "*/15", "0,15,30,45", "5-10", "0,30", "*/7", "59", "*/1"]


HOURS = ["*", "0", "9", "9-17", "*/2", "0-23", "0-22/2", "22-2", "0,12", "9,10,11", "*/8"]


DAYS = ["*", "1", "1-31", "31", "L", "LW", "L-3", "15W", "13", "*/2", "1-31/2", "28-2", "L-1W"]


MONTHS = ["*", "1", "2", "1-12", "*/3", "NOV-FEB", "JAN,MAR,MAY"]


WEEKDAYS = ["*", "?", "0", "7", "FRI", "1-5", "5#2", "5L", "*/2", "FRI-MON", "0-6", "5#5"]


SECONDS = ["0", "*", "30", "*/15", "0,30", "0-59", "*/7"]


READINGS = ["", "DAYS=both ", "DAYS=either "]


CRON = st.tuples(*(st.sampled_from(field) for field in (READINGS, SECONDS, MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)))


CLOCK = [
    "",
    "s(*)",
    "s(0)",
    "s(*%15)",
    "m(*)",
    "m(0)",
    "m(30)",
    "m(*%5)",
    "m(!0)",
    "h(*)",
    "h(9)",
    "h(9..17)",
    "h(!3)",
    "h(22..2)",
    "h(9) m(30)",
    "h(*%2)",
]


WEEK = ["", "dow(fri)", "dow(!fri)", "dow(mon..fri)", "dow(sat..sun)", "dow(*)", "dow(*%2)"]


MONTHLY = [
    "",
    "dom(1)",
    "dom(-1)",
    "dom(1..-1)",
    "dom(-3..3)",
    "dom(*%2)",
    "dom(5%2)",
    "dom(5..<9)",
    "dom(5..9)",
    "dom(!13)",
    "dom(20..5%3)",
]


YEARLY = ["", "doy(1)", "doy(-1)", "doy(366)", "doy(*%10)", "doy(100..200%7)", "doy(!1)"]


DATED = [
    "",
    "dates(2/29)",
    "dates(12/25)",
    "dates(!12/25)",
    "dates(12/30..1/2)",
    "dates(12/30..<1/2)",
    "dates(2024/2/28..2024/3/2)",
    "dates(*%100)",
]


SCHYNTAX = st.tuples(*(st.sampled_from(unit) for unit in (CLOCK, WEEK, MONTHLY, YEARLY, DATED))).filter(any)


def cron_text(parts: tuple[str, ...]) -> str:
    return parts[0] + " ".join(parts[1:])


def schyntax_text(parts: tuple[str, ...]) -> str:
    return " ".join(part for part in parts if part)


def first_slots(rule: Recurrence) -> list[datetime | None]:
    found: list[datetime | None] = []
    for start in STARTS:
        slot: datetime | None = start
        for _ in range(50):
            answer = rule.next_after(slot, limit=10_000) if slot is not None else None
            slot = answer if isinstance(answer, datetime) else None
            found.append(slot)
    return found
