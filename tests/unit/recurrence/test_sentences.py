"""A sentence determines its slots: rules with equal sentences have equal slots, and a changed part changes the sentence."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recurrence.drawn_sentences import CRON, SCHYNTAX, cron_text, first_slots, schyntax_text
from tests.unit.recurrence.plain_phrases import table

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: Sentences of the table that are not read as English.
UNREAD = 35


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


@given(
    st.integers(1, 10**14),
    st.integers(1, 10**14),
    st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
)
def test_sentences_of_intervals_state_their_length(one: int, other: int, anchor: str | None) -> None:
    texts = [f"every {us // 10**6}.{us % 10**6:06d}s" for us in (one, other)]
    first, second = (parse_rule(RuleSpec(text, dtstart=anchor)).text() for text in texts)
    assert (first == second) == (one == other)


def test_a_rule_has_its_sentence_which_means_the_same_where_it_is_read_as_english() -> None:
    unread = []
    for text, sentence in table("sentences.txt"):
        rule = parse_rule(RuleSpec(text.replace("\\n", "\n")))
        assert rule.text() == sentence, text
        try:
            again = parse_rule(RuleSpec(sentence))
        except RuleInvalid:
            unread.append(sentence)
        else:
            assert first_slots(again) == first_slots(rule), text
    assert len(unread) == UNREAD


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
