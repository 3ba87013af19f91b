"""The parser is strict: every malformed set is refused with a code, a reason, a cure and a position."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.rrule import parse
from lodger.engine.recurrence.rule_errors import RuleInvalid

FIRST = datetime.min.replace(tzinfo=UTC)
START = "DTSTART:20260101T090000\n"

BAD = [
    ("", "rule_empty", 0),
    ("  \n ", "rule_empty", 0),
    ("nonsense", "part_malformed", 0),
    ("FREQ=DAILY;BYMONTH=13", "number_out_of_range", 19),
    ("FREQ=DAILY;BYMONTH=1,0", "number_out_of_range", 21),
    ("FREQ=DAILY;BYMONTH=-1", "number_malformed", 19),
    ("FREQ=MONTHLY;BYMONTHDAY=0", "number_out_of_range", 24),
    ("FREQ=MONTHLY;BYMONTHDAY=32", "number_out_of_range", 24),
    ("FREQ=MONTHLY;BYMONTHDAY=-32", "number_out_of_range", 24),
    ("FREQ=YEARLY;BYYEARDAY=367", "number_out_of_range", 22),
    ("FREQ=YEARLY;BYWEEKNO=54", "number_out_of_range", 21),
    ("FREQ=DAILY;BYHOUR=24", "number_out_of_range", 18),
    ("FREQ=DAILY;BYMINUTE=60", "number_out_of_range", 20),
    ("FREQ=DAILY;BYSECOND=61", "number_out_of_range", 20),
    ("FREQ=DAILY;BYHOUR=1;BYSETPOS=367", "number_out_of_range", 29),
    ("FREQ=DAILY;BYHOUR=1;BYSETPOS=0", "number_out_of_range", 29),
    ("FREQ=DAILY;INTERVAL=0", "number_out_of_range", 20),
    ("FREQ=DAILY;INTERVAL=-1", "number_malformed", 20),
    ("FREQ=DAILY;INTERVAL=1.5", "number_malformed", 20),
    ("FREQ=DAILY;INTERVAL=" + "9" * 400, "number_out_of_range", 20),
    ("FREQ=DAILY;INTERVAL=٣", "not_ascii", 20),
    ("FREQ=DAILY;BYHOUR=1,,2", "number_malformed", 20),
    (START + "RRULE:FREQ=DAILY;COUNT=0", "number_out_of_range", 47),
    (START + "RRULE:FREQ=DAILY;COUNT=3;UNTIL=20270101", "count_and_until", 55),
    ("FREQ=DAILY;COUNT=3", "count_without_start", 0),
    ("FREQ=DAILY;FREQ=DAILY", "part_repeated", 11),
    ("FREQ=DAILY;BYDAY=MO;BYWEEKDAY=TU", "part_repeated", 20),
    ("FREQ=DAILY;BYSETPOS=1", "setpos_alone", 20),
    ("FREQ=WEEKLY;BYDAY=1MO", "weekday_number_forbidden", 18),
    ("FREQ=DAILY;BYDAY=MO,-1FR", "weekday_number_forbidden", 20),
    ("FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO", "weekday_number_forbidden", 29),
    ("FREQ=MONTHLY;BYDAY=54MO", "number_out_of_range", 19),
    ("FREQ=MONTHLY;BYDAY=0MO", "number_out_of_range", 19),
    ("FREQ=MONTHLY;BYDAY=XX", "weekday_malformed", 19),
    ("FREQ=WEEKLY;WKST=1", "weekday_malformed", 17),
    ("FREQ=FORTNIGHTLY", "freq_unknown", 5),
    ("INTERVAL=2", "freq_missing", 0),
    ("FREQ=DAILY;COLOUR=RED", "part_unknown", 11),
    ("FREQ=DAILY;BYEASTER=1", "easter_unsupported", 11),
    ("RSCALE=CHINESE;FREQ=DAILY", "rscale_unsupported", 0),
    ("FREQ=DAILY;;BYHOUR=1", "part_malformed", 11),
    ("FREQ=DAILY;BYHOUR", "part_malformed", 11),
    ("FREQ=DAILY;BYHOUR=", "part_malformed", 11),
    ("FREQ=DAILY BYHOUR=1", "space_in_rule", 10),
    ("FREQ=DAILY;UNTIL=tomorrow", "date_malformed", 17),
    ("FREQ=DAILY;UNTIL=20260230", "date_impossible", 17),
    ("FREQ=DAILY;UNTIL=20260101T250000", "date_impossible", 26),
    ("FREQ=DAILY;UNTIL=20260101T0900", "date_malformed", 25),
    ("DTSTART:20260101T090000+0200\nRRULE:FREQ=DAILY", "offset_forbidden", 23),
    ("DTSTART:00000101\nRRULE:FREQ=DAILY", "date_impossible", 8),
    ("DTSTART;TZID=Mars/Base:20260101T090000\nRRULE:FREQ=DAILY", "zone_unknown", 13),
    ("DTSTART;TZID=../../etc/passwd:20260101T090000\nRRULE:FREQ=DAILY", "zone_unknown", 13),
    ("DTSTART;TZID=/etc/localtime:20260101T090000\nRRULE:FREQ=DAILY", "zone_unknown", 13),
    ("DTSTART;TZID=Europe/Berlin:20260101T090000Z\nRRULE:FREQ=DAILY", "tzid_with_utc", 27),
    ("DTSTART;TZID=Europe/Berlin:20260101\nRRULE:FREQ=DAILY", "tzid_with_date", 27),
    ("DTSTART;VALUE=DATE:20260101T090000\nRRULE:FREQ=DAILY", "date_malformed", 19),
    ("DTSTART;VALUE=PERIOD:20260101\nRRULE:FREQ=DAILY", "value_unsupported", 14),
    ("DTSTART;LANG=de:20260101\nRRULE:FREQ=DAILY", "parameter_unknown", 13),
    ("DTSTART;TZID:20260101\nRRULE:FREQ=DAILY", "parameter_unknown", 7),
    (START + START + "RRULE:FREQ=DAILY", "property_repeated", 24),
    ("SUMMARY:x\nRRULE:FREQ=DAILY", "property_unknown", 0),
    ("RRULE;X=1:FREQ=DAILY", "parameter_unknown", 8),
    ("RRULE:\n", "part_malformed", 5),
    ("RDATE:20260101\nRRULE:FREQ=DAILY", "start_missing", 0),
    ("EXDATE:20260101T000000", "start_missing", 0),
    (START + "DURATION:-PT1H\nRRULE:FREQ=DAILY", "duration_malformed", 33),
    (START + "DURATION:PT0S\nRRULE:FREQ=DAILY", "duration_malformed", 33),
    ("FREQ=DAILY;BYSECOND=" + ",".join(["1"] * 2100), "rule_too_long", 0),
    (START + "RDATE:" + ",".join(["20260101T000000"] * 1001), "too_many_dates", 30),
    (START + "RRULE:FREQ=DAILY\n" * 17, "too_many_rules", 296),
    ("FREQ=DAILY;" * 7000, "rule_too_long", 0),
]


@pytest.mark.parametrize(("text", "code", "index"), BAD, ids=[f"{code}-{text[:24]!r}" for text, code, _ in BAD])
def test_mistakes(text: str, code: str, index: int) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse(text)
    error = caught.value
    assert (error.code, error.index) == (code, index)
    assert error.why
    assert error.fix
    assert len(error.what) < 200


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


@given(st.text(max_size=60) | st.text(st.sampled_from("FREQ=DAILY;BYMONTH,0123-+:Z\n T"), max_size=80))
def test_no_other_exception(text: str) -> None:
    index = 0
    try:
        parse(text)
    except RuleInvalid as error:
        index = error.index or 0
    assert 0 <= index <= len(text)
