"""Quiet hours: windows in a zone's local time, over midnight, by weekday, over changes of the clock."""

from datetime import datetime

import pytest

from lodger.engine.core.errors import InputError
from lodger.engine.features.alerts.kinds import is_quiet, parse_window, require_loud


@pytest.mark.parametrize(
    ("window", "zone", "at", "quiet"),
    [
        ("22:00-07:00", "UTC", "2026-11-24T22:00:00Z", True),
        ("22:00-07:00", "UTC", "2026-11-24T06:59:59Z", True),
        ("22:00-07:00", "UTC", "2026-11-24T07:00:00Z", False),
        ("22:00-07:00", "Europe/Berlin", "2026-11-24T21:30:00Z", True),
        ("22:00-07:00", "Europe/Berlin", "2026-07-24T20:30:00Z", True),
        ("22:00-07:00", "Europe/Berlin", "2026-11-24T20:30:00Z", False),
        ("fri 18:00-06:00", "UTC", "2026-11-28T05:00:00Z", True),  # Saturday morning
        ("fri 18:00-06:00", "UTC", "2026-11-27T05:00:00Z", False),  # Friday morning
        ("sat,sun 00:00-24:00", "UTC", "2026-11-29T12:00:00Z", True),
        ("sat,sun 00:00-24:00", "UTC", "2026-11-30T00:00:00Z", False),
        ("fri-mon 12:00-13:00", "UTC", "2026-11-30T12:30:00Z", True),
        ("fri-mon 12:00-13:00", "UTC", "2026-12-01T12:30:00Z", False),
    ],
)  # fmt: skip
def test_a_window_is_local_time(window: str, zone: str, at: str, quiet: bool) -> None:
    assert is_quiet([window], zone, datetime.fromisoformat(at)) is quiet


@pytest.mark.parametrize(
    "text", ["", "22-7", "24:00-07:00", "10:00-10:00", "10:60-11:00", "day 10:00-11:00", "10:00-24:01"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_window(text)
    assert refused.value.code == "quiet_hours_invalid"


def test_hours_that_leave_a_minute_of_the_week_have_an_end() -> None:
    require_loud(["mon-sat 00:00-24:00", "sun 00:00-23:59"])
    require_loud(["tue-sun 07:00-06:59", "06:59-07:00"])
