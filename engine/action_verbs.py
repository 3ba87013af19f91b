"""The verbs on actions: what happened, happens and will."""

from lodger.engine.errors import InputError
from lodger.engine.ledger import actions
from lodger.engine.ledger.records import Action, Attempt, Json, Schedule
from lodger.engine.verb import Verbs
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
