from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence.compile import compile_schedule, refuse_unused_starts, with_absolute_times
from lodger.engine.recurrence.parse import parse_rule, recognise
from lodger.engine.recurrence.rule import Kind, Recurrence, RuleSpec, ScheduleRules
from lodger.engine.recurrence.rule_errors import RuleInvalid

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("FREQ=DAILY", Kind.RRULE),
        ("RRULE:FREQ=DAILY", Kind.RRULE),
        ("INTERVAL=2;FREQ=DAILY", Kind.RRULE),
        ("DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY", Kind.RRULE),
        ("INTERVAL=2", Kind.RRULE),
        ("*/5 * * * *", Kind.CRON),
        ("  0 9 * * 1-5", Kind.CRON),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", Kind.CRON),
        ("DAYS=both 0 9 13 * 5", Kind.CRON),
        ("@hourly", Kind.CRON),
        ("? * * * *", Kind.CRON),
        ("0 0 0 1 1 *", Kind.CRON),
        ("min(*%5)", Kind.SCHYNTAX),
        ("{h(9)}", Kind.SCHYNTAX),
        ("every 90s", Kind.EVERY),
        ("@every 5m", Kind.EVERY),
        ("PT90S", Kind.EVERY),
        ("at 2027-01-01", Kind.ONCE),
        ("in 5m", Kind.ONCE),
        ("2027-01-01T09:00:00Z", Kind.ONCE),
    ],
)
def test_recognises(text: str, kind: Kind) -> None:
    assert recognise(text) is kind


@pytest.mark.parametrize("text", ["", "   ", "hello", "5", "every9", "tomorrow", "\x00"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(RuleInvalid):
        parse_rule(RuleSpec(text), now=NOW)


def refusals() -> Iterator[tuple[Kind, str, str, int]]:
    """Yield the refused texts of the table, each with its language, code and place."""
    for line in (Path(__file__).parent / "refusals.txt").read_text().splitlines():
        text, _, reported = line.rpartition(" => ")
        if line.startswith("= "):
            kind = Kind(line[2:])
        elif text:
            code, index = reported.split()
            yield kind, text.replace("\\n", "\n"), code, int(index)


@pytest.mark.parametrize(("kind", "text", "code", "index"), list(refusals()))
def test_a_mistake_is_refused_with_its_code_place_reason_and_cure(kind: Kind, text: str, code: str, index: int) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse_rule(RuleSpec(text, kind), now=NOW)
    error = caught.value
    assert (error.code, error.index) == (code, index)
    assert error.why
    assert error.fix
    assert len(error.what) < 200


def test_zone_in_the_text_comes_first() -> None:
    def first(spec: RuleSpec, default: str | None) -> datetime | None:
        return parse_rule(spec, default_tz=default).next_after(NOW)

    assert first(RuleSpec("CRON_TZ=Asia/Tokyo 0 9 * * *", tz="Europe/Berlin"), "America/New_York") == datetime(
        2026, 11, 22, 0, tzinfo=UTC
    )
    assert first(RuleSpec("0 9 * * *", tz="Europe/Berlin"), "America/New_York") == datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert first(RuleSpec("0 9 * * *"), "America/New_York") == datetime(2026, 11, 21, 14, tzinfo=UTC)
    assert first(RuleSpec("0 9 * * *"), None) == datetime(2026, 11, 22, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["min(*%5)", "0 9 * * *", "every 90s", "at 2027-01-01Z", "at 2027-01-01", "FREQ=DAILY"]
)
@pytest.mark.parametrize(
    "tz", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "", "Europe/Berlin\x00", "x" * 5000]
)
def test_a_name_that_is_no_zone(text: str, tz: str) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse_rule(RuleSpec(text, tz=tz))
    assert caught.value.code == "zone_unknown"


@pytest.mark.parametrize(
    "spec",
    [
        RuleSpec(5),  # type: ignore[arg-type]  # JSON promises nothing
        RuleSpec(None),  # type: ignore[arg-type]  # JSON promises nothing
        RuleSpec("@daily", tz=5),  # type: ignore[arg-type]  # JSON promises nothing
        RuleSpec("@daily", "crontab"),  # type: ignore[arg-type]  # JSON promises nothing
        RuleSpec("@daily", dtstart="soon"),
        RuleSpec("@daily", dtstart=[]),  # type: ignore[arg-type]  # JSON promises nothing
        RuleSpec("* " * 3000, Kind.CRON),
        RuleSpec("m(" + "1 " * 3000 + ")"),
        RuleSpec("x" * 10_000_000),
    ],
)
def test_hostile_specs(spec: RuleSpec) -> None:
    with pytest.raises(RuleInvalid):
        parse_rule(spec)


PIECES = """0 9 * */5 1-5 MON L W # ? @daily TZ= CRON_TZ=UTC DAYS=both every at in 90s PT1S m( ) { } %2
    2027-01-01 FREQ=DAILY ; , - /"""
WORDS = st.sampled_from(PIECES.split())
#: Characters of all languages, and some that are like them.
CHARACTERS = st.text("smhdowyate(){}!*%./,<>-+:;=0123456789 \n\tmonjuliFREQDAILYBYMONTHPTZſK٣", max_size=60)


@settings(max_examples=examples(100))
@given(
    CHARACTERS | st.lists(WORDS | st.text(max_size=4), max_size=8).map(" ".join),
    st.none() | st.sampled_from(list(Kind)),
)
def test_no_text_breaks_any_parser(text: str, kind: Kind | None) -> None:
    refused = None
    try:
        rule = parse_rule(RuleSpec(text, kind), now=NOW)
        assert isinstance(rule, Recurrence)
        assert rule.text()
    except RuleInvalid as error:
        refused = error
    if refused is not None:
        assert refused.code
        assert refused.why
        assert refused.index is None or 0 <= refused.index <= len(text)


@pytest.mark.parametrize(
    "text", ["0 9 * * *", "hours(9)", "at 2027-03-01", "DTSTART:20270101T090000\nRRULE:FREQ=DAILY"]
)
def test_a_start_that_changes_nothing_is_refused_and_a_stored_one_is_read(text: str) -> None:
    daily, unused = RuleSpec("FREQ=DAILY", dtstart="2027-01-01"), RuleSpec(text, dtstart="2027-01-01")
    for rules in (ScheduleRules((daily, unused)), ScheduleRules((daily,), (unused,))):
        with pytest.raises(RuleInvalid) as caught:
            refuse_unused_starts(rules)
        assert (caught.value.code, caught.value.details["rule"]) == ("dtstart_unused", 1)
        assert compile_schedule(with_absolute_times(rules, NOW)).next_after(NOW) is not None
