"""The verbs on schedules: scripts bound to rules."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from lodger.engine.core.access.labels import parse_labels
from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import Conflict
from lodger.engine.core.ids import is_id
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.core.states import OverlapPolicy, PlacementName, PriorityName
from lodger.engine.policy.conduct import Conduct, parse_placement
from lodger.engine.policy.defaults import number, whole, word
from lodger.engine.policy.retry import Retry
from lodger.engine.recurrence.rule import DstPolicy, ScheduleRules
from lodger.engine.service.bulk import Bulk, BulkResult, Matched
from lodger.engine.service.nouns.base import Change, RulesArgument, StepsArgument, aware, specs
from lodger.engine.service.nouns.preview import Previews, changed
from lodger.engine.service.operations.declaration import UNCHANGED, Joinable, M, operation
from lodger.engine.store import list_filter
from lodger.engine.store.actions import actions
from lodger.engine.store.connection.joined import joining
from lodger.engine.store.records import (
    Counters,
    Json,
    LastRun,
    Page,
    Schedule,
    ScheduleDiff,
    ScheduleRevision,
)
from lodger.engine.store.revision_cache import PreparedRules
from lodger.engine.store.schedules import revisions, run_history, schedule_rows, schedules
from lodger.engine.store.schedules.revisions import ScheduleFields
from lodger.engine.store.schedules.run_history import Calendar, RecentRuns
from lodger.engine.store.scripts import differences

# Inside the class ``list`` is a verb.
SchedulePage = Page[Schedule]
RevisionPage = Page[ScheduleRevision]
RecentList = list[RecentRuns]

#: Maximum number of days of a calendar: two years.
MAX_DAYS = 731
_NOT_COMPARED = {"tenant_id", "schedule_id", "revision", "created_at", "created_by", "why"}


def wish_of(
    given: Mapping[str, Any], prepare: Callable[[ScheduleRules], PreparedRules]
) -> tuple[ScheduleRules, ScheduleFields]:
    """Return the rules and the fields of a schedule, from the arguments of :meth:`Schedules.create` by name."""
    wished = ScheduleRules(
        specs(given["rules"]), specs(given["exclusions"]), given["tz"], given["dst"] or DstPolicy(), aware(given["start"]),
        aware(given["end"]),
    )  # fmt: skip
    conduct = Conduct(
        given["jitter_s"], given["expires_s"], given["priority"], given["pause_after"], parse_labels(given["labels"]),
        parse_placement(given["placement"]),
    )  # fmt: skip
    script, version = given["script"], given["version"]
    steps = script if version is None else revisions.with_version(script, version)
    same = {name: given[name] for name in ("missed", "overlap", "retry", "limits", "params", "grants")}
    return wished, ScheduleFields(script=steps, rules=prepare(wished), conduct=conduct, **same)


class Schedules(Previews[M]):
    """Scripts bound to rules."""

    __slots__ = ()

    @operation("POST", "/tenants/{tenant_id}/schedules", Role.EDITOR, status=201, stores=True)
    def create(
        self,
        tenant_id: str,
        name: str,
        *,
        script: StepsArgument,
        rules: RulesArgument,
        exclusions: RulesArgument = (),
        tz: str | None = None,
        dst: DstPolicy | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        missed: str = word("missed"),
        overlap: OverlapPolicy = word("overlap"),
        params: Json = None,
        limits: Mapping[str, Any] | None = None,
        retry: Retry | Mapping[str, Any] | int | None = None,
        jitter_s: float = number("jitter_s"),
        expires_s: float = number("expires_s"),
        priority: PriorityName = word("priority"),
        pause_after: int = whole("pause_after"),
        labels: str | Iterable[str] = word("labels"),
        placement: PlacementName = word("placement"),
        grants: Iterable[str] | None = None,
        first_after: datetime | None = None,
        version: int | str | None = None,
        why: str | None = None,
        connection: Joinable = None,
    ) -> Schedule:
        """Create a schedule: bind a script to rules.

        Args:
            script: name of the script; or the steps of every action in order, each a name or ``{"script", "version",
                "limits"}``. The input of the first step is the params, of every other step the result of the previous
                one.
            version: number of the script's version, or "latest" for the newest at each run. Default: "latest".
            rules: rules, as text, RuleSpec, or ``rrule`` or ``rruleset`` of python-dateutil; their slots are united,
                without those of ``exclusions``.
            first_after: the first slot comes after this instant. Default: now.
            missed: policy for missed slots: skip, latest, all, or within a duration, such as ``within:10m``.
            overlap: policy for slots while an earlier action is unfinished: skip, queue_one, queue_all, cancel_other,
                cancel_running, allow, or Temporal's names of these.
            jitter_s: maximum random delay of an action after its slot, in seconds; always before the next slot.
            expires_s: an action that has not started this many seconds after it was due expires; 0: never.
            priority: priority among the tenant's own actions: high, normal or low.
            pause_after: number of consecutive failed actions that pause the schedule; 0: never.
            labels: labels that a node must have to run it; ``node:NAME`` is the node of that name.
            placement: nodes that run a slot: any (one node), or every_node (once on each running node that has the
                labels; platform only).
            grants: grants that its scripts may use; None for all grants of the scripts.
            why: the reason, kept with the revision and in the audit log.

        Raises:
            InputError: rule_too_frequent, if two slots are closer than the tenant's ``min_interval_s``.
            Conflict: schedules_full.
            RuleInvalid: a rule is invalid; ``index`` is its position.
            RuleNeverFires: no slot is left from ``first_after`` on.
            InputError, NotFound, Conflict: errors of the other arguments.
        """
        given = {
            "script": script, "rules": rules, "exclusions": exclusions, "tz": tz, "dst": dst, "start": start, "end": end,
            "missed": missed, "overlap": overlap, "params": params, "limits": limits, "retry": retry, "jitter_s": jitter_s,
            "expires_s": expires_s, "priority": priority, "pause_after": pause_after, "labels": labels, "placement": placement,
            "grants": grants, "version": version,
        }  # fmt: skip
        owed, now_us = aware(first_after), self._now_us

        def prepare_rules(wished: ScheduleRules) -> PreparedRules:
            """Compile the rules and find their first slot."""
            return self.context.revision_cache.prepare(wished, from_us(now_us), owed)

        wished, wish = wish_of(given, prepare_rules)
        with joining(connection), self._changing(Schedules.create, tenant_id, name, name) as change:
            return change.made(
                schedules.create(
                    self.context,
                    change.connection,
                    tenant_id,
                    name,
                    wish,
                    now_us,
                    change.with_reason(why),
                    None if owed is None else to_us(owed),
                    None if wished.names_zone else lambda tz: prepare_rules(replace(wished, tz=tz)),
                )
            )

    @operation("PATCH", "/tenants/{tenant_id}/schedules/{schedule}", Role.EDITOR, tagged=True, stores=True)
    def edit(
        self,
        tenant_id: str,
        schedule: str,
        *,
        name: str = UNCHANGED,
        script: StepsArgument = UNCHANGED,
        rules: RulesArgument = UNCHANGED,
        exclusions: RulesArgument = UNCHANGED,
        tz: str | None = UNCHANGED,
        dst: DstPolicy = UNCHANGED,
        start: datetime | None = UNCHANGED,
        end: datetime | None = UNCHANGED,
        missed: str = UNCHANGED,
        overlap: OverlapPolicy = UNCHANGED,
        params: Json = UNCHANGED,
        limits: Mapping[str, Any] | None = UNCHANGED,
        retry: Retry | Mapping[str, Any] | int | None = UNCHANGED,
        jitter_s: float = UNCHANGED,
        expires_s: float = UNCHANGED,
        priority: PriorityName = UNCHANGED,
        pause_after: int = UNCHANGED,
        labels: str | Iterable[str] = UNCHANGED,
        placement: PlacementName = UNCHANGED,
        grants: Iterable[str] | None = UNCHANGED,
        version: int | str | None = UNCHANGED,
        why: str | None = None,
        revision: int | None = None,
    ) -> Schedule:
        """Change a schedule, as a new revision; the slots of the old one are accounted up to now in the same transaction.

        Args:
            name: its new name; its id and its history stay.
            why: the reason, kept with the revision and in the audit log.
            revision: refuse the change if the schedule is at another revision.

        Raises:
            Conflict: changed_meanwhile, and those of :meth:`create`.
        """
        named = self._zoned(
            tenant_id, changed(rules=rules, exclusions=exclusions, tz=tz, dst=dst, start=start, end=end)
        )
        change = changed(
            name=name, script=script, missed=missed, overlap=overlap, params=params, limits=limits, retry=retry, grants=grants,
            version=version,
        )  # fmt: skip
        conduct = changed(
            jitter_s=jitter_s, expires_s=expires_s, priority=priority, pause_after=pause_after, labels=labels,
            placement=placement,
        )  # fmt: skip
        if conduct:
            change["conduct"] = conduct
        cache, now_us = self.context.revision_cache, self._now_us
        # An id may be the name of another schedule.
        found = None if is_id(schedule) else self._read(schedule_rows.rules_of, tenant_id, schedule)
        present = found or self._get(tenant_id, schedule).rules
        wished = replace(present, **named)
        prepared = cache.prepare(wished, from_us(now_us), before=present)
        with self._changing(Schedules.edit, tenant_id, schedule) as changing:
            before = self._at(changing, tenant_id, schedule, revision)
            current = replace(before.rules, **named)
            # A concurrent edit may have changed the rules.
            if current != wished:
                prepared = cache.prepare(current, from_us(now_us), before=before.rules)
            change["rules"] = prepared
            edited = schedules.edit(
                self.context,
                changing.connection,
                tenant_id,
                before,
                change,
                now_us,
                changing.with_reason(why),
            )
            return changing.made(edited)

    def _at(self, change: Change, tenant_id: str, schedule: str, revision: int | None = None) -> Schedule:
        """Return the present schedule, noted as the state before the change; refuse if it is not at the given revision."""
        before = change.before(schedules.get(change.connection, tenant_id, schedule))
        if revision is not None and before.revision != revision:
            raise Conflict("changed_meanwhile", name=before.name, current=before.revision, expected=revision)
        return before

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/rollback", Role.EDITOR, tagged=True, stores=True)
    def rollback(self, tenant_id: str, schedule: str, revision: int, *, why: str | None = None) -> Schedule:
        """Restore an earlier revision as a new revision; the revisions in between stay readable.

        Raises:
            NotFound: revision_unknown, or a missing script or version.
            RuleNeverFires: its rules have no slot left.
        """
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            old = revisions.get(connection, tenant_id, found.id, revision)
        now_us = self._now_us
        wanted = {
            "script": old.steps, "rules": self.context.revision_cache.prepare(old.rules, from_us(now_us)),
            "missed": old.missed, "overlap": old.overlap, "retry": old.retry,
            "limits": old.limits, "params": old.params, "conduct": old.conduct, "grants": old.grants,
        }  # fmt: skip
        with self._changing(Schedules.rollback, tenant_id, schedule) as change:
            audit_context = change.with_reason(why or change.audit_context.why or f"rollback to revision {revision}")
            found = self._at(change, tenant_id, found.id)
            return change.made(
                schedules.edit(self.context, change.connection, tenant_id, found, wanted, now_us, audit_context)
            )

    @operation("GET", "/tenants/{tenant_id}/schedules/{schedule}/revisions", Role.VIEWER)
    def revisions(
        self, tenant_id: str, schedule: str, *, limit: int | None = None, cursor: str | None = None
    ) -> RevisionPage:
        """List a schedule's revisions, newest first."""
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            return revisions.list_page(connection, tenant_id, found.id, limit, cursor)

    @operation("GET", "/tenants/{tenant_id}/schedules/{schedule}/diff", Role.VIEWER)
    def diff(self, tenant_id: str, schedule: str, older: int, newer: int | None = None) -> ScheduleDiff:
        """Compare two revisions of a schedule; ``newer`` is the current one by default."""
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            before = revisions.get(connection, tenant_id, found.id, older)
            after = revisions.get(connection, tenant_id, found.id, found.revision if newer is None else newer)
        said = [
            {name: value for name, value in to_jsonable(each).items() if name not in _NOT_COMPARED}
            for each in (before, after)
        ]
        return ScheduleDiff(found.id, before.revision, after.revision, differences.of_fields(*said))

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/pause", Role.EDITOR, tagged=True)
    def pause(
        self, tenant_id: str, schedule: str, *, note: str | None = None, until: datetime | None = None
    ) -> Schedule:
        """Pause a schedule at once, until it is resumed or until an instant; its slots become one gap row with reason paused.

        Args:
            note: reason of the pause, which is shown with the schedule and in the audit log.
            until: instant at which the schedule is resumed; without one it stays paused.
        """
        wake = aware(until)
        with self._changing(Schedules.pause, tenant_id, schedule) as change:
            change.with_reason(note)
            before = self._at(change, tenant_id, schedule)
            wake_us = None if wake is None else to_us(wake)
            return change.made(
                schedules.pause(self.context, change.connection, tenant_id, before.id, self._now_us, note, wake_us)
            )

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/resume", Role.EDITOR, tagged=True)
    def resume(self, tenant_id: str, schedule: str) -> Schedule:
        """Resume a paused schedule."""
        with self._changing(Schedules.resume, tenant_id, schedule) as change:
            before = self._at(change, tenant_id, schedule)
            return change.made(schedules.resume(self.context, change.connection, tenant_id, before.id, self._now_us))

    @operation(
        "DELETE",
        "/tenants/{tenant_id}/schedules/{schedule}",
        Role.EDITOR,
        tagged=True,
        confirm="delete schedule {schedule} of {tenant_id}",
    )
    def delete(self, tenant_id: str, schedule: str, *, revision: int | None = None) -> Schedule:
        """Delete a schedule at once; waiting actions are cancelled, running ones can end, and its history is kept.

        Args:
            revision: refuse the change if the schedule is at another revision.

        Raises:
            Conflict: changed_meanwhile.
        """
        with self._changing(Schedules.delete, tenant_id, schedule) as change:
            before = self._at(change, tenant_id, schedule, revision)
            return change.made(schedules.erase(self.context, change.connection, before, self._now_us))

    @operation("GET", "/tenants/{tenant_id}/schedules/{schedule}", Role.VIEWER)
    def get(self, tenant_id: str, schedule: str) -> Schedule:
        """Return a schedule by id or name.

        Raises:
            NotFound: schedule_unknown.
        """
        return self._get(tenant_id, schedule)

    def _get(self, tenant_id: str, schedule: str) -> Schedule:
        """Return a schedule by name or id."""
        return self._read(schedules.get, tenant_id, schedule)

    @operation("GET", "/tenants/{tenant_id}/schedules", Role.VIEWER, everywhere=True)
    def list(
        self,
        tenant_id: str | None = None,
        *,
        state: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - the word of the field
    ) -> SchedulePage:
        """List a tenant's schedules by name, or all by tenant and name.

        Args:
            state: only those that are armed, paused, suspended or ended.
            filter: such as ``state:paused name:night* label:eu failures:3 sort:next``.

        Raises:
            InputError: state_unknown, filter_invalid, cursor_invalid.
        """
        wanted = self._filter(list_filter.with_fields(filter, state=state), self._now_us)
        with self._reading(tenant_id) as connection:
            return schedules.list_page(connection, tenant_id, wanted, limit, cursor)

    def _filter(self, text: str | None, now_us: int) -> list_filter.Filter:
        """Return the filter of a list of schedules."""
        return list_filter.read(schedule_rows.language(), text, now_us)

    @operation("GET", "/tenants/{tenant_id}/schedules-count", Role.VIEWER, everywhere=True)
    def count(self, tenant_id: str | None = None, *, filter: str | None = None) -> Matched:  # noqa: A002 - as above
        """Count the schedules that match a filter.

        Raises:
            InputError: filter_invalid.
            NotFound: tenant_unknown.
        """
        return self._count(schedule_rows.identities(tenant_id, self._filter(filter, self._now_us)), tenant_id)

    @operation("POST", "/tenants/{tenant_id}/schedules-bulk", Role.EDITOR, everywhere=True, command=None)
    def bulk(
        self,
        tenant_id: str | None,
        do: str,
        *,
        filter: str,  # noqa: A002 - as above
        why: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> BulkResult:
        """Pause, resume or run the schedules that match a filter, newest first: a part of them with each call.

        The first call writes the one entry of the audit log. Repeat the call with ``next`` of the result as cursor until
        it is null.

        Args:
            do: pause, resume or run_now.
            why: the reason, kept in the audit log, and as the note of a pause.
            limit: maximum number of schedules of this call, up to 500.

        Raises:
            InputError: bulk_unknown, filter_invalid, cursor_invalid, limit_invalid.
            NotFound: tenant_unknown.
        """
        now_us, context = self._now_us, self.context
        with self._changing(Schedules.bulk, tenant_id, filter, do) as change:
            connection = change.connection
            verbs = {
                "pause": lambda tenant, each: schedules.pause(context, connection, tenant, each, now_us, why, None),
                "resume": lambda tenant, each: schedules.resume(context, connection, tenant, each, now_us),
                "run_now": lambda tenant, each: actions.run_now(context, connection, tenant, each, None, None, now_us),
            }

            def matching_ids(at_us: int) -> Any:
                """Return the query of the schedules that match at this instant."""
                return schedule_rows.identities(tenant_id, self._filter(filter, at_us))

            change.with_reason(why)
            every = Bulk("schedules", verbs, matching_ids)
            return every.carry_out(context, change, do, tenant_id, filter, limit, cursor)

    @operation("GET", "/tenants/{tenant_id}/schedules/{schedule}/counters", Role.VIEWER)
    def counters(self, tenant_id: str, schedule: str) -> Counters:
        """Count a schedule's actions by state, as far as its history is kept; of each state at most the newest ten thousand."""
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            return schedule_rows.counters(connection, found)

    @operation("GET", "/tenants/{tenant_id}/schedules/{schedule}/last-run", Role.VIEWER)
    def last_run(self, tenant_id: str, schedule: str) -> LastRun | None:
        """Return the latest started run, however it ended: slot, start and node; None if there is none."""
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            return schedule_rows.last_run(connection, found.id)

    @operation("POST", "/tenants/{tenant_id}/recent-runs", Role.VIEWER, reads=True, everywhere=True, items="schedules")
    def recent(self, tenant_id: str | None = None, *, schedule_ids: Iterable[str], runs: int = 20) -> RecentList:
        """Return the latest runs of many schedules, newest first, in a fixed number of statements.

        Args:
            schedule_ids: ids of up to 100 schedules.
            runs: maximum number of runs of each, 1 to 50.
        """
        maximum = max(1, min(runs, run_history.MAX_RUNS))
        with self._reading(tenant_id) as connection:
            return run_history.recent(connection, tenant_id, tuple(schedule_ids), maximum)

    @operation("GET", "/tenants/{tenant_id}/schedules/{schedule}/calendar", Role.VIEWER)
    def calendar(self, tenant_id: str, schedule: str, *, back: int = 84, ahead: int = 35) -> Calendar:
        """Count a schedule's actions of each past day of its zone by state, and the slots of each coming day.

        Args:
            back, ahead: number of days before and after now, today included in both; up to 731. Only an armed schedule
                has coming slots.
        """
        back, ahead = max(1, min(back, MAX_DAYS)), max(1, min(ahead, MAX_DAYS))
        now = from_us(self._now_us)
        with self.context.database.read() as connection:
            found = schedules.get(connection, tenant_id, schedule)
            cache = self.context.revision_cache
            recurrence = cache.revision(connection, found.tenant_id, found.id, found.revision).recurrence
            past = run_history.past_days(connection, found.id, now, back, recurrence, found.tz)
        if found.state != "armed":
            return Calendar(found.id, past, (), complete=True)
        return Calendar(found.id, past, *run_history.coming_days(recurrence, past[-1].day, ahead, found.tz))
