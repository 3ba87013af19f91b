"""Wakes schedules that follow changes, watches how far feeds can be read, and lets old changes go."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar, TypeVar

from sqlalchemy import Connection, delete
from sqlalchemy.exc import DBAPIError

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import ActionsReady, ChangeReported, LedgerChanged
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.changes import feed
from lodger.engine.data.changes.feed import START, FeedLag
from lodger.engine.data.sets.dataset import Collection, Dataset, database_of
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase, receipts
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.actions import change_triggers
from lodger.engine.store.actions.change_triggers import TriggerResult
from lodger.engine.store.queue import followers, schedule_concurrency
from lodger.engine.store.queue.followers import Follower, Position

T = TypeVar("T")
#: Interval of looks at all followed schedules, reported changes or not: after a failure, a resumption, a start. Seconds.
WHOLE_S = 60.0
#: How often the horizons are looked at, and how long one may be held back before that is told. Seconds.
HORIZON_S, HELD_S = 15.0, 60.0
#: A transaction that arms a schedule may be stored so long after the instant that it writes down, microseconds.
LATE_US = 3_000_000
#: Receipts of steps that were settled long ago.
RECEIPT_DAYS = 30
DAY_US = 86_400_000_000
#: How long recorded changes are kept for scripts that read them.
CHANGES_DAYS = 7
#: Number of schedules that one round looks at closely.
MAX_SCHEDULES = 500


class ChangeFeed(Service):
    """Looks every ``poll_s`` for changes since; requests runs of schedules with unread changes."""

    name: ClassVar[str] = "change-feed"

    def __init__(self, context: NodeContext, datasets: Datasets, process_metrics: ProcessMetrics) -> None:
        super().__init__(context)
        self._datasets = datasets
        self._meters = process_metrics
        self.wake_on(LedgerChanged, ChangeReported)
        self._seen: dict[ForeignDatabase | None, Position] = {}
        self._due: dict[Follower, None] = {}
        self._whole_s = self._watched_s = float("-inf")
        self._bound_us = 0
        self._away: set[ForeignDatabase] = set()

    async def round(self) -> float:
        """Request runs that read new changes, and delete old ones."""
        context, now = self.context, self.clock.elapsed_s()
        if now - self._watched_s >= HORIZON_S:
            self._watched_s = now
            await self._watch()
        if not await context.db.cached_read("followers", followers.ask_any_followers):
            return min(context.idle_s, HORIZON_S)
        if now - self._whole_s >= WHOLE_S:
            self._whole_s = now
            await self._look_at_all()
        else:
            await self._look_at_new(self._bound_us)
            await self._look()
        for follower in list(self._due)[:MAX_SCHEDULES]:
            if await self._over(follower):
                self._due.pop(follower, None)
        return context.settings.poll_s

    def _databases(self) -> list[ForeignDatabase | None]:
        """Return the ledger's database (None) and the platform's."""
        return [None, *self._datasets.databases]

    async def _tried(self, database: ForeignDatabase | None, work: Callable[[Connection], T]) -> T | None:
        """Query a database of the platform; None if it is unreachable or not prepared, which stops no other feed."""
        try:
            answer = await (self.context.db.read(work) if database is None else database.ask(work))
        except (DBAPIError, CallRefused) as error:
            if database is None:
                raise
            if database not in self._away:
                self._away.add(database)
                said = str(error.orig).strip().splitlines()[0] if isinstance(error, DBAPIError) else error.message
                self.fault(Unavailable("feed_unreadable", place=database.place, reason=said))
            return None
        if database is not None:
            self._away.discard(database)
        return answer

    async def _look_at_all(self) -> None:
        """Look for unread changes of all followed schedules."""
        for database in self._databases():
            end = await self._tried(database, feed.end)
            if end is not None:
                self._seen[database] = end
        await self._look_at_new(None)

    async def _look_at_new(self, since_us: int | None) -> None:
        """Have the schedules looked at that were bound or armed since an instant, which slow transactions may have stored only now."""
        self._bound_us = self.clock.now_us() - LATE_US
        for follower in await self.context.db.read(partial(followers.list_followers, since_us=since_us)):
            self._due[follower] = None

    async def _look(self) -> None:
        """Look for changes in each database, and request the runs that read them."""
        for database in self._databases():
            news = await self._tried(database, partial(feed.news, after=self._seen.get(database, START)))
            if news is None or not news.feeds:
                continue
            self._seen[database] = news.position
            names: dict[str, set[str]] = {}
            for source, owner in news.feeds:
                for name in self._names(database, source):
                    names.setdefault(name, set()).add(owner)
            for name, owners in names.items():
                rows = self._datasets.named(name)
                # The owner of documents is the tenant; others may follow a collection of the same name.
                tenant_ids = owners if isinstance(rows, Collection) else None
                found = partial(followers.list_followers, name=name, tenant_ids=tenant_ids)
                for follower in await self.context.db.read(found):
                    if _owner(rows, follower.tenant_id) in owners:
                        self._due[follower] = None

    def _names(self, database: ForeignDatabase | None, source: str) -> list[str]:
        """Return the names of the datasets that show the rows of a feed's source."""
        kind, _, name = source.partition(":")
        if kind == "collection":
            return [name]
        return [rows.name for rows in self._datasets if rows.database is database and feed.source_of(rows) == source]

    async def _over(self, follower: Follower) -> bool:
        """Request a run of a schedule if it has unread changes; return False if it must be looked at again even without a new change."""
        context, rows = self.context, self._datasets.named(follower.name)
        if await context.db.read(partial(schedule_concurrency.has_unfinished, schedule_id=follower.schedule_id)):
            return False
        owner = _owner(rows, follower.tenant_id)
        if owner is None or not feed.kept(rows):
            return True
        source = feed.source_of(rows)
        mine = follower.schedule_id
        at = await context.db.read(
            partial(followers.position, tenant_id=follower.tenant_id, consumer=mine, source=source)
        )
        before = await context.db.read(partial(followers.last_requested, follower=follower))
        after = max(at or START, before or START)
        # Asked first: a run that is asked for now reads at least that far.
        until = await self._tried(database_of(rows), feed.end)
        read = partial(feed.read, source=source, owner=owner, after=after, limit=1, consumer=mine)
        found = await self._tried(database_of(rows), read)
        if until is None or found is None or not (found.changes or found.more):
            return True
        until = max(until, found.position)
        wake = partial(change_triggers.request_run, context.store, follower=follower, before=before, until=until)
        woken = await context.db.write(partial(wake, now_us=self.clock.now_us()))
        if woken is TriggerResult.ASKED:
            context.bus.publish(ActionsReady())
        return woken is not TriggerResult.BUSY

    async def _watch(self) -> None:
        """Read how far each feed can be read, report a feed that is held back, and delete changes that are too old."""
        context, now_us = self.context, self.clock.now_us()
        before = now_us - CHANGES_DAYS * DAY_US
        for database in self._databases():
            held = await self._tried(database, feed.horizon)
            if held is not None:
                self._tell_horizon("ledger" if database is None else database.place, held, now_us)
            if database is None:
                await context.db.write(partial(feed.forget, before_us=before))
            elif held is not None and await self._tried(database, database.receives):
                await asyncio.to_thread(self._tidy, database, before, now_us - RECEIPT_DAYS * DAY_US)

    def _tell_horizon(self, place: str, held: FeedLag, now_us: int) -> None:
        """Set the metrics of a feed's lag; publish an event if a long transaction holds back its changes."""
        held_s = 0.0 if held.held_us is None else max(0.0, (now_us - held.held_us) / 1_000_000)
        process_metrics = self._meters
        process_metrics.put("lodger_feed_held_seconds", held_s, place)
        process_metrics.put("lodger_feed_held", held.waiting, place)
        if held_s > HELD_S:
            self.context.bus.publish(
                self.context.event("feed_held", place=place, waiting=held.waiting, held_s=held_s, holder=held.holder)
            )

    def _tidy(self, database: ForeignDatabase, before_us: int, receipts_us: int) -> None:
        """Delete changes and receipts of before these instants in a database of the platform."""
        try:
            with database.write() as connection:
                feed.forget(connection, before_us)
                connection.execute(delete(receipts).where(receipts.c.made_us < receipts_us))
        except DBAPIError as error:
            self.fault(Unavailable("feed_unreadable", place=database.place, reason=type(error).__name__))


def _owner(rows: Dataset, tenant_id: str) -> str | None:
    """Return the owner of a tenant's changes in a dataset; None if the tenant has no access to it."""
    try:
        return feed.owner_of(rows, tenant_id)
    except CallRefused:  # has no part in it
        return None
