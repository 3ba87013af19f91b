"""A sentence determines its slots: rules with equal sentences have equal slots, and a changed part changes the sentence."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recurrence.drawn_sentences import CRON, SCHYNTAX, cron_text, first_slots, schyntax_text

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import SearchedTo

#: Steps that no search of these rules uses up.
_UNBOUNDED = 10**7


def _assert_distinguished(one: str, other: str, zone: str) -> None:
    first, second = (parse_rule(RuleSpec(text, tz=zone)) for text in (one, other))
    if first.text() == second.text():
        assert first_slots(first) == first_slots(second), f"{one} and {other} share {first.text()!r}"


ZONES = st.sampled_from(["UTC", "Europe/Berlin"])


@given(CRON, CRON, st.integers(0, 6), ZONES)
def test_one_changed_cron_field_changes_the_sentence(
    parts: tuple[str, ...], others: tuple[str, ...], place: int, zone: str
) -> None:
    changed = (*parts[:place], others[place], *parts[place + 1 :])
    _assert_distinguished(cron_text(parts), cron_text(changed), zone)


@given(SCHYNTAX, SCHYNTAX, st.integers(0, 4), ZONES)
def test_one_changed_schyntax_unit_changes_the_sentence(
    parts: tuple[str, ...], others: tuple[str, ...], place: int, zone: str
) -> None:
    changed = (*parts[:place], others[place], *parts[place + 1 :])
    if any(changed):
        _assert_distinguished(schyntax_text(parts), schyntax_text(changed), zone)


@given(st.lists(CRON.map(cron_text) | SCHYNTAX.map(schyntax_text), min_size=2, max_size=40, unique=True))
def test_rules_with_different_slots_never_share_a_sentence(texts: list[str]) -> None:
    said: dict[str, list[str]] = {}
    for text in texts:
        said.setdefault(parse_rule(RuleSpec(text)).text(), []).append(text)
    for one, *others in said.values():
        for other in others:
            _assert_distinguished(one, other, "UTC")


@given(
    st.integers(1, 10**14),
    st.integers(1, 10**14),
    st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
)
def test_sentences_of_intervals_state_their_length(one: int, other: int, anchor: str | None) -> None:
    texts = [f"every {us // 10**6}.{us % 10**6:06d}s" for us in (one, other)]
    first, second = (parse_rule(RuleSpec(text, dtstart=anchor)).text() for text in texts)
    assert (first == second) == (one == other)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 9 * * 1-5", "At 09:00, on Monday through Friday (UTC)"),
        ("*/5 * * * *", "Every 5 minutes (UTC)"),
        ("* * * * * *", "Every second (UTC)"),
        ("30 * * * *", "At minute 30 of every hour (UTC)"),
        ("*/30 2 * * *", "Every 30 minutes between 02:00 and 02:59 (UTC)"),
        ("0,30 2 * * *", "Daily at 02:00 and 02:30 (UTC)"),
        ("0 8-20 * * *", "Every hour from 08:00 through 20:00 (UTC)"),
        ("0 0 13 * FRI", "At 00:00, on day 13 of the month, and also on Friday (UTC)"),
        ("DAYS=both 0 0 13 * FRI", "At 00:00, on day 13 of the month, but only when it is also Friday (UTC)"),
        (
            "0 12 L-2W 5 ?",
            "At 12:00, on the weekday nearest to the 3rd last day of the month, in May (UTC)",
        ),
        ("hours(10) days(!sat..sun)", "At 10:00, on Monday through Friday (UTC)"),
        (
            "{h(9)} {h(*) dom(-1)}",
            "Daily at 09:00; and every hour, on the last day of the month (UTC)",
        ),
        (
            "dates(2020/5/1..<2021/1/1%7)",
            "At 00:00, on every 7th day from 2020-05-01 up to but not including 2021-01-01 (UTC)",
        ),
        ("every 90s", "Every 1 minute 30 seconds, counted from Thursday 1970-01-01T00:00:00Z"),
        ("at 2027-01-01T09:00Z", "Once, at 2027-01-01T09:00:00Z"),
        ("at 2027-01-01T09:00", "Once, at 2027-01-01T09:00:00 (UTC)"),
    ],
)
def test_sentences(text: str, sentence: str) -> None:
    assert parse_rule(RuleSpec(text)).text() == sentence


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Each pair differs in one part: a sentence that drops the part makes the two the same.
        ("0 0 9 * * *", "30 0 9 * * *"),
        ("0 9 * * *", "1 9 * * *"),
        ("* * * * *", "*/2 * * * *"),
        ("* 3 * * *", "* 4 * * *"),
        ("0 * * * *", "0 */2 * * *"),
        ("0,30 * * * *", "0,31 * * * *"),
        ("0 0 1 * *", "0 0 1 2 *"),
        ("0 0 1 * *", "0 0 1 * 1"),
        ("DAYS=both 0 0 1 * 1", "DAYS=either 0 0 1 * 1"),
        ("0 0 L * *", "0 0 LW * *"),
        ("0 0 L * *", "0 0 L-1 * *"),
        ("0 0 15 * *", "0 0 15W * *"),
        ("0 0 * * 5", "0 0 * * 5L"),
        ("0 0 * * 5#1", "0 0 * * 5#2"),
        ("0 0 * * 1", "0 0 * * 1,5#5"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "CRON_TZ=Asia/Kolkata 0 9 * * *"),
        ("m(5)", "m(5) s(1)"),
        ("m(5%10)", "m(5%11)"),
        ("dom(1..20)", "dom(1..<20)"),
        ("dom(1..20%3)", "dom(1..20%4)"),
        ("dom(1..20)", "dom(1..20, !13)"),
        ("dom(20)", "dom(-20)"),
        ("dom(20)", "doy(20)"),
        ("dom(1) dow(mon)", "dom(1)"),
        ("dates(1/2)", "dates(2024/1/2)"),
        ("dates(1/2..1/9)", "dates(1/2..<1/9)"),
        ("dates(*%2)", "dates(*%3)"),
        ("dates(2024/1/2..2024/3/1)", "dates(2024/1/2..2025/3/1)"),
        ("h(1) h(!2)", "h(1,2)"),
        ("{h(1)} {h(2)}", "{h(1)} {h(3)}"),
        ("{h(1) dow(mon)} {h(2)}", "{h(1)} {h(2) dow(mon)}"),
        ("every 90s", "every 91s"),
        ("every 1 day", "every 1 week"),
        ("at 2027-01-01T09:00", "at 2027-01-01T09:00:01"),
        ("at 2027-01-01T09:00Z", "at 2027-01-01T09:00+01:00"),
    ],
)
def test_no_part_is_dropped(one: str, other: str) -> None:
    first, second = (parse_rule(RuleSpec(text)) for text in (one, other))
    assert first_slots(first) != first_slots(second)
    assert first.text() != second.text()


def test_the_wildcard_changes_the_sentence_where_only_dst_differs() -> None:
    """The same times of day, but one follows the clock through the repeated hour and the other does not."""
    for one, other in (
        ("0 * * * *", "0 0-23 * * *"),
        ("h(*)", "h(0..23)"),
        ("*/15 2 * * *", "0,15,30,45 2 * * *"),
    ):
        first, second = (parse_rule(RuleSpec(text, tz="Europe/Berlin")) for text in (one, other))
        night = datetime(2027, 10, 30, 23, 30, tzinfo=UTC), datetime(2027, 10, 31, 4, tzinfo=UTC)
        assert list(first.between(*night)) != list(second.between(*night))
        assert first.text() != second.text()


@given(
    CRON.map(cron_text) | SCHYNTAX.map(schyntax_text),
    st.datetimes(datetime(2, 1, 1), datetime(9990, 1, 1)),
    ZONES,
)
def test_next_and_previous_are_inverse(text: str, at: datetime, zone: str) -> None:
    rule = parse_rule(RuleSpec(text, tz=zone))
    instant = at.replace(tzinfo=UTC)
    after, before = slot_after(rule, instant), slot_before(rule, instant, inclusive=True)
    if after is not None:
        assert slot_before(rule, after) == before
        assert slot_after(rule, after, inclusive=True) == after
    if before is not None:
        assert slot_after(rule, before) == after


def slot_after(rule: Recurrence, instant: datetime, *, inclusive: bool = False) -> datetime | None:
    """The next slot; when a question stops early, the search continued from there finds what one long search finds."""
    found = rule.next_after(instant, inclusive=inclusive)
    if not isinstance(found, SearchedTo):
        return found
    whole = rule.next_after(instant, inclusive=inclusive, limit=_UNBOUNDED)
    assert found.instant > instant
    while isinstance(found, SearchedTo):
        reached = found.instant
        found = rule.next_after(reached, inclusive=True)
        assert not isinstance(found, SearchedTo) or found.instant > reached, "a continued search makes progress"
    assert found == whole
    return found


def slot_before(rule: Recurrence, instant: datetime, *, inclusive: bool = False) -> datetime | None:
    """The previous slot, likewise."""
    found = rule.previous_before(instant, inclusive=inclusive)
    if not isinstance(found, SearchedTo):
        return found
    whole = rule.previous_before(instant, inclusive=inclusive, limit=_UNBOUNDED)
    assert found.instant < instant
    while isinstance(found, SearchedTo):
        reached = found.instant
        found = rule.previous_before(reached, inclusive=True)
        assert not isinstance(found, SearchedTo) or found.instant < reached, "a continued search makes progress"
    assert found == whole
    return found


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;INTERVAL=1461;BYMONTH=3;BYMONTHDAY=1;BYDAY=MO",
        "DTSTART:20260101T000000\nRRULE:FREQ=SECONDLY\nEXRULE:FREQ=SECONDLY;BYHOUR=8,9,10,11",
    ],
)
def test_a_search_that_stops_early_is_continued_to_the_slot(text: str, zone: str) -> None:
    rule = parse_rule(RuleSpec(text, tz=zone))
    offset = timedelta(hours=zone != "UTC")
    morning, noon = (datetime(2028, 3, 1, hour, tzinfo=UTC) - offset for hour in (8, 12))
    assert isinstance(rule.previous_before(noon), SearchedTo)
    slot_before(rule, noon)
    assert isinstance(rule.next_after(morning), SearchedTo)
    slot_after(rule, morning)


#: Common rules, what Lodger says, and what cronstrue 3.39 writes of them.
COMMON = [
    ("* * * * *", "Every minute", "Every minute"),
    ("*/5 * * * *", "Every 5 minutes", "Every 5 minutes"),
    ("*/15 * * * *", "Every 15 minutes", "Every 15 minutes"),
    ("0 * * * *", "Every hour", "Every hour"),
    ("30 * * * *", "At minute 30 of every hour", "At 30 minutes past the hour"),
    ("0 */2 * * *", "Every 2 hours", "On the hour, every 2 hours"),
    ("0 0 * * *", "Daily at 00:00", "At 12:00 AM"),
    ("30 9 * * *", "Daily at 09:30", "At 09:30 AM"),
    ("0 0-6 * * *", "Every hour from 00:00 through 06:00", "Every hour, between 12:00 AM and 06:00 AM"),
    ("0 9,17 * * *", "Daily at 09:00 and 17:00", "At 09:00 AM and 05:00 PM"),
    ("0 9-17 * * *", "Every hour from 09:00 through 17:00", "Every hour, between 09:00 AM and 05:00 PM"),
    ("0 9 * * 1-5", "At 09:00, on Monday through Friday", "At 09:00 AM, Monday through Friday"),
    ("0 9 * * MON,WED,FRI", "At 09:00, on Monday, Wednesday and Friday", "At 09:00 AM, only on Monday, Wednesday, and Friday"),
    ("0 0 * * 0", "At 00:00, on Sunday", "At 12:00 AM, only on Sunday"),
    ("0 0 * * 6,0", "At 00:00, on Saturday and Sunday", "At 12:00 AM, only on Sunday and Saturday"),
    ("*/15 9-17 * * 1-5", "Every 15 minutes between 09:00 and 17:59, on Monday through Friday",
     "Every 15 minutes, between 09:00 AM and 05:59 PM, Monday through Friday"),
    ("0,30 9-17 * * 1-5", "Every 30 minutes from 09:00 through 17:30, on Monday through Friday",
     "At 0 and 30 minutes past the hour, between 09:00 AM and 05:59 PM, Monday through Friday"),
    ("1-59/2 * * * *", "Every 2 minutes from minute 1 through 59 of every hour", "Every 2 minutes, minutes 1 through 59 past the hour"),
    ("5,17 9-17 * * *", "At minutes 5 and 17 past each of hours 9 through 17",
     "At 5 and 17 minutes past the hour, between 09:00 AM and 05:59 PM"),
    ("0 0 1 * *", "At 00:00, on day 1 of the month", "At 12:00 AM, on day 1 of the month"),
    ("0 0 1,15 * *", "At 00:00, on days 1 and 15 of the month", "At 12:00 AM, on day 1 and 15 of the month"),
    ("0 0 L * *", "At 00:00, on the last day of the month", "At 12:00 AM, on the last day of the month"),
    ("0 0 LW * *", "At 00:00, on the last weekday of the month", "At 12:00 AM, on the last weekday of the month"),
    ("0 9 15W * *", "At 09:00, on the weekday nearest to day 15", "At 09:00 AM, on the weekday nearest day 15 of the month"),
    ("0 9 * * 1#1", "At 09:00, on the 1st Monday of the month", "At 09:00 AM, on the first Monday of the month"),
    ("0 9 * * 5L", "At 09:00, on the last Friday of the month", "At 09:00 AM, on the last Friday of the month"),
    ("0 0 1 1 *", "At 00:00, on day 1 of the month, in January", "At 12:00 AM, on day 1 of the month, only in January"),
    ("0 0 1 */3 *", "At 00:00, on day 1 of the month, in January, April, July and October",
     "At 12:00 AM, on day 1 of the month, every 3 months"),
    ("0 0 13 * 5", "At 00:00, on day 13 of the month, and also on Friday", "At 12:00 AM, on day 13 of the month, and on Friday"),
    ("*/30 * * * * *", "Every 30 seconds", "Every 30 seconds"),
    ("23 0-20/2 * * *", "Every 2 hours from 00:23 through 20:23",
     "At 23 minutes past the hour, every 2 hours, between 12:00 AM and 08:59 PM"),
    ("*/10 * * * *", "Every 10 minutes", "Every 10 minutes"),
    ("*/2 * * * *", "Every 2 minutes", "Every 2 minutes"),
    ("0 */6 * * *", "Every 6 hours", "On the hour, every 6 hours"),
    ("0 */4 * * *", "Every 4 hours", "On the hour, every 4 hours"),
    ("15 * * * *", "At minute 15 of every hour", "At 15 minutes past the hour"),
    ("0,30 * * * *", "Every 30 minutes", "At 0 and 30 minutes past the hour"),
    ("0 12 * * *", "Daily at 12:00", "At 12:00 PM"),
    ("0 2 * * *", "Daily at 02:00", "At 02:00 AM"),
    ("30 3 * * 0", "At 03:30, on Sunday", "At 03:30 AM, only on Sunday"),
    ("0 6 * * 1", "At 06:00, on Monday", "At 06:00 AM, only on Monday"),
    ("0 17 * * 5", "At 17:00, on Friday", "At 05:00 PM, only on Friday"),
    ("0 8-18 * * 1-5", "Every hour from 08:00 through 18:00, on Monday through Friday",
     "Every hour, between 08:00 AM and 06:00 PM, Monday through Friday"),
    ("*/5 22-4 * * *", "Every 5 minutes between 22:00 and 04:59", "Every 5 minutes, between 10:00 PM and 04:59 AM"),
    ("0 22-4 * * *", "Every hour from 22:00 through 04:00", "Every hour, between 10:00 PM and 04:00 AM"),
    ("0 0 1 1,7 *", "At 00:00, on day 1 of the month, in January and July", "At 12:00 AM, on day 1 of the month, only in January and July"),
    ("0 9 1-7 * *", "At 09:00, on days 1 through 7 of the month", "At 09:00 AM, between day 1 and 7 of the month"),
    ("0 0 * 12 *", "At 00:00, every day, in December", "At 12:00 AM, only in December"),
    ("0 9 L-3 * *", "At 09:00, on the 4th last day of the month", "At 09:00 AM, 3 days before the last day of the month"),
    ("0 9 * * 2#2", "At 09:00, on the 2nd Tuesday of the month", "At 09:00 AM, on the second Tuesday of the month"),
    ("45 23 * * 6", "At 23:45, on Saturday", "At 11:45 PM, only on Saturday"),
    ("*/20 8-20 * * *", "Every 20 minutes between 08:00 and 20:59", "Every 20 minutes, between 08:00 AM and 08:59 PM"),
    ("0 18 * * 1-4", "At 18:00, on Monday through Thursday", "At 06:00 PM, Monday through Thursday"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said", "cronstrue"), COMMON, ids=[text for text, _, _ in COMMON])
def test_sentences_of_common_rules_beside_cronstrue(text: str, said: str, cronstrue: str) -> None:
    """Beside cronstrue: never longer by half, and with the zone, which it leaves out."""
    assert parse_rule(RuleSpec(text, tz="Europe/Berlin")).text() == f"{said} (Europe/Berlin)"
    assert len(said) <= 1.5 * len(cronstrue)


@pytest.mark.parametrize(("text", "said", "_cronstrue"), COMMON, ids=[text for text, _, _ in COMMON])
def test_sentences_of_common_rules_are_exact(text: str, said: str, _cronstrue: str) -> None:
    """What reads as English reads back as the same slots; the others say so."""
    rule = parse_rule(RuleSpec(text))
    try:
        again = parse_rule(RuleSpec(f"{said} (UTC)"))
    except RuleInvalid:
        assert any(word in said for word in ("and also", "past each", "from minute", "nearest"))
        return
    assert first_slots(again) == first_slots(rule)


def test_the_table_has_fifty_rules() -> None:
    assert len(COMMON) >= 50
