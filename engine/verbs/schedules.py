"""The verbs on schedules: scripts bound to rules."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from lodger.engine.clock import from_us, to_us
from lodger.engine.ledger import last_runs, schedules
from lodger.engine.ledger.records import Json, LastRun, Preview, Schedule
from lodger.engine.ledger.schedules import Wish
from lodger.engine.policy.conduct import Conduct, parse_placement
from lodger.engine.policy.defaults import number, whole, word
from lodger.engine.policy.labels import parse_labels
from lodger.engine.policy.retry import Retry
from lodger.engine.recurrence.rule import DstPolicy, ScheduleRules
from lodger.engine.verbs.noun import UNCHANGED, RuleWish, StepWish, Verbs, aware, specs

# Inside the noun the word ``list`` is a verb.
ScheduleList = list[Schedule]
SlotList = list[datetime]


class Schedules(Verbs):
    """Scripts bound to rules."""

    __slots__ = ()

    def create(
        self,
        tenant_id: str,
        name: str,
        *,
        script: StepWish,
        rules: RuleWish,
        exclusions: RuleWish = (),
        tz: str | None = None,
        dst: DstPolicy | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        missed: str = word("missed"),
        overlap: str = word("overlap"),
        params: Json = None,
        limits: Mapping[str, Any] | None = None,
        retry: Retry | Mapping[str, Any] | int | None = None,
        jitter_s: float = number("jitter_s"),
        expires_s: float = number("expires_s"),
        priority: str = word("priority"),
        pause_after: int = whole("pause_after"),
        labels: str | Iterable[str] = word("labels"),
        placement: str = word("placement"),
        first_after: datetime | None = None,
    ) -> Schedule:
        """Bind a script to rules.

        Args:
            script: its name; or several, the steps of every action in order, each a name or ``{"script", "limits"}``. The
                first one's input are the params, every other one's the result of the step before.
            rules: texts or RuleSpecs, united; ``exclusions`` take slots away again.
            first_after: instant from which slots are owed, itself included; default now.
            missed: skip, latest, all, ``within:10m``.
            overlap: skip, queue_one, queue_all, cancel_running, allow.
            jitter_s: due up to so much after the slot, the same for every slot, never as late as the next one.
            expires_s: what has not started so long after it was due expires; 0: never.
            priority: high, normal, low, among the tenant's own actions.
            pause_after: paused after so many failed actions in a row; 0: never.
            labels: a node must carry all of them to run it; ``node:NAME`` is the node of that name.
            placement: any, or every_node: each slot runs once on each living node that carries the labels (platform only).

        Raises:
            InputError: rule_too_frequent, when two slots are closer than the tenant's ``min_interval_s``.
            Conflict: schedules_full.
            RuleInvalid: a rule is not one; ``index`` is where.
            RuleNeverFires: no slot is left from ``first_after`` on.
            InputError, NotFound, Conflict: whatever else is wrong.
        """
        wished = ScheduleRules(specs(rules), specs(exclusions), tz, dst or DstPolicy(), aware(start), aware(end))
        conduct = Conduct(jitter_s, expires_s, priority, pause_after, parse_labels(labels), parse_placement(placement))
        wish = Wish(script, wished, missed, overlap, retry, limits, params, conduct)
        owed = aware(first_after)
        gap_s = self.books.rulebook.smallest_gap_s(wished, from_us(self._now_us))
        with self.books.database.write() as connection:
            made = schedules.create(
                self.books,
                connection,
                tenant_id,
                name,
                wish,
                self._now_us,
                None if owed is None else to_us(owed),
                gap_s,
            )
        return self._done(made)

    def edit(
        self,
        tenant_id: str,
        schedule: str,
        *,
        script: StepWish = UNCHANGED,
        rules: RuleWish = UNCHANGED,
        exclusions: RuleWish = UNCHANGED,
        tz: str | None = UNCHANGED,
        dst: DstPolicy = UNCHANGED,
        start: datetime | None = UNCHANGED,
        end: datetime | None = UNCHANGED,
        missed: str = UNCHANGED,
        overlap: str = UNCHANGED,
        params: Json = UNCHANGED,
        limits: Mapping[str, Any] | None = UNCHANGED,
        retry: Retry | Mapping[str, Any] | int | None = UNCHANGED,
        jitter_s: float = UNCHANGED,
        expires_s: float = UNCHANGED,
        priority: str = UNCHANGED,
        pause_after: int = UNCHANGED,
        labels: str | Iterable[str] = UNCHANGED,
        placement: str = UNCHANGED,
    ) -> Schedule:
        """Change what is given, as a new revision; the old one is accounted up to now in the same transaction."""
        named: dict[str, Any] = {
            "rules": rules if rules is UNCHANGED else specs(rules),
            "exclusions": exclusions if exclusions is UNCHANGED else specs(exclusions),
            "tz": tz,
            "dst": dst,
            "start": start if start is UNCHANGED else aware(start),
            "end": end if end is UNCHANGED else aware(end),
        }
        change = {
            "script": script,
            "missed": missed,
            "overlap": overlap,
            "params": params,
            "limits": limits,
            "retry": retry,
        }
        conduct = {
            "jitter_s": jitter_s,
            "expires_s": expires_s,
            "priority": priority,
            "pause_after": pause_after,
            "labels": labels if labels is UNCHANGED else parse_labels(labels),
            "placement": placement,
        }
        named, change, conduct = (
            {name: value for name, value in given.items() if value is not UNCHANGED}
            for given in (named, change, conduct)
        )
        if conduct:
            change["conduct"] = conduct
        book, now = self.books.rulebook, from_us(self._now_us)
        wished = replace(self.get(tenant_id, schedule).rules, **named) if named else None
        gap_s = book.smallest_gap_s(wished, now) if wished is not None else None
        with self.books.database.write() as connection:
            if named:
                change["rules"] = replace(schedules.get(self.books, connection, tenant_id, schedule).rules, **named)
                if change["rules"] != wished:  # somebody else has edited it in between
                    gap_s = book.smallest_gap_s(change["rules"], now)
            edited = schedules.edit(self.books, connection, tenant_id, schedule, change, self._now_us, gap_s)
        return self._done(edited)

    def pause(
        self, tenant_id: str, schedule: str, *, note: str | None = None, until: datetime | None = None
    ) -> Schedule:
        """Take it off at once, for ever or until an instant; its slots become one gap row with reason paused."""
        wake = aware(until)
        with self.books.database.write() as connection:
            paused = schedules.pause(
                self.books,
                connection,
                tenant_id,
                schedule,
                self._now_us,
                note,
                None if wake is None else to_us(wake),
            )
        return self._done(paused)

    def resume(self, tenant_id: str, schedule: str) -> Schedule:
        """Arm a paused schedule again."""
        with self.books.database.write() as connection:
            resumed = schedules.resume(self.books, connection, tenant_id, schedule, self._now_us)
        return self._done(resumed)

    def delete(self, tenant_id: str, schedule: str) -> Schedule:
        """Delete at once; what waits is cancelled, what runs may end, history stays."""
        with self.books.database.write() as connection:
            deleted = schedules.erase(self.books, connection, tenant_id, schedule, self._now_us)
        return self._done(deleted)

    def get(self, tenant_id: str, schedule: str) -> Schedule:
        """Give a schedule by id or name; raises NotFound."""
        with self.books.database.read() as connection:
            return schedules.get(self.books, connection, tenant_id, schedule)

    def list(self, tenant_id: str | None = None) -> ScheduleList:
        """Give a tenant's schedules, or all, by tenant and name."""
        with self.books.database.read() as connection:
            return schedules.list_all(self.books, connection, tenant_id)

    def last_run(self, tenant_id: str, schedule: str) -> LastRun | None:
        """Give the run that started last, whatever became of it: slot, actual start, node. None when nothing ever ran."""
        with self.books.database.read() as connection:
            found = schedules.get(self.books, connection, tenant_id, schedule)
            return last_runs.last_run(connection, tenant_id, found.id)

    def preview(
        self,
        rules: RuleWish,
        *,
        exclusions: RuleWish = (),
        tz: str | None = None,
        dst: DstPolicy | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        after: datetime | None = None,
        n: int = 10,
    ) -> Preview:
        """Say what rules mean: the sentence and the next ``n`` slots. Nothing is stored.

        Raises:
            RuleInvalid, RuleNeverFires.
        """
        begin = aware(after) or from_us(self._now_us)
        wished = ScheduleRules(specs(rules), specs(exclusions), tz, dst or DstPolicy(), aware(start), aware(end))
        recurrence = self.books.rulebook.compiled(wished, begin)
        slots: SlotList = []
        slot = recurrence.next_after(begin)
        while slot is not None and len(slots) < max(0, min(n, 1000)):
            slots.append(slot)
            slot = recurrence.next_after(slot)
        shifted = tuple(each for each in slots if recurrence.shifted(each))
        return Preview(recurrence.text(), tuple(slots), shifted, recurrence.ends())
