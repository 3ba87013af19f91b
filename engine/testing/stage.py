"""A stage for one test: a ledger, a clock, an inline node, and assertions about what has run."""

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn, Self

import sqlalchemy as sa

from lodger.engine.core.clock import from_us_or_none, to_us
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.egress.way_out import WayOut
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.service.nouns.base import aware
from lodger.engine.store.records import Action
from lodger.engine.store.schema.script_data import outbox
from lodger.engine.sync import Engine
from lodger.engine.testing.clock import BEGIN, FakeClock
from lodger.engine.testing.inline import InlineNode, Pretend
from lodger.sandbox.job import LogLine
from lodger.sandbox.loop_thread import LoopThread

#: Longer than any test's time: no other node is there to take the lease.
LEASE_S = 10.0 * 365 * 86_400
#: What a test wants rather than a service: commits that are not waited for, every second if need be, one worker at hand.
SETTINGS: Mapping[str, Any] = {"sqlite_synchronous": "NORMAL", "min_interval_s": 1, "slots": 4}
#: States of an action that ran to its end.
RAN = ("done", "failed")


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail or webhook in the outbox; a stage sends none.

    Attributes:
        kind: ``mail`` or ``webhook``.
        to: recipients, or the webhook's name.
        about: subject, or the event's name.
        payload: all of it, as the outbox has it.
    """

    kind: str
    to: tuple[str, ...]
    about: str
    payload: dict[str, Any]

    @property
    def text(self) -> str:
        """Text of a mail; empty when it has none."""
        return str(self.payload.get("text") or "")


class Stage:
    """The engine in a test. ``with Stage() as stage: …``; several may stand side by side.

    Scripts run in their real walls, in this very process's workers; nothing leaves: mails and webhooks wait in the outbox. Time
    stands still until :meth:`advance`, and everything that is due then has happened when it returns, in the order of its instants.

    Args:
        at: the instant at which time stands still first; a Monday at 8 o'clock UTC when left out.
        database: a path or URL of a ledger; a fresh one that goes with the stage when left out.
        pretend: Python functions in place of scripts, by the scripts' names; each is given the params and gives the result. No
            walls are needed then.
        way_out: sends the requests of scripts in place of the network's client, such as
            :class:`lodger.engine.testing.recordings.Recordings`.
        on_log: called with each line that a script writes, as it arrives, in the stage's thread.
        settings: those of :class:`lodger.engine.core.settings.Settings`, by name.

    Raises:
        Unavailable: this host cannot raise the walls.
    """

    def __init__(
        self,
        *,
        at: datetime = BEGIN,
        database: str | None = None,
        pretend: Pretend | None = None,
        way_out: WayOut | None = None,
        on_log: Callable[[Claim, LogLine], None] | None = None,
        **settings: Any,
    ) -> None:
        self.clock = FakeClock(at)
        self._database = database
        self._pretend = pretend
        self._way_out = way_out
        self._on_log = on_log
        wanted = Settings(**{**SETTINGS, "check_scripts": pretend is None, **settings})
        # drain_s: time stands while the stage ends, so that an attempt which still runs is not waited for; ahead_s: it stands
        # while the stage settles, so that an attempt which waits until it is due would never begin.
        fixed = {"lease_s": LEASE_S, "drain_s": 0.0, "ahead_s": 0.0}
        self._settings = wanted.model_copy(update=fixed)
        self.events: list[Event] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            where = self._database
            if where is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lodger-stage-"))
                where = f"{folder}/ledger.db"
            #: The engine, to be asked and told like any other.
            self.engine = stack.enter_context(Engine.open(where, clock=self.clock, settings=self._settings))
            stack.callback(self.engine.on_event(self.events.append))
            self._thread = LoopThread("lodger-stage")
            stack.callback(self._thread.close)
            stack.callback(lambda: self._thread.run(self._thread.loop.shutdown_default_executor()))
            self._node = InlineNode(self.engine.host, self.clock, self._pretend, self._way_out, self._on_log)
            stack.callback(lambda: self._thread.run(self._node.stop()))
            self._thread.run(self._node.start())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    # ---- time

    @property
    def now(self) -> datetime:
        """Return the stage's instant, UTC."""
        return self.clock.now

    def next_due(self, until: datetime) -> datetime | None:
        """Return the next instant after now, up to another, at which something comes due; None if there is none.

        Raises:
            InputError: instant_naive.
        """
        aware(until)
        found = self._thread.run(self._node.next_due(to_us(until)))
        return from_us_or_none(found)

    def settle(self) -> None:
        """Run everything that is due now.

        Raises:
            TimeoutError: an attempt has not ended a minute after its wall limit; the message names it.
        """
        self._thread.run(self._node.settle())

    def advance(self, by: timedelta | str) -> None:
        """Let time pass, and everything happen that comes due on the way, at its own instant.

        Args:
            by: a timedelta, or a text such as ``"90s"``, ``"1h30m"``, ``"PT15M"``.

        Raises:
            InputError: what is wrong with the text.
        """
        us = parse_duration(by) if isinstance(by, str) else by // timedelta(microseconds=1)
        self._thread.run(self._node.advance(self.clock.now_us() + us))

    def advance_to(self, instant: datetime) -> None:
        """Let time pass until an instant.

        Raises:
            InputError: instant_naive.
            ValueError: that is past already.
        """
        aware(instant)
        if instant < self.now:
            raise ValueError(
                f"{instant.isoformat()} is in the past: the clock shows {self.now.isoformat()}, and cannot go back"
            )
        self._thread.run(self._node.advance(to_us(instant)))

    # ---- what came of it

    def actions(self, tenant_id: str, schedule: str | None = None) -> list[Action]:
        """Return the actions of a tenant, or of one of its schedules, in the order in which they were due."""
        found = self.engine.actions.list(tenant_id, schedule, limit=None)
        return sorted(found, key=lambda action: (action.due_at, action.id))

    def sent(self, tenant_id: str) -> list[Sent]:
        """Return the mails and webhooks that a tenant's runs asked for, in the order of asking."""
        statement = sa.select(outbox).where(outbox.c.tenant_id == tenant_id)
        with self.engine.context.database.read() as connection:
            rows = connection.execute(statement.order_by(outbox.c.created_us, outbox.c.step, outbox.c.n)).all()
        made = []
        for row in rows:
            payload = json.loads(row.payload)
            mail = row.kind == "mail"
            to = tuple(payload.get("to", ())) if mail else (row.target,)
            made.append(Sent(row.kind, to, str(payload.get("subject" if mail else "type", "")), payload))
        return made

    def documents(self, tenant_id: str, collection: str) -> list[dict[str, Any]]:
        """Return the documents of a tenant's collection, each with its ``id``, ordered by it."""
        from lodger.engine.store.schema.script_data import documents

        mine = (documents.c.tenant_id == tenant_id, documents.c.collection == collection)
        with self.engine.context.database.read() as connection:
            rows = connection.execute(sa.select(documents).where(*mine).order_by(documents.c.id)).all()
        return [{"id": row.id, **json.loads(row.body)} for row in rows]

    # ---- what should have come of it

    def assert_ran(
        self, tenant_id: str, schedule: str | None = None, *, times: int | None = None, outcome: str = "ok"
    ) -> Action:
        """Assert that all runs of a schedule (of the tenant when left out) ended so, and how many; return the last.

        Args:
            times: exactly so many; at least one when left out.
            outcome: a word of :class:`lodger.sandbox.Outcome`.

        Raises:
            AssertionError: with what happened instead, the author's line and the last log lines.
        """
        found = self.actions(tenant_id, schedule)
        ran = [action for action in found if action.state in RAN]
        what = f"runs of {tenant_id}" if schedule is None else f"runs of {tenant_id}'s {schedule}"
        for action in ran:
            if action.outcome != outcome:
                self._fail(f"one of the {what} ended {action.outcome}, not {outcome}", [action])
        if not ran or (times is not None and len(ran) != times):
            wanted = "at least one" if times is None else times
            self._fail(f"expected {wanted} {what}, found {len(ran)}", found)
        return ran[-1]

    def assert_not_run(self, tenant_id: str, schedule: str | None = None) -> None:
        """Assert that nothing of a schedule, or of a tenant, has run.

        Raises:
            AssertionError: with what ran.
        """
        ran = [action for action in self.actions(tenant_id, schedule) if action.state in RAN]
        if ran:
            self._fail(f"expected no runs of {tenant_id}", ran)

    def assert_mailed(self, tenant_id: str, *, to: str | None = None, about: str | None = None) -> Sent:
        """Assert that a tenant's runs asked for a mail; return the first that matches.

        Args:
            to: one of its recipients.
            about: part of its subject.

        Raises:
            AssertionError: with the mails that there are.
        """
        mails = [each for each in self.sent(tenant_id) if each.kind == "mail"]
        for mail in mails:
            if (to is None or to in mail.to) and (about is None or about in mail.about):
                return mail
        there = "".join(f"\n  to {', '.join(mail.to)}: {mail.about}" for mail in mails) or "\n  none"
        raise AssertionError(
            f"expected a mail of {tenant_id} to {to or 'any address'} with {about or 'any text'!r} in its subject, found:{there}"
        )

    def _fail(self, what: str, actions: list[Action]) -> NoReturn:
        """Raise an AssertionError that lists the last actions."""
        lines = [what + (":" if actions else "; the ledger has no action")]
        for action in actions[-5:]:
            lines.append(f"  due {action.due_at.isoformat()}: {action.state} {action.outcome or action.reason or ''}")
            if action.error is not None:
                place = f" ({action.error.file}:{action.error.line})" if action.error.line else ""
                lines.append(f"    {action.error.name}: {action.error.message}{place}")
            with suppress(Exception):
                lines += [f"    {line.level}: {line.text}" for line in self.engine.actions.logs(None, action.id)[-5:]]
        raise AssertionError("\n".join(lines))
