"""Cache of compiled schedule revisions: recurrence, policies, retries, limits. A revision never changes."""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.util import LRUCache

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.serialization import adapter
from lodger.engine.core.settings import Settings
from lodger.engine.policy.conduct import Conduct, Placement, parse_conduct
from lodger.engine.policy.plan import Overlap, SlotPolicies, parse_missed
from lodger.engine.policy.retry import Retry, parse_retry
from lodger.engine.recurrence.compile import (
    compile_schedule,
    refuse_unused_starts,
    with_absolute_times,
    with_present_starts,
)
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import SearchedTo
from lodger.engine.store.bulk import ManyRows
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import schedule_revisions

#: Number of cached revisions; with half as many more, all but the most recently used leave.
KEPT = 20_000
#: Maximum number of cached compiled rules; schedules with equal rules share them.
_KEPT_RULES = 4096
#: Slots at least this far apart are not checked when a schedule is saved, unless its tenant's limit is longer.
_FREQUENT_S = 3600


@dataclass(frozen=True, slots=True)
class Revision:
    """A compiled revision.

    ``limits``, ``params`` and ``grants`` are JSON text as stored. ``steps`` is empty for a single script.

    Attributes:
        fault: why its rules cannot be compiled, else None; such a schedule has no slots and is paused.
        requires: labels that a node must carry, handlers included.
        min_gap_us: lower bound of the distance of two slots; None with fewer than two slots.
    """

    recurrence: CompiledSchedule
    policies: SlotPolicies
    retry: Retry
    conduct: Conduct
    tz: str
    limits: str | None
    params: str | None
    fault: str | None = None
    steps: tuple[dict[str, Any], ...] = ()
    grants: str | None = None
    requires: str = ""
    min_gap_us: int | None = None

    @property
    def everywhere(self) -> bool:
        """Whether each slot of the schedule becomes one action on every node."""
        return self.conduct.placement is Placement.EVERY_NODE

    def next_us(self, after: datetime) -> tuple[int | None, bool]:
        """Return the next slot and False, or the instant that the search reached and True; None if there is no slot."""
        found = self.recurrence.next_after(after)
        if isinstance(found, SearchedTo):
            return to_us(found.instant), True
        return (None if found is None else to_us(found)), False

    def limits_of(self, step: int) -> str | None:
        """Return the limits of one step as JSON text: its own, else the schedule's."""
        own = self.steps[step]["limits"] if step < len(self.steps) else None
        return json.dumps(own, sort_keys=True) if own else self.limits


@dataclass(frozen=True, slots=True)
class PreparedRules:
    """Rules that were compiled and searched before the transaction that stores them.

    Attributes:
        rules: rules as stored, with relative times as instants.
        anchor: start of relative times.
        since: start of the search for the first slot.
        first: the first slot, or the instant that the search reached.
        gap_s: smallest distance of two slots below ``gap_limit_s``, or None if none was found.
    """

    rules: ScheduleRules
    anchor: datetime
    recurrence: CompiledSchedule
    since: datetime
    first: datetime | SearchedTo
    gap_s: float | None
    gap_limit_s: float

    def first_from(self, owed: datetime) -> datetime | SearchedTo:
        """Return the first slot at or after an instant, or the instant that the search reached.

        Raises:
            RuleNeverFires: there is no slot.
        """
        found = self.first.instant if isinstance(self.first, SearchedTo) else self.first
        return self.first if self.since <= owed <= found else self.recurrence.first_slot(owed)

    def gap_below_s(self, limit_s: float) -> float | None:
        """Return the distance of two slots that is shorter than a limit, in seconds, or None if none was found."""
        if limit_s > self.gap_limit_s:
            return self.recurrence.smallest_gap_s(self.since, limit_s)
        return self.gap_s if self.gap_s is not None and self.gap_s < limit_s else None


class RevisionCache:
    """A bounded, thread-safe cache of compiled revisions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept: LRUCache[tuple[str, str, int], Revision] = LRUCache(KEPT)
        #: Held by changes of the cache: it cannot be iterated while another thread adds to it.
        self._changing = threading.Lock()
        self._generations: dict[str, int] = {}

    def check_generation(self, tenant: str, generation: int) -> bool:
        """Store a tenant's generation; return whether it changed, in which case the tenant's revisions are dropped.

        An archive may restore other revisions under the numbers that existed before the tenant was deleted.
        """
        before = self._generations.get(tenant, generation)
        self._generations[tenant] = generation
        if before != generation:
            self.forget(tenant)
        return before != generation

    def forget(self, tenant: str) -> None:
        """Drop the cached revisions of a tenant."""
        with self._changing:
            for key in [each for each in self._kept if each[0] == tenant]:
                del self._kept[key]

    def compile_rules(self, rules: ScheduleRules, anchor: datetime) -> CompiledSchedule:
        """Return the compiled rules, from the cache if possible; ``anchor`` is the start of rules without their own.

        Raises:
            RuleInvalid: a rule is invalid.
        """
        try:
            return _compile_absolute(with_absolute_times(rules, anchor))
        except TypeError:  # unhashable values from JSON: the compiler reports them
            return compile_schedule(rules, now=anchor)

    def prepare(
        self,
        rules: ScheduleRules,
        now: datetime,
        owed: datetime | None = None,
        *,
        before: ScheduleRules | None = None,
    ) -> PreparedRules:
        """Compile rules and search for their first slot, before a transaction.

        Args:
            owed: earliest instant of the first slot; None for after now.
            before: the schedule's present rules, in an edit.

        Raises:
            RuleInvalid: a rule is invalid.
            RuleNeverFires: there is no slot.
        """
        if rules != before:
            refuse_unused_starts(rules)
        since = now + timedelta(microseconds=1) if owed is None else owed
        anchor = min(now, since)
        rules = with_absolute_times(rules if before is None else with_present_starts(rules, before), anchor)
        recurrence = self.compile_rules(rules, anchor)
        limit_s = max(_FREQUENT_S, self._settings.min_interval_s)
        gap_s = recurrence.smallest_gap_s(since, limit_s)
        first = recurrence.first_slot(since)
        return PreparedRules(rules, anchor, recurrence, since, first, gap_s, limit_s)

    def revisions(self, connection: Connection, wanted: Iterable[tuple[str, str, int]]) -> dict[str, Revision]:
        """Return revisions by schedule id; those that are not cached are read and compiled.

        Args:
            wanted: tenant, schedule and revision number.
        """
        found: dict[str, Revision] = {}
        absent: set[tuple[str, str, int]] = set()
        for key in wanted:
            kept = self._kept.get(key)
            if kept is None:
                absent.add(key)
            else:
                found[key[1]] = kept
        if absent:
            found |= self._read(connection, absent)
        return found

    def uncached(self, wanted: Iterable[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        """Return those of these revisions that are not cached; each is (tenant, schedule, number)."""
        return [each for each in wanted if self._kept.get(each) is None]

    def revision(self, connection: Connection, tenant: str, schedule: str, number: int) -> Revision:
        """Return a revision of a schedule, compiled."""
        return self.revisions(connection, [(tenant, schedule, number)])[schedule]

    def _read(self, connection: Connection, absent: set[tuple[str, str, int]]) -> dict[str, Revision]:
        """Read and compile revisions."""
        found = {}
        keys = [
            {"tenant": tenant, "schedule": schedule, "number": number} for tenant, schedule, number in sorted(absent)
        ]
        for row in _by_key.rows(connection, keys):
            if (row.tenant_id, row.schedule_id, row.revision) not in absent:
                continue
            found[row.schedule_id] = made = self.read(row)
            with self._changing:
                self._kept[row.tenant_id, row.schedule_id, row.revision] = made
        return found

    def read(self, row: AnyRow, *, compiled: bool = True) -> Revision:
        """Convert a row to a revision.

        Args:
            compiled: compile its rules; otherwise it has no slots. For rows that may be rolled back.

        Raises:
            InputError, ValueError, TypeError, KeyError: something other than its rules cannot be read.
        """
        rules, fault = decode_rules(row.rules), None
        try:
            recurrence = self.compile_rules(rules, from_us(row.anchor_us)) if compiled else CompiledSchedule(())
        except Exception as error:  # noqa: BLE001 - rules that do not compile stop this schedule only
            recurrence, fault = CompiledSchedule(()), _unreadable(error)
        return Revision(
            recurrence=recurrence,
            policies=_policies(row.missed, row.overlap, self._settings.missed_after_s, self._settings.catch_up_max),
            retry=_retry(row.retry),
            conduct=_conduct(row.conduct),
            tz=zone_of(rules),
            limits=row.limits,
            params=row.params,
            fault=fault,
            steps=tuple(json.loads(row.steps)) if row.steps else (),
            grants=row.grants,
            requires=row.requires,
            min_gap_us=recurrence.pace().min_gap_us,
        )


_c = schedule_revisions.c
_by_key = ManyRows(
    {"tenant": _c.tenant_id, "schedule": _c.schedule_id, "number": _c.revision},
    lambda given, driver: driver.look_up(
        given,
        select(schedule_revisions),
        _c.tenant_id == given.c.tenant,
        _c.schedule_id == given.c.schedule,
        _c.revision == given.c.number,
    ),
)


@lru_cache(_KEPT_RULES)
def _compile_absolute(rules: ScheduleRules) -> CompiledSchedule:
    """Compile rules without relative times, which therefore do not depend on the present."""
    return compile_schedule(rules, now=from_us(0))


# Many schedules share a few hundred policies: each is parsed once.
@lru_cache(maxsize=4096)
def _conduct(text: str | None) -> Conduct:
    """Return the conduct of a schedule from its stored text."""
    return parse_conduct(json.loads(text) if text else None)


@lru_cache(maxsize=4096)
def _retry(text: str | None) -> Retry:
    """Return the retry policy from its stored text."""
    return parse_retry(json.loads(text) if text else None)


@lru_cache(maxsize=4096)
def _policies(missed: str, overlap: str, missed_after_s: float, catch_up_max: int) -> SlotPolicies:
    """Return the policies of a schedule's slots from their columns."""
    return SlotPolicies(parse_missed(missed), Overlap(overlap), timedelta(seconds=missed_after_s), catch_up_max)


def zone_of(rules: ScheduleRules) -> str:
    """Return the zone of a schedule's local times: its own, else that of its first rule, else UTC."""
    return rules.tz or next((rule.tz for rule in rules.rules if rule.tz), None) or "UTC"


def encode_rules(rules: ScheduleRules) -> str:
    """Return the JSON text of a schedule's rules."""
    return str(adapter(ScheduleRules).dump_json(rules).decode())


@lru_cache(maxsize=4096)
def decode_rules(text: str) -> ScheduleRules:
    """Decode the result of :func:`encode_rules`."""
    rules: ScheduleRules = adapter(ScheduleRules).validate_json(text)
    return rules


def _unreadable(error: Exception) -> str:
    """Return the note of a schedule with rules that cannot be read."""
    what: Any = getattr(error, "what", None) or error
    return f"paused by the engine, because its rules cannot be read: {what}"[:500]
