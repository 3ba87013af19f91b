"""A zone answers the same whatever was asked before, and no stretch of a zone that changes its clocks is endless."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lodger.engine.recurrence import zones


@pytest.mark.parametrize("key", ["Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe"])
def test_asked_year_after_year(key: str) -> None:
    fresh = zones._load.__wrapped__(key)
    for year in range(2026, 2110):
        for month in (1, 4, 7, 11, 12):
            at = datetime(year, month, 20, tzinfo=UTC)
            here = fresh.segment(int(at.timestamp()))
            assert timedelta(seconds=here.offset) == at.astimezone(ZoneInfo(key)).utcoffset()
            assert here.end - here.start < 366 * 86_400
