"""A zone answers the same whatever was asked before, and no stretch of a zone that changes its clocks is endless."""

import tracemalloc
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lodger.engine.recurrence.calendar import zones

#: What the zone object may keep for 8000 years of questions, bytes.
MAX_KEPT_BYTES = 200_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("key", "utc"),
    [
        ("America/Ojinaga", 77_385_785_246), ("America/Ojinaga", 127_901_131_843), ("America/Thule", 26_417_890_012),
        ("Asia/Hebron", 104_666_066_019), ("Asia/Nicosia", 253_346_749_199), ("Australia/Victoria", 89_558_647_252),
    ],
)  # fmt: skip
def test_years_far_away_begin_and_end_as_python_says(key: str, utc: int) -> None:
    """In these years, whole cycles of 400 after the stored ones, what was stored once showed through."""
    here, theirs = zones.zone(key).segment(utc), ZoneInfo(key)

    def offset(at: int) -> timedelta | None:
        return (EPOCH + timedelta(seconds=at)).astimezone(theirs).utcoffset()

    assert here.start <= utc < here.end
    for at, expected in (
        (utc, here.offset),
        (here.start, here.offset),
        (here.start - 1, here.before),
        (here.end, here.after),
    ):
        assert offset(at) == timedelta(seconds=expected)


def test_a_zone_keeps_little_and_answers_far_years_at_once() -> None:
    """No row of 400 years is laid out: of each kind of year the changes are kept once."""
    fresh = zones.load.__wrapped__("Europe/Berlin")
    fresh.segment(0)
    tracemalloc.start()
    for year in range(2030, 9990, 7):
        fresh.segment(int(datetime(year, 6, 1, tzinfo=UTC).timestamp()))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < MAX_KEPT_BYTES
