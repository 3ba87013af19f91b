"""Texts of other programs and what every surface says of them: a table for the API, the command line and the page."""

from typing import NamedTuple

BERLIN = "Europe/Berlin"
EVENT = (
    "BEGIN:VEVENT\nUID:1@example.com\nSUMMARY:Stand-up\nDTSTART;TZID=Europe/Berlin:20251201T090000\n"
    "RRULE:FREQ=WEEKLY;BYDAY=MO\nEXDATE;TZID=Europe/Berlin:20260105T090000\nEND:VEVENT"
)


class Case(NamedTuple):
    """A rule of a schedule, and the part of what is said of it.

    Attributes:
        says: part of the sentence of an accepted rule.
        fix: part of the fix of a refused one.
        never: part of the reason why it has no slot; it is explained, and not saved.
        first: its first slot after 2026, in UTC.
    """

    text: str
    tz: str | None = None
    says: str = ""
    fix: str = ""
    never: str = ""
    first: str = ""


CASES = (
    *(
        Case("0 0 30 2 *", tz, never="No year of the calendar has such a day")
        for tz in (None, BERLIN, "America/New_York", "Australia/Lord_Howe")
    ),
    Case("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", BERLIN, never="no day of the 400-year calendar cycle"),
    Case(
        "DTSTART;TZID=W. Europe Standard Time:20260105T090000\nRRULE:FREQ=DAILY",
        says="(Europe/Berlin)", first="2026-01-05T08:00:00Z",
    ),
    Case(
        "DTSTART;TZID=/mozilla.org/20050126_1/America/New_York:20260105T090000\nRRULE:FREQ=DAILY",
        says="(America/New_York)", first="2026-01-05T14:00:00Z",
    ),
    Case("0 9 * * *", "Pacific Standard Time", says="(America/Los_Angeles)", first="2026-01-01T17:00:00Z"),
    Case(EVENT, says="without the event's UID and SUMMARY", first="2026-01-12T08:00:00Z"),
    Case(
        f"BEGIN:VCALENDAR\nVERSION:2.0\n{EVENT}\nEND:VCALENDAR", says="without the event's UID and SUMMARY",
        first="2026-01-12T08:00:00Z",
    ),
    Case("FREQ=WEEKLY; BYDAY=MO, WE; BYHOUR=9", says="Monday and Wednesday at 09:00", first="2026-01-05T09:00:00Z"),
    Case("0 9 * * 1-5 /usr/bin/backup --all", fix="`0 9 * * 1-5`"),
    Case("cron(0 9 ? * MON-FRI *)", BERLIN, says="Monday through Friday", first="2026-01-01T08:00:00Z"),
    Case("rate(12 hours)", says="Every 12 hours"),
    Case("@every 5m", says="Every 5 minutes"),
    Case("0 0 12 ? * MON-FRI", says="Monday through Friday", first="2026-01-01T12:00:00Z"),
    Case("0 0 9 ? * 2-6", fix="`0 0 9 ? * MON-FRI` (Quartz)"),
    Case("0 9 * JANUARY FRIDAY", says="on Friday, in January", first="2026-01-02T09:00:00Z"),
    Case(
        "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY\nEXDATE:20260112T090000,20260113T090000",
        says="excluding January 13, 2026 at 09:00 changes nothing", first="2026-01-05T09:00:00Z",
    ),
)  # fmt: skip
