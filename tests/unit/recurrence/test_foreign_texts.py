"""Texts of other programs say or do what is meant: crontabs, Amazon, Quartz, calendars, zones of Windows."""

from datetime import UTC, datetime
from itertools import islice

import pytest

from lodger.engine.recurrence.parse import parse_rule, recognise
from lodger.engine.recurrence.rule import Kind, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def slots(text: str, tz: str | None = None) -> list[datetime]:
    """Return the first slots of a rule."""
    return list(islice(parse_rule(RuleSpec(text, tz=tz)).between(NOW, NOW.replace(year=2036)), 20))


@pytest.mark.parametrize(
    ("text", "kind", "means"),
    [
        ("0 9 * * FRIDAY", Kind.CRON, "0 9 * * FRI"),
        ("0 9 * JANUARY-MARCH MONDAY,Thursday", Kind.CRON, "0 9 * JAN-MAR MON,THU"),
        ("0 9 * sept FRIDAY#2", Kind.CRON, "0 9 * 9 5#2"),
        ("cron(0 9 ? * MON-FRI *)", Kind.CRON, "0 9 * * 1-5"),
        ("cron(15 10 ? * 2-6 *)", Kind.CRON, "15 10 * * 1-5"),
        ("cron(0 18 ? * 6#2 *)", Kind.CRON, "0 18 * * 5#2"),
        ("cron(0/10 * ? * 1 *)", Kind.CRON, "*/10 * * * 0"),
        ("cron(0 8 1 * ? *)", Kind.CRON, "0 8 1 * *"),
        ("rate(5 minutes)", Kind.EVERY, "every 5 minutes"),
        ("at(2027-01-01T09:00:00)", Kind.ONCE, "at 2027-01-01T09:00:00"),
        ("0 0 9 ? * 0", Kind.CRON, "0 9 * * 0"),
        ("rate(1 hour)", Kind.EVERY, "every hour"),
        ("@every 5m", Kind.EVERY, "every 5 minutes"),
        ("0 0 12 ? * MON-FRI *", Kind.CRON, "0 12 * * 1-5"),
        ("FREQ=WEEKLY; BYDAY=MO, WE; BYHOUR=9", Kind.RRULE, "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9"),
    ],
)
def test_a_text_means_what_it_means_there(text: str, kind: Kind, means: str) -> None:
    assert recognise(text) is kind
    assert slots(text) == slots(means)


@pytest.mark.parametrize(
    ("text", "code", "fix"),
    [
        ("0 9 * * 1-5 /usr/bin/backup --all", "cron_field_count", "`0 9 * * 1-5`"),
        ("30 2 * * * root run-parts /etc/cron.daily", "cron_field_count", "`30 2 * * *`"),
        ("*/5 * * * * php artisan", "cron_field_count", "`*/5 * * * *`"),
        ("0 9 * * 1 Europe/Berlin", "cron_field_count", "`CRON_TZ=Europe/Berlin 0 9 * * 1`"),
        ("0 9 * * 1 UTC", "cron_field_count", "`CRON_TZ=UTC 0 9 * * 1`"),
        ("*/90 * * * *", "cron_bad_field", "`every 90m`"),
        ("0 */36 * * *", "cron_bad_field", "`every 36h`"),
        ("0 9 1/45 * *", "cron_bad_field", "`every 45 days`"),
        ("cron(0 9 ? * MON-FRI 2027)", "cron_field_count", "start and an end"),
        ("cron(0 9 * * *)", "cron_field_count", "cron(0 9 ? * MON-FRI *)"),
        ("0 0 12 ? * MON-FRI 2027", "cron_field_count", "start and an end"),
        ("0 9 * * 1-5 # office hours", "cron_field_count", "`0 9 * * 1-5`"),
        ("0 9 * * *\n0 17 * * *", "cron_field_count", "`0 9 * * *`, `0 17 * * *`"),
        ("MAILTO=a@example.com\n0 9 * * *", "cron_field_count", "`0 9 * * *`"),
        # Monday to Friday for Quartz, and Tuesday to Saturday for Spring.
        ("0 0 9 ? * 2-6", "cron_weekday_numbers", "`0 0 9 ? * MON-FRI` (Quartz) or `0 0 9 ? * TUE-SAT`"),
        ("0 0 9 ? * 6L *", "cron_weekday_numbers", "`0 0 9 ? * FRIL` (Quartz) or `0 0 9 ? * SATL`"),
        ("H H * * 1-5", "english_unclear", "`17 3 * * 1-5`"),
        ("H/15 * * * *", "english_unclear", "`*/15 * * * *`"),
    ],
)
def test_what_is_not_a_rule_names_the_part_that_is(text: str, code: str, fix: str) -> None:
    with pytest.raises(RuleInvalid) as refused:
        parse_rule(RuleSpec(text))
    assert refused.value.code == code
    assert fix in refused.value.fix


CALENDAR = """BEGIN:VCALENDAR
PRODID:-//Example//EN
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1@example.com
SUMMARY:Besprechung für alle; jeden Montag
DTSTART;TZID=Europe/Berlin:20261130T090000
RRULE:FREQ=WEEKLY;BYDAY=MO
EXDATE;TZID=Europe/Berlin:20261207T090000
BEGIN:VALARM
TRIGGER:-PT15M
DURATION:PT5M
END:VALARM
END:VEVENT
END:VCALENDAR
"""


def test_a_pasted_calendar_is_read_for_when_its_event_is() -> None:
    assert recognise(CALENDAR) is Kind.RRULE
    bare = "DTSTART;TZID=Europe/Berlin:20261130T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO\nEXDATE;TZID=Europe/Berlin:20261207T090000"
    assert slots(CALENDAR) == slots(bare)
    assert slots(CALENDAR.replace("\n", "\r\n")) == slots(bare)
    assert parse_rule(RuleSpec(CALENDAR)).text().count("without the event's UID and SUMMARY") == 1
    event = CALENDAR[CALENDAR.index("BEGIN:VEVENT") : CALENDAR.index("END:VCALENDAR")]
    assert slots(event) == slots(bare)
    with pytest.raises(RuleInvalid, match="more than one event"):
        parse_rule(RuleSpec(event + event))


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("W. Europe Standard Time", "Europe/Berlin"),
        ("Pacific Standard Time", "America/Los_Angeles"),
        ("/mozilla.org/20050126_1/Europe/Berlin", "Europe/Berlin"),
        ("/freeassociation.sourceforge.net/America/New_York", "America/New_York"),
    ],
)
def test_zones_of_calendars_are_shown_by_their_iana_name(name: str, zone: str) -> None:
    text = f"DTSTART;TZID={name}:20261130T090000\nRRULE:FREQ=DAILY"
    assert slots(text) == slots(text.replace(name, zone))
    assert parse_rule(RuleSpec(text)).text().endswith(f"({zone})")
    assert slots("0 9 * * *", name) == slots("0 9 * * *", zone)
