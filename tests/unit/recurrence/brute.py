"""Schedules with exclusions worked out by listing everything: what the search is held against.

The bare rules are asked for their slots one after another; windows are listed from long before the range, and their ends
counted with Python's own zones.
"""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules

_LENGTH = re.compile(r"DURATION:P(?:(\d+)W|(?:(\d+)D)?(?:T(?:(\d+)H)?)?)")
_ZONE = re.compile(r"TZID=([A-Za-z_/]+)")
#: Windows are listed from so long before the range on.
_BEFORE = timedelta(days=100)


class Brute:
    """The slots of a schedule in [begin, end), all of them."""

    def __init__(self, rules: ScheduleRules, begin: datetime, end: datetime) -> None:
        bare = {slot for spec in rules.rules for slot in self._openings(spec, rules, begin, end)}
        windows = [window for spec in rules.exclusions for window in self._windows(spec, rules, begin, end)]
        self.slots = sorted(slot for slot in bare if not any(a <= slot < b or slot == a for a, b in windows))

    @staticmethod
    def _openings(spec: RuleSpec, rules: ScheduleRules, begin: datetime, end: datetime) -> list[datetime]:
        """Return the slots of one rule between two instants."""
        return list(parse_rule(spec, default_tz=rules.tz, dst=rules.dst).between(begin, end))

    def _windows(
        self, spec: RuleSpec, rules: ScheduleRules, begin: datetime, end: datetime
    ) -> list[tuple[datetime, datetime]]:
        """Return the windows of one exclusion between two instants."""
        zone = ZoneInfo(found[1] if (found := _ZONE.search(spec.text)) else rules.tz or "UTC")
        found = []
        for opened in self._openings(spec, rules, begin - _BEFORE, end):
            local = opened.astimezone(zone).replace(tzinfo=None)
            if length := _LENGTH.search(spec.text):
                weeks, days, hours = (int(part or 0) for part in length.groups())
                closed = (local + timedelta(days=7 * weeks + days)).replace(tzinfo=zone).astimezone(UTC)
                closed = closed + timedelta(hours=hours) if weeks or days else opened + timedelta(hours=hours)
            elif "VALUE=DATE:" in spec.text:
                closed = (local + timedelta(days=1)).replace(tzinfo=zone).astimezone(UTC)
            else:
                closed = opened
            found.append((opened, closed))
        return found
