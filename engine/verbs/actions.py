"""The verbs on actions: what happened, happens and will."""

from datetime import datetime

from lodger.engine.clock import to_us
from lodger.engine.errors import InputError
from lodger.engine.ledger import actions, backfills
from lodger.engine.ledger.backfills import Backfilled
from lodger.engine.ledger.records import Action, Attempt, Json, Schedule
from lodger.engine.verbs.noun import Verbs, aware
from lodger.sandbox.job import LogLine

# Inside the noun the word ``list`` is a verb.
ActionList = list[Action]
AttemptList = list[Attempt]
LineList = list[LogLine]


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
        node: str | None = None,
    ) -> Action:
        """Run a schedule's script now; by a Schedule, or by tenant and name or id.

        Args:
            node: name of the node that shall run it; any one unless told, also of a schedule placed on every node.
        """
        tenant_id, name = _whose(schedule, tenant_id)
        with self.books.database.write() as connection:
            asked = actions.run_now(self.books, connection, tenant_id, name, params, request_key, self._now_us, node)
        return self._done(asked)

    def backfill(
        self, schedule: Schedule | str, tenant_id: str | None = None, *, start: datetime, end: datetime
    ) -> Backfilled:
        """Run the slots in [start, end) that did not run: skipped, in a gap, expired, cancelled, or before its time.

        They run in slot order, with low priority, behind every slot that comes due meanwhile. What failed has run: replay it.

        Raises:
            InputError: backfill_range, backfill_forgotten, backfill_too_large.
        """
        tenant, name = _whose(schedule, tenant_id)
        begin, until = to_us(_instant(start)), to_us(_instant(end))
        with self.books.database.write() as connection:
            made = backfills.backfill(self.books, connection, tenant, name, begin, until, self._now_us)
        return self._done(made)

    def replay(
        self, action_id: str, tenant_id: str | None = None, *, newest: bool = False, request_key: str | None = None
    ) -> Action:
        """Repeat an action that is over, with its params and slot, from its first step.

        Args:
            newest: run the newest versions of its scripts instead of those it had.

        Raises:
            Conflict: action_open.
            InputError: replay_gap, when the row stands for many slots.
        """
        whose = self.get(action_id, tenant_id).tenant_id
        with self.books.database.write() as connection:
            made = backfills.replay(
                self.books, connection, whose, action_id, self._now_us, newer=newest, request_key=request_key
            )
        return self._done(made)

    def cancel(self, action_id: str, tenant_id: str | None = None) -> Action:
        """Cancel an action that is not over: queued, waiting or running; raises Conflict when it is over."""
        with self.books.database.write() as connection:
            cancelled = actions.cancel(connection, action_id, tenant_id, self._now_us)
        return self._done(cancelled)


def _whose(schedule: Schedule | str, tenant_id: str | None) -> tuple[str, str]:
    if isinstance(schedule, Schedule):
        return schedule.tenant_id, schedule.id
    if tenant_id is None:
        raise InputError(
            "tenant_missing", "a schedule's name alone does not say whose it is", fix="give the tenant too"
        )
    return tenant_id, schedule


def _instant(instant: datetime) -> datetime:
    return aware(instant) or instant
