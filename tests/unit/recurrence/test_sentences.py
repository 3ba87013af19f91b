"""A sentence determines its slots: rules with equal sentences have equal slots, and a changed part changes the sentence."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recurrence.drawn_sentences import CRON, SCHYNTAX, cron_text, first_slots, schyntax_text
from tests.unit.recurrence.plain_phrases import table

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import SearchedTo

#: Words of sentences that are not read as English.
NOT_READ = (
    "nearest", "from minute", "past each", "only when", "up to", "if it is", "of every month", "week of the year", "in hour",
    "and once", "Once on",
)  # fmt: skip
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


SENTENCES = {text.replace("\\n", "\n"): sentence for text, sentence in table("sentences.txt")}


@pytest.mark.parametrize("text", SENTENCES)
def test_a_rule_has_its_sentence_which_means_the_same_where_it_is_read_as_english(text: str) -> None:
    rule = parse_rule(RuleSpec(text))
    assert rule.text() == SENTENCES[text]
    try:
        again = parse_rule(RuleSpec(rule.text()))
    except RuleInvalid:
        assert any(words in rule.text() for words in NOT_READ)
        return
    assert first_slots(again) == first_slots(rule)


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
