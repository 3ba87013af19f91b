"""The verbs on actions: past, running and coming runs."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from sqlalchemy import Connection

from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import is_id
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.service.bulk import Bulk, BulkResult, Matched
from lodger.engine.service.nouns.base import Noun, aware, instant
from lodger.engine.service.operations.declaration import Joinable, M, operation
from lodger.engine.store import list_filter, short_ids
from lodger.engine.store.actions import actions, activity, error_groups, monitoring, repeats
from lodger.engine.store.actions.activity import Activity
from lodger.engine.store.actions.error_groups import ErrorGroup
from lodger.engine.store.actions.monitoring import ComparedAttempt, Overdue, RunningNow
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.connection.joined import joining
from lodger.engine.store.queue import outbox
from lodger.engine.store.queue.outbox import Delivery
from lodger.engine.store.records import Action, Attempt, Json, Page
from lodger.engine.store.schedules import schedules
from lodger.engine.store.tenants import tenants
from lodger.engine.store.usage import usage
from lodger.sandbox.job import LogLine

# Inside the class ``list`` is a verb.
ActionPage = Page[Action]
AttemptList = list[Attempt]
LineList = list[LogLine]
RunningList = list[RunningNow]
OverdueList = list[Overdue]
ErrorList = list[ErrorGroup]
ComparedList = list[ComparedAttempt]
DeliveryList = list[Delivery]
LimitsList = list[dict[str, int]]

#: A century.
MAX_GRACE_S = 3_155_760_000


class Actions(Noun[M]):
    """Past, running and coming runs: slots, gaps and requests.

    An action is identified by its tenant and id although ids are unique, so that a caller cannot read another tenant's
    action by its id. None as tenant is for callers that may read every tenant's. The beginning or the end of an id, at
    least four characters, is sufficient where it is unique.
    """

    @operation("GET", "/tenants/{tenant_id}/actions", Role.VIEWER, everywhere=True)
    def list(
        self,
        tenant_id: str | None = None,
        schedule: str | None = None,
        state: str | None = None,
        *,
        outcome: str | None = None,
        origin: str | None = None,
        script: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 100,
        before: str | None = None,
        after: str | None = None,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - the word of the field
    ) -> ActionPage:
        """List actions, newest first.

        Args:
            filter: such as ``state:failed script:night* error:"timed out" since:24h sort:-due``.
            schedule: only actions of this schedule, by its name or id; a deleted schedule has only its id.
            since: only actions due at this instant or later.
            until: only actions due before this instant.
            before, after: only actions created before, or after, the one with this id.

        Raises:
            InputError: state_unknown, outcome_unknown, origin_unknown, filter_invalid, cursor_invalid, limit_invalid,
                tenant_missing.
            NotFound: tenant_unknown, schedule_unknown.
        """
        text = list_filter.with_fields(
            filter, state=state, outcome=outcome, origin=origin, since=aware(since), until=aware(until)
        )
        wanted = list_filter.read(actions.language(), text, self._now_us)
        with self._reading(tenant_id) as connection:
            schedule_id = None if schedule is None else _schedule_id(connection, tenant_id, schedule)
            if before is not None:
                before = short_ids.action_id(connection, tenant_id, before)
            if after is not None:
                after = short_ids.action_id(connection, tenant_id, after)
            sought = actions.ActionFilter(wanted, tenant_id, schedule_id, script)
            return actions.list_matching(connection, sought, limit, cursor, before=before, after=after)

    @operation("GET", "/tenants/{tenant_id}/actions-count", Role.VIEWER, everywhere=True)
    def count(self, tenant_id: str | None = None, *, filter: str | None = None) -> Matched:  # noqa: A002 - as above
        """Count the actions that match a filter, among the newest 10 000.

        Raises:
            InputError: filter_invalid.
            NotFound: tenant_unknown.
        """
        wanted = list_filter.read(actions.language(), filter, self._now_us)
        with self._reading(tenant_id) as connection:
            return Matched(*actions.count_matching(connection, actions.ActionFilter(wanted, tenant_id)))

    @operation("POST", "/tenants/{tenant_id}/actions-bulk", Role.RUNNER, everywhere=True, command=None)
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
        """Retry, cancel or replay the actions that match a filter, newest first: a part of them with each call.

        The first call writes the one entry of the audit log. Repeat the call with ``next`` of the result as cursor until
        it is null; actions that begin to match later are left alone.

        Args:
            do: retry, cancel or replay.
            why: the reason, kept in the audit log.
            limit: maximum number of actions of this call, up to 500.

        Raises:
            InputError: bulk_unknown, filter_invalid, cursor_invalid, limit_invalid.
            NotFound: tenant_unknown.
        """
        now_us = self._now_us
        with self._changing(Actions.bulk, tenant_id, filter, do) as change:
            connection = change.connection
            verbs = {
                "retry": lambda tenant, each: actions.retry(self.context, connection, tenant, each, now_us),
                "cancel": lambda tenant, each: actions.cancel(connection, each, tenant, now_us),
                "replay": lambda tenant, each: repeats.replay(self.context, connection, tenant, each, now_us),
            }

            def matching_ids(at_us: int) -> Any:
                """Return the query of the actions that match at this instant."""
                wanted = list_filter.read(actions.language(), filter, at_us)
                return actions.identities(actions.ActionFilter(wanted, tenant_id))

            change.with_reason(why)
            every = Bulk("actions", verbs, matching_ids, frozenset({"replay"}))
            return every.carry_out(self.context, change, do, tenant_id, filter, limit, cursor)

    @operation("GET", "/tenants/{tenant_id}/actions/{action_id}", Role.VIEWER, everywhere=True)
    def get(self, tenant_id: str | None, action_id: str) -> Action:
        """Return one action.

        Raises:
            NotFound: action_unknown.
        """
        return self._get(tenant_id, action_id)

    def _get(self, tenant_id: str | None, action_id: str) -> Action:
        """Return one action by its id or a part of it."""
        return self._read(_found, tenant_id, action_id)

    @operation("GET", "/tenants/{tenant_id}/actions/{action_id}/attempts", Role.VIEWER, everywhere=True)
    def attempts(self, tenant_id: str | None, action_id: str) -> AttemptList:
        """List every attempt of an action by step, the running one included."""
        with self.context.database.read() as connection:
            return actions.attempts(connection, short_ids.action_id(connection, tenant_id, action_id), tenant_id)

    @operation("GET", "/tenants/{tenant_id}/actions/{action_id}/logs", Role.VIEWER, everywhere=True)
    def logs(self, tenant_id: str | None, action_id: str) -> LineList:
        """List the log lines of the action's attempts, in order."""
        with self.context.database.read() as connection:
            return actions.logs(connection, short_ids.action_id(connection, tenant_id, action_id), tenant_id)

    @operation("GET", "/tenants/{tenant_id}/actions/{action_id}/deliveries", Role.VIEWER, everywhere=True)
    def deliveries(self, tenant_id: str | None, action_id: str) -> DeliveryList:
        """List the mails and webhooks of an action with their state of delivery.

        Raises:
            NotFound: action_unknown.
        """
        with self.context.database.read() as connection:
            found = _found(connection, tenant_id, action_id)
            return outbox.deliveries(connection, found.tenant_id, found.id)

    @operation("GET", "/tenants/{tenant_id}/outbox", Role.VIEWER, everywhere=True)
    def outbox(self, tenant_id: str | None = None, *, failed: bool = False, limit: int = 100) -> DeliveryList:
        """List the mails and webhooks that wait in the outbox, longest due first; of all tenants without those of suspended ones.

        Args:
            failed: those that have failed for good instead, newest first.

        Raises:
            NotFound: tenant_unknown.
        """
        with self._reading(tenant_id) as connection:
            return outbox.unsent(connection, tenant_id, max(1, min(limit, 10_000)), failed=failed)

    @operation("POST", "/tenants/{tenant_id}/run-at", Role.RUNNER, status=201, requests=True)
    def run_at(
        self,
        tenant_id: str,
        script: str,
        at: datetime,
        params: Json = None,
        request_key: str | None = None,
        *,
        connection: Joinable = None,
    ) -> Action:
        """Run a script once at an instant; an instant in the past is due at once.

        ``request_key``: a second request with the same key (per tenant) returns the action of the first one.

        Args:
            connection: the caller's connection to the ledger's database, with a transaction in which the action is stored.

        Raises:
            InputError: connection_unknown, connection_no_transaction, connection_elsewhere, connection_async.
        """
        with joining(connection):
            return self._once(Actions.run_at, tenant_id, script, to_us(instant(at)), params, request_key)

    @operation("POST", "/tenants/{tenant_id}/run-in", Role.RUNNER, status=201, requests=True)
    def run_in(
        self,
        tenant_id: str,
        script: str,
        delay: float | str | timedelta,
        params: Json = None,
        request_key: str | None = None,
        *,
        connection: Joinable = None,
    ) -> Action:
        """Run a script once after a delay, counted from now on the engine's clock.

        Args:
            delay: delay in milliseconds, as a timedelta, or a text such as ``"90s"``, ``"1h30m"``, ``"PT15M"``.
            connection: as of :meth:`run_at`.

        Raises:
            InputError: instant_out_of_range, delay_negative, or an error of the text; as of :meth:`run_at`.
        """
        at_us = self._now_us + _delay_us(delay)
        with joining(connection):
            return self._once(Actions.run_in, tenant_id, script, at_us, params, request_key)

    def _once(
        self, verb: Callable[..., Any], tenant_id: str, script: str, at_us: int, params: Json, key: str | None
    ) -> Action:
        """Store a requested run, unless its key has been used."""
        with self._changing(verb, tenant_id, script) as change:
            before = actions.find_request(change.connection, tenant_id, key)
            made = before or actions.once(self.context, change.connection, tenant_id, script, at_us, params, key)
            return change.made(made, changed=before is None)

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/run-now", Role.RUNNER, status=201, requests=True)
    def run_now(
        self,
        tenant_id: str,
        schedule: str,
        *,
        params: Json = None,
        request_key: str | None = None,
        node: str | None = None,
    ) -> Action:
        """Run a schedule's script now.

        Args:
            schedule: name or id of the schedule.
            node: name of the node to run it. Default: any node, also for a schedule placed on every node.
        """
        with self._changing(Actions.run_now, tenant_id, schedule) as change:
            before = actions.find_request(change.connection, tenant_id, request_key)
            made = before or actions.run_now(
                self.context, change.connection, tenant_id, schedule, params, request_key, self._now_us, node
            )
            return change.made(made, changed=before is None)

    @operation(
        "POST",
        "/tenants/{tenant_id}/actions/{action_id}/replay",
        Role.RUNNER,
        status=201,
        everywhere=True,
        requests=True,
    )
    def replay(
        self, tenant_id: str | None, action_id: str, *, newest: bool = False, request_key: str | None = None
    ) -> Action:
        """Repeat an action that has ended, with its params and slot, from its first step.

        Args:
            newest: run the newest versions of its scripts instead of the original ones.

        Raises:
            Conflict: action_open.
            InputError: replay_gap, if the row covers many slots.
        """
        found = self._get(tenant_id, action_id)
        with self._changing(Actions.replay, found.tenant_id, found.id) as change:
            before = actions.find_request(change.connection, found.tenant_id, request_key)
            made = before or repeats.replay(
                self.context,
                change.connection,
                found.tenant_id,
                found.id,
                self._now_us,
                newer=newest,
                request_key=request_key,
            )
            return change.made(made, changed=before is None)

    @operation("POST", "/tenants/{tenant_id}/actions/{action_id}/retry", Role.RUNNER, everywhere=True)
    def retry(self, tenant_id: str | None, action_id: str) -> Action:
        """Continue a failed action at the step that failed, with its versions, params and results.

        Its retries are counted anew. Effects of earlier steps are not repeated.
        """
        found = self._get(tenant_id, action_id)
        with self._changing(Actions.retry, found.tenant_id, found.id) as change:
            change.before(actions.get(change.connection, found.id, found.tenant_id))
            return change.made(actions.retry(self.context, change.connection, found.tenant_id, found.id, self._now_us))

    @operation("GET", "/tenants/{tenant_id}/activity", Role.VIEWER, everywhere=True)
    def activity(self, tenant_id: str | None = None, *, hours: int = 1) -> Activity:
        """Return how many actions run and are due now, and what ended in the last hours, in sixty parts, with its lateness.

        Args:
            hours: 1 to 720; parts of one hour are minutes.

        Raises:
            NotFound: tenant_unknown.
        """
        with self.context.database.read() as connection:
            generation = 0 if tenant_id is None else tenants.get(connection, tenant_id).generation
            hours = max(1, min(hours, activity.MAX_HOURS))
            return activity.read(self.context, connection, tenant_id, generation, self._now_us, hours)

    @operation("GET", "/tenants/{tenant_id}/errors", Role.VIEWER, everywhere=True, items="errors")
    def errors(self, tenant_id: str | None = None, *, since: datetime | None = None) -> ErrorList:
        """List the errors of the newest 10 000 failed actions by script, message and line, the most frequent first.

        Args:
            since: only actions that failed at this instant or later. Default: a day ago.

        Raises:
            NotFound: tenant_unknown.
        """
        found = aware(since)
        since_us = self._now_us - usage.DAY_US if found is None else to_us(found)
        with self.context.database.read() as connection:
            _, found = read_together(
                partial(tenants.get, connection, tenant_id) if tenant_id is not None else lambda: None,
                partial(error_groups.groups, connection, tenant_id, since_us, self._now_us),
            )
            return cast("ErrorList", found)

    @operation("GET", "/tenants/{tenant_id}/running", Role.VIEWER, everywhere=True)
    def running(self, tenant_id: str | None = None, *, limit: int = 100) -> RunningList:
        """List the actions that run now, longest first, beside the usual duration of the same schedule and step.

        Raises:
            NotFound: tenant_unknown.
        """
        with self._reading(tenant_id) as connection:
            return monitoring.running(connection, self._now_us, tenant_id, max(1, min(limit, 10_000)))

    @operation("GET", "/tenants/{tenant_id}/overdue", Role.VIEWER, everywhere=True)
    def overdue(self, tenant_id: str | None = None, *, grace_s: float = 10.0, limit: int = 100) -> OverdueList:
        """List the actions and slots that should have started more than ``grace_s`` ago, each with the reason.

        Longest first; those that wait because their schedule is paused, or their tenant or script suspended, come last.

        Raises:
            InputError: grace_invalid.
            NotFound: tenant_unknown.
        """
        if not abs(grace_s) <= MAX_GRACE_S:  # false for NaN, too
            raise InputError("grace_invalid", grace_s=grace_s, maximum=MAX_GRACE_S)
        grace_us = int(max(0.0, grace_s) * 1_000_000)
        with self._reading(tenant_id) as connection:
            return monitoring.overdue(
                self.context, connection, self._now_us, tenant_id, grace_us, max(1, min(limit, 10_000))
            )

    @operation(
        "GET", "/tenants/{tenant_id}/actions/{action_id}/compared", Role.VIEWER, everywhere=True, items="attempts"
    )
    def compared(self, tenant_id: str | None, action_id: str) -> ComparedList:
        """Compare the duration of each attempt of an action with earlier runs of the same schedule and step."""
        with self.context.database.read() as connection:
            return monitoring.compare_attempts(connection, _found(connection, tenant_id, action_id), self._now_us)

    @operation("GET", "/tenants/{tenant_id}/actions/{action_id}/limits", Role.VIEWER, everywhere=True, items="steps")
    def limits(self, tenant_id: str | None, action_id: str) -> LimitsList:
        """Return the process limits of each step of an action: its tenant's, lowered by those of its schedule's revision.

        Raises:
            NotFound: action_unknown.
        """
        with self.context.database.read() as connection:
            return actions.limits(self.context, connection, _found(connection, tenant_id, action_id))

    @operation("POST", "/tenants/{tenant_id}/actions/{action_id}/cancel", Role.RUNNER, everywhere=True)
    def cancel(self, tenant_id: str | None, action_id: str) -> Action:
        """Cancel an action that has not ended: queued, waiting or running.

        Raises:
            NotFound: action_unknown.
            Conflict: action_over.
        """
        found = self._get(tenant_id, action_id)
        with self._changing(Actions.cancel, found.tenant_id, found.id) as change:
            change.before(actions.get(change.connection, found.id, found.tenant_id))
            return change.made(actions.cancel(change.connection, found.id, found.tenant_id, self._now_us))


def _found(connection: Connection, tenant_id: str | None, action_id: str) -> Action:
    """Return an action by its id or a part of it."""
    return actions.get(connection, short_ids.action_id(connection, tenant_id, action_id), tenant_id)


def _schedule_id(connection: Connection, tenant_id: str | None, schedule: str) -> str:
    """Return the id of a schedule that is given by id, or by name with its tenant."""
    if is_id(schedule):
        return schedule
    if tenant_id is None:
        raise InputError("tenant_missing", schedule=schedule)
    return schedules.get(connection, tenant_id, schedule).id


def _delay_us(delay: float | str | timedelta) -> int:
    """Return a delay in microseconds; raises InputError if it is negative, too long or no duration."""
    if isinstance(delay, str):
        return parse_duration(delay)
    if not isinstance(delay, timedelta) and not abs(delay) < MAX_GRACE_S * 1e9:  # false for NaN, too
        raise InputError("instant_out_of_range.delay", delay=delay)
    us = delay // timedelta(microseconds=1) if isinstance(delay, timedelta) else round(delay * 1000)
    if us < 0:
        raise InputError("delay_negative")
    return us
