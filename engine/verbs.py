"""The verbs of the engine by noun, synchronous: each is one transaction. The async facade is a shell around these."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from lodger.engine.clock import from_us, to_us
from lodger.engine.errors import InputError
from lodger.engine.ledger import actions, schedules, scripts, tenants
from lodger.engine.ledger.books import Books
from lodger.engine.ledger.records import Action, Attempt, Json, Preview, Schedule, Script, ScriptVersion, Tenant
from lodger.engine.ledger.schedules import Wish
from lodger.engine.policy.defaults import word
from lodger.engine.policy.retry import Retry
from lodger.engine.recurrence.rule import DstPolicy, RuleSpec, ScheduleRules
from lodger.sandbox.job import LogLine

#: A rule as people give it: a text, a RuleSpec, or several of them.
RuleWish = str | RuleSpec | Sequence[str | RuleSpec]


T = TypeVar("T")
# Inside the nouns the word ``list`` is a verb.
TenantList = list[Tenant]
ScriptList = list[Script]
VersionList = list[ScriptVersion]
ScheduleList = list[Schedule]
ActionList = list[Action]
AttemptList = list[Attempt]
LineList = list[LogLine]
SlotList = list[datetime]


class _Unset:
    """Says that an argument of ``edit`` was not given, where None has a meaning."""

    def __repr__(self) -> str:
        return "unchanged"


UNCHANGED: Any = _Unset()


@dataclass(frozen=True, slots=True)
class Verbs:
    """What the nouns share. ``changed`` is called after every write, so that a node in this process looks at once."""

    books: Books
    changed: Callable[[], None]

    @property
    def _now_us(self) -> int:
        return self.books.clock.now_us()

    def _done(self, answer: T) -> T:
        self.changed()
        return answer


class Tenants(Verbs):
    """Customers of the platform."""

    __slots__ = ()

    def create(self, tenant_id: str, name: str | None = None, limits: Mapping[str, Any] | None = None) -> Tenant:
        """Make a tenant. ``limits``: process limits and ``concurrent_runs`` as the operator allows them.

        Raises:
            InputError: tenant_id_invalid, limit_unknown, limit_out_of_range.
            Conflict: tenant_exists.
        """
        with self.books.database.write() as connection:
            made = tenants.create(self.books, connection, tenant_id, name, dict(limits or {}), self._now_us)
        return self._done(made)

    def get(self, tenant_id: str) -> Tenant:
        """Give one tenant; raises NotFound."""
        with self.books.database.read() as connection:
            return tenants.get(connection, tenant_id)

    def list(self) -> TenantList:
        """Give every tenant, by id."""
        with self.books.database.read() as connection:
            return tenants.list_all(connection)

    def suspend(self, tenant_id: str) -> Tenant:
        """Stop everything of a tenant at once; nothing of it starts or commits until it is resumed."""
        with self.books.database.write() as connection:
            suspended = tenants.suspend(self.books, connection, tenant_id, self._now_us)
        return self._done(suspended)

    def resume(self, tenant_id: str) -> Tenant:
        """Go on; slots of the suspension are gap rows."""
        with self.books.database.write() as connection:
            resumed = tenants.resume(self.books, connection, tenant_id, self._now_us)
        return self._done(resumed)

    def delete(self, tenant_id: str) -> None:
        """Delete a tenant with everything that is its own, for ever."""
        with self.books.database.write() as connection:
            tenants.erase(connection, tenant_id)
        self.changed()


class Scripts(Verbs):
    """Scripts and their versions."""

    __slots__ = ()

    def put(self, tenant_id: str, name: str, source: str | Mapping[str, str]) -> ScriptVersion:
        """Store a version; the same source again makes no new one.

        Raises:
            InputError: script_name_invalid, script_empty, entry_missing, source_not_text, source_too_large.
        """
        with self.books.database.write() as connection:
            version = scripts.put(self.books, connection, tenant_id, name, source, self._now_us)
        return self._done(version)

    def get(self, tenant_id: str, name: str, version: int | None = None) -> ScriptVersion:
        """Give a version, the latest by default; raises NotFound."""
        with self.books.database.read() as connection:
            return scripts.get(connection, tenant_id, name, version)

    def versions(self, tenant_id: str, name: str) -> VersionList:
        """Give every version, newest first."""
        with self.books.database.read() as connection:
            return scripts.versions(connection, tenant_id, name)

    def list(self, tenant_id: str) -> ScriptList:
        """Give the tenant's scripts, by name."""
        with self.books.database.read() as connection:
            return scripts.list_all(connection, tenant_id)


class Schedules(Verbs):
    """Scripts bound to rules."""

    __slots__ = ()

    def create(
        self,
        tenant_id: str,
        name: str,
        *,
        script: str,
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
        first_after: datetime | None = None,
    ) -> Schedule:
        """Bind a script to rules.

        Args:
            rules: texts or RuleSpecs, united; ``exclusions`` take slots away again.
            first_after: instant from which slots are owed, itself included; default now.
            missed: skip, latest, all, ``within:10m``.
            overlap: skip, queue_one, queue_all, cancel_running, allow.

        Raises:
            RuleInvalid: a rule is not one; ``index`` is where.
            RuleNeverFires: no slot is left from ``first_after`` on.
            InputError, NotFound, Conflict: whatever else is wrong.
        """
        wished = ScheduleRules(specs(rules), specs(exclusions), tz, dst or DstPolicy(), _aware(start), _aware(end))
        wish = Wish(script, wished, missed, overlap, retry, limits, params)
        owed = _aware(first_after)
        with self.books.database.write() as connection:
            made = schedules.create(
                self.books,
                connection,
                tenant_id,
                name,
                wish,
                self._now_us,
                None if owed is None else to_us(owed),
            )
        return self._done(made)

    def edit(
        self,
        tenant_id: str,
        schedule: str,
        *,
        script: str = UNCHANGED,
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
    ) -> Schedule:
        """Change what is given, as a new revision; the old one is accounted up to now in the same transaction."""
        named: dict[str, Any] = {
            "rules": rules if rules is UNCHANGED else specs(rules),
            "exclusions": exclusions if exclusions is UNCHANGED else specs(exclusions),
            "tz": tz,
            "dst": dst,
            "start": start if start is UNCHANGED else _aware(start),
            "end": end if end is UNCHANGED else _aware(end),
        }
        change = {
            "script": script,
            "missed": missed,
            "overlap": overlap,
            "params": params,
            "limits": limits,
            "retry": retry,
        }
        named = {name: value for name, value in named.items() if value is not UNCHANGED}
        change = {name: value for name, value in change.items() if value is not UNCHANGED}
        with self.books.database.write() as connection:
            if named:
                before = schedules.get(self.books, connection, tenant_id, schedule)
                change["rules"] = replace(before.rules, **named)
            edited = schedules.edit(self.books, connection, tenant_id, schedule, change, self._now_us)
        return self._done(edited)

    def pause(
        self, tenant_id: str, schedule: str, *, note: str | None = None, until: datetime | None = None
    ) -> Schedule:
        """Take it off at once, for ever or until an instant; its slots become one gap row with reason paused."""
        wake = _aware(until)
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
        begin = _aware(after) or from_us(self._now_us)
        wished = ScheduleRules(specs(rules), specs(exclusions), tz, dst or DstPolicy(), _aware(start), _aware(end))
        recurrence = self.books.rulebook.compiled(wished, begin)
        slots: SlotList = []
        slot = recurrence.next_after(begin)
        while slot is not None and len(slots) < max(0, min(n, 1000)):
            slots.append(slot)
            slot = recurrence.next_after(slot)
        shifted = tuple(each for each in slots if recurrence.shifted(each))
        return Preview(recurrence.text(), tuple(slots), shifted, recurrence.ends())


class Actions(Verbs):
    """What happened, happens and will: slots, gaps and requests."""

    __slots__ = ()

    def list(
        self,
        tenant_id: str | None = None,
        schedule_id: str | None = None,
        state: str | None = None,
        *,
        limit: int = 100,
        before: str | None = None,
    ) -> ActionList:
        """Give actions, newest first; ``before`` is the last id of the page before."""
        with self.books.database.read() as connection:
            return actions.list_some(connection, tenant_id, schedule_id, state, limit=limit, before=before)

    def get(self, action_id: str, tenant_id: str | None = None) -> Action:
        """Give one action; raises NotFound."""
        with self.books.database.read() as connection:
            return actions.get(connection, action_id, tenant_id)

    def attempts(self, action_id: str, tenant_id: str | None = None) -> AttemptList:
        """Give every try at an action, the running one included."""
        with self.books.database.read() as connection:
            return actions.attempts(connection, action_id, tenant_id)

    def logs(self, action_id: str, tenant_id: str | None = None) -> LineList:
        """Give what the action's finished attempts logged, in order."""
        with self.books.database.read() as connection:
            return actions.logs(connection, action_id, tenant_id)

    def run_now(
        self,
        schedule: Schedule | str,
        tenant_id: str | None = None,
        *,
        params: Json = None,
        request_key: str | None = None,
    ) -> Action:
        """Run a schedule's script now; by a Schedule, or by tenant and name or id."""
        tenant_id, name = (schedule.tenant_id, schedule.id) if isinstance(schedule, Schedule) else (tenant_id, schedule)
        if tenant_id is None:
            raise InputError(
                "tenant_missing",
                "a schedule's name alone does not say whose it is",
                fix="give the tenant too",
            )
        with self.books.database.write() as connection:
            asked = actions.run_now(self.books, connection, tenant_id, name, params, request_key, self._now_us)
        return self._done(asked)

    def cancel(self, action_id: str, tenant_id: str | None = None) -> Action:
        """Cancel an action that is not over: queued, waiting or running; raises Conflict when it is over."""
        with self.books.database.write() as connection:
            cancelled = actions.cancel(connection, action_id, tenant_id, self._now_us)
        return self._done(cancelled)


def specs(rules: RuleWish) -> tuple[RuleSpec, ...]:
    """Give rules as RuleSpecs."""
    if isinstance(rules, str | RuleSpec):
        rules = (rules,)
    return tuple(RuleSpec(rule) if isinstance(rule, str) else rule for rule in rules)


def _aware(instant: datetime | None) -> datetime | None:
    if instant is not None and instant.tzinfo is None:
        raise InputError(
            "instant_naive",
            f"{instant.isoformat()} is not an instant",
            why="it has no time zone",
            fix="give an aware datetime, such as datetime(2027, 1, 1, tzinfo=UTC)",
        )
    return instant
