"""The verbs that explain rules and edits before they are stored."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from lodger.engine.core.access.labels import parse_labels
from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError
from lodger.engine.recurrence.calendar.zones import python_zone
from lodger.engine.recurrence.compile import refuse_unused_starts, with_present_starts
from lodger.engine.recurrence.difference import difference
from lodger.engine.recurrence.on_changes import END, named
from lodger.engine.recurrence.query import MAX_SLOTS, Slots, slots_of
from lodger.engine.recurrence.rule import DstPolicy, ScheduleRules
from lodger.engine.service.nouns.base import Noun, RulesArgument, aware, specs
from lodger.engine.service.operations.declaration import UNCHANGED, M, operation
from lodger.engine.store.records import Preview
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schedules.run_history import coming_days
from lodger.engine.store.tenants import tenants

#: Maximum number of days whose slots are counted.
MAX_DAYS = 366
#: Maximum number of slots that are compared.
MAX_COMPARED = 10_000
#: Length of the compared range by default.
_USUAL = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Effect of an edit of a schedule's rules over a range.

    Attributes:
        before, after: the sentences of the present and of the edited rules.
        dropped, added: slots of only the present, or only the edited rules, ascending.
        complete_to: instant up to which (exclusive) everything was compared.
    """

    before: str
    after: str
    dropped: tuple[datetime, ...]
    added: tuple[datetime, ...]
    complete_to: datetime


#: How arguments are read that are not stored as they are given.
_READERS: dict[str, Callable[[Any], Any]] = {
    "rules": specs, "exclusions": specs, "start": aware, "end": aware, "labels": parse_labels,
}  # fmt: skip


def changed(**arguments: Any) -> dict[str, Any]:
    """Return those arguments of an edit that change something."""
    given = {name: value for name, value in arguments.items() if value is not UNCHANGED}
    return given | {name: read(given[name]) for name, read in _READERS.items() if name in given}


class Previews(Noun[M]):
    """Explanations of rules."""

    @operation("POST", "/tenants/{tenant_id}/preview", Role.VIEWER, reads=True, everywhere=Role.VIEWER, home=True)
    def preview(
        self,
        rules: RulesArgument,
        *,
        exclusions: RulesArgument = (),
        tz: str | None = None,
        dst: DstPolicy | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        after: datetime | None = None,
        n: int = 10,
        days: int = 0,
        within_limits: bool = False,
        tenant_id: str | None = None,
    ) -> Preview:
        """Explain rules: their sentence and the next ``n`` slots. Nothing is stored.

        Args:
            days: number of days, up to 366, whose slots are counted, from the day of ``after`` in the time zone ``tz``.
            within_limits: refuse what the tenant's ``min_interval_s`` refuses.
            tenant_id: tenant whose zone holds for rules without one, as in its schedules; None: UTC.

        Raises:
            NotFound: tenant_unknown.
            InputError: rule_too_frequent, limit_invalid.
            RuleInvalid, RuleNeverFires.
        """
        for count, shown, maximum in ((n, "slots", MAX_SLOTS), (days, "days", MAX_DAYS)):
            if not 0 <= count <= maximum:
                raise InputError("limit_invalid.preview", count=count, shown=shown, maximum=maximum)
        begin = aware(after) or from_us(self._now_us)
        wished = ScheduleRules(specs(rules), specs(exclusions), tz, dst or DstPolicy(), aware(start), aware(end))
        if tenant_id is not None:
            wished = self._in_zone(tenant_id, wished)
        refuse_unused_starts(wished)
        recurrence = self.context.revision_cache.compile_rules(wished, begin)
        clocked = not named(wished)
        slots = slots_of(recurrence, begin, n) if clocked else Slots()
        if within_limits and clocked and tenant_id is not None:
            own = json.dumps(self._read(tenants.get, tenant_id).limits_in_effect)
            schedules.check_spacing(
                partial(recurrence.smallest_gap_s, begin), self.context.content_cache.allowance(own)
            )
        zone = wished.tz or "UTC"
        first = begin.astimezone(python_zone(zone)).date()
        coming, _complete = coming_days(recurrence, first, days if clocked else 0, zone)
        counts = {each.day.isoformat(): each.slots for each in coming}
        ends = recurrence.ends() and clocked
        return Preview(
            recurrence.text(), slots.found, slots.shifted, ends, slots.searched_to, slots.never, slots.excluded, counts
        )

    def _zoned(self, tenant_id: str, change: dict[str, Any]) -> dict[str, Any]:
        """Return a change of rules; where it takes the zone away (None), the tenant's zone takes its place."""
        if change.get("tz", UNCHANGED) is not None:
            return change
        return change | {"tz": self._read(tenants.get, tenant_id).tz}

    def _in_zone(self, tenant_id: str, rules: ScheduleRules) -> ScheduleRules:
        """Return rules in their tenant's zone, if neither they nor the schedule name one.

        Raises:
            NotFound: tenant_unknown.
        """
        return rules if rules.names_zone else replace(rules, tz=self._read(tenants.get, tenant_id).tz)

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/what-if", Role.VIEWER, reads=True)
    def what_if(
        self,
        tenant_id: str,
        schedule: str,
        *,
        rules: RulesArgument = UNCHANGED,
        exclusions: RulesArgument = UNCHANGED,
        tz: str | None = UNCHANGED,
        dst: DstPolicy = UNCHANGED,
        start: datetime | None = UNCHANGED,
        end: datetime | None = UNCHANGED,
        since: datetime | None = None,
        until: datetime | None = None,
        at_most: int = MAX_COMPARED,
    ) -> WhatIf:
        """Show which slots an edit would drop and add over a range, before or after now. Nothing is stored.

        Args:
            since: first instant of the range; by default after now.
            until: end of the range (exclusive); by default 31 days later.
            at_most: maximum number of compared slots, up to 10 000; ``complete_to`` is the instant they reach.

        Raises:
            NotFound: schedule_unknown.
            RuleInvalid: a new rule is invalid.
        """
        given = changed(rules=rules, exclusions=exclusions, tz=tz, dst=dst, start=start, end=end)
        change = self._zoned(tenant_id, given)
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            before = self.context.revision_cache.revision(
                connection, found.tenant_id, found.id, found.revision
            ).recurrence
        now = from_us(self._now_us)
        wished = with_present_starts(replace(found.rules, **change), found.rules)
        if wished != found.rules:
            refuse_unused_starts(wished)
        after = self.context.revision_cache.compile_rules(wished, now) if change else before
        # A slot of this very instant is no more changed by an edit.
        begin = aware(since) or now + timedelta(microseconds=1)
        finish = aware(until) or min(begin, END - _USUAL) + _USUAL
        cut = difference(before, after, begin, min(finish, END), at_most=max(1, min(at_most, MAX_COMPARED)))
        return WhatIf(before.text(), after.text(), cut.dropped, cut.added, cut.complete_to)
