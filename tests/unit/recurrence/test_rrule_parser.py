"""The parser is strict: every malformed set is refused with a code, a reason, a cure and a position."""

from datetime import UTC, datetime

import pytest

from lodger.engine.recurrence.rrule import parse
from lodger.engine.recurrence.rule_errors import RuleInvalid

FIRST = datetime.min.replace(tzinfo=UTC)
START = "DTSTART:20260101T090000\n"

#: What is refused for its size, or for what is not there; refusals.txt has the other mistakes.
BAD = [
    ("", "rule_empty", 0),
    ("  \n ", "rule_empty", 0),
    ("RRULE:\n", "part_malformed", 5),
    ("FREQ=DAILY;INTERVAL=" + "9" * 400, "number_out_of_range", 20),
    ("FREQ=DAILY;BYSECOND=" + ",".join(["1"] * 2100), "rule_too_long", 0),
    (START + "RDATE:" + ",".join(["20260101T000000"] * 1001), "too_many_dates", 30),
    (START + "RRULE:FREQ=DAILY\n" * 17, "too_many_rules", 296),
    ("FREQ=DAILY;" * 7000, "rule_too_long", 0),
]


@pytest.mark.parametrize(("text", "code", "index"), BAD, ids=[f"{code}-{text[:24]!r}" for text, code, _ in BAD])
def test_sizes_are_bounded(text: str, code: str, index: int) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse(text)
    assert (caught.value.code, caught.value.index) == (code, index)
    assert len(caught.value.what) < 200


def slots(text: str, many: int = 3, **options: str) -> list[str]:
    rule = parse(text, **options)
    found, slot = [], rule.next_after(FIRST, inclusive=True)
    while slot is not None and len(found) < many:
        found.append(slot.strftime("%Y%m%dT%H%M%SZ"))
        slot = rule.next_after(slot)
    return found


def test_forms_of_one_set() -> None:
    expected = ["20260101T080000Z", "20260102T080000Z", "20260103T080000Z"]
    berlin = "DTSTART;TZID=Europe/Berlin:20260101T090000"
    for text in (
        f"{berlin}\nRRULE:FREQ=DAILY",
        f"{berlin}\r\nRRULE:FREQ=DAILY\r\n",
        f"{berlin}\r\nRRULE:FREQ=\r\n DAILY\r\n",
        f"  {berlin}   rrule:freq=daily;",
        f"RRULE:FREQ=DAILY\n{berlin}",
        berlin.replace("Europe/Berlin", '"Europe/Berlin"') + "\nRRULE:FREQ=DAILY;INTERVAL=1",
    ):
        assert slots(text) == expected
    assert slots("FREQ=DAILY", dtstart="20260101T090000", tz="Europe/Berlin") == expected
    assert slots("FREQ=DAILY", dtstart="2026-01-01T09:00", tz="Europe/Berlin") == expected
    assert slots("FREQ=DAILY", dtstart="2026-01-01T08:00:00Z", tz="Europe/Berlin") == expected
    assert slots("FREQ=DAILY", dtstart="2026-01-01T10:00:00+02:00", tz="Europe/Berlin") == expected


def test_dates_are_local_to_the_set() -> None:
    text = "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;COUNT=4\n"
    assert slots(text + "EXDATE:20260102T080000Z", 9) == [f"2026010{d}T080000Z" for d in (1, 3, 4)]
    assert slots(text + "EXDATE;TZID=America/New_York:20260102T030000", 9) == [f"2026010{d}T080000Z" for d in (1, 3, 4)]
    assert slots(text + "EXDATE;VALUE=DATE:20260102,20260103", 9) == [f"2026010{d}T080000Z" for d in (1, 4)]
    assert slots(text + "RDATE:20260101T120000Z", 9)[1] == "20260101T120000Z"
    assert slots("DTSTART:20260101T090000Z", 9) == ["20260101T090000Z"]


def test_until_is_inclusive() -> None:
    start = "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;UNTIL="
    assert len(slots(start + "20260103T080000Z", 9)) == 3
    assert len(slots(start + "20260103T075959Z", 9)) == 2
    assert len(slots(start + "20260103T090000", 9)) == 3
    assert len(slots(start + "20260103", 9)) == 3
    assert parse(start + "20251231").never_reason() == "its first slot would come after UNTIL"


def test_a_date_start_ignores_the_clock_parts() -> None:
    assert slots("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=1,2") == [
        f"2026010{day}T000000Z" for day in (1, 2, 3)
    ]


def test_second_60_is_59() -> None:
    assert slots("FREQ=MINUTELY;BYSECOND=59,60", dtstart="20260101T000060")[:2] == [
        "20260101T000059Z",
        "20260101T000159Z",
    ]
