"""Changes as they happen, in this process and others: a tenant's actions, or one action with its log lines.

Each change has an id; a stream that is opened with the last one continues after it. :func:`live` serves one reader in a
thread, :class:`LiveChanges` any number of readers of an event loop: one query serves all streams of a tenant, and a stream of one action
reads its stamp until that changes.
"""

import asyncio
import re
import secrets
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from lodger.engine.core.errors import NotFound, Unavailable
from lodger.engine.store import short_ids
from lodger.engine.store.actions import actions
from lodger.engine.store.actions.action_stream import MAX_ACTIONS, ActionStream, ChangeStamp, change_stamp
from lodger.engine.store.lifecycle.running_lines import LogStream, Place
from lodger.engine.store.records import Action
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.store.tenants import tenants
from lodger.sandbox.job import LogLine

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

#: Seconds between two looks at the ledger; writes of this process cause a look at once.
POLL_S = 0.5
#: Least seconds between two looks.
MIN_GAP_S = 0.05
#: Changes that wait for a reader, and that a reader that comes back can be sent again; one that falls further behind is cut.
MAX_WAITING = 1000
#: Seconds for which the changes of a tenant without readers are known.
LINGER_S = 60.0
_OF_ACTION = re.compile(r"(.{36})\.(\d{1,6})\.(\d{1,9})\.(\d{1,9})\.([a-z_]{1,16})\.(\d{1,9})\.(\d{1,6})", re.ASCII)
_OF_TENANT = re.compile(r"([0-9a-f]{8})\.(\d{1,18})\.(\d{1,18})", re.ASCII)
Read = Callable[[Callable[[Connection], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        id: continues the stream after this change.
        value: None at the begin of a stream that has nothing to send yet.
    """

    id: str
    value: Action | LogLine | None


class FollowedAction:
    """One action with its log lines.

    Args:
        action_id: the whole id, or a part of it as :mod:`lodger.engine.store.short_ids` reads it.
        after: id of the last known change; None, or one of another stream, for everything.
    """

    def __init__(self, tenant_id: str, action_id: str, after: str | None = None) -> None:
        self._tenant_id = tenant_id
        self._asked = action_id
        self._after = _OF_ACTION.fullmatch(after or "")
        self._log: LogStream | None = None
        self._line: Place = (0, 0, 0)
        self._mark = ("none", 0, 0)
        #: Whether the action has ended.
        self.over = False

    def look(self, connection: Connection) -> list[Change]:
        """Return the changes since the last look."""
        if self._log is None:
            self._log = self._begin(short_ids.action_id(connection, self._tenant_id, self._asked))
        found = actions.get(connection, self._log.action_id, self._tenant_id)
        changes = []
        for place, line in self._log.poll(connection):
            self._line = place
            changes.append(Change(self._id(), line))
        mark = (found.state, found.attempt, found.step)
        if mark != self._mark:
            self._mark = mark
            changes.append(Change(self._id(), found))
        self.over = found.state not in OPEN
        return changes

    def _begin(self, action_id: str) -> LogStream:
        """Open the log of an action at the position of the last event."""
        after = self._after
        if after is not None and after[1] == action_id:
            self._line = (int(after[2]), int(after[3]), int(after[4]))
            self._mark = (after[5], int(after[6]), int(after[7]))
        return LogStream(self._tenant_id, action_id, self._line)

    def _id(self) -> str:
        """Return the id of the last event: action and position in its log."""
        assert self._log is not None
        return ".".join(str(each) for each in (self._log.action_id, *self._line, *self._mark))


class FollowedTenant:
    """The actions of a tenant that are created or change from now on."""

    over = False

    def __init__(self, tenant_id: str, now_us: Callable[[], int]) -> None:
        self.tenant_id = tenant_id
        self._now_us = now_us
        self._stream = ActionStream(tenant_id)
        #: Begin of the last look; 0 before the first.
        self.looked_us = 0

    def look(self, connection: Connection) -> list[Change]:
        """Return the changes since the last look; none at the first."""
        tenants.get(connection, self.tenant_id)
        now_us, changed = self._now_us(), []
        if self.looked_us:
            changed = self._stream.poll(connection)
        else:
            self._stream.start(connection, now_us)
        self.looked_us = now_us
        return [Change(each.id, each) for each in changed]

    def missed(self, connection: Connection, since_us: int) -> list[Action]:
        """Return the actions that are new, are not finished or have finished since an instant, by id."""
        return self._stream.missed(connection, since_us)


def live(engine: "Engine", tenant_id: str, action_id: str | None) -> Iterator[Action | LogLine]:
    """Yield changes; see :meth:`lodger.engine.sync.Engine.live`."""
    followed: FollowedTenant | FollowedAction
    if action_id is None:
        followed = FollowedTenant(tenant_id, engine.context.clock.now_us)
    else:
        followed = FollowedAction(tenant_id, action_id)
    woken = threading.Event()
    unsubscribe = engine.watch(woken.set)
    try:
        while True:
            with engine.context.database.read() as connection:
                changes = followed.look(connection)
            yield from (each.value for each in changes if each.value is not None)
            if followed.over:
                return
            woken.wait(POLL_S)
            woken.clear()
    finally:
        unsubscribe()


class _Timer:
    """The time until the next look at whether a reader may go on."""

    def __init__(self, every_s: float) -> None:
        self._time = asyncio.get_running_loop().time
        self._every_s = every_s
        self._end_s = self._time() + every_s

    def is_over(self) -> bool:
        """Whether the time is over; if it is, the timer starts again."""
        over = self._end_s <= self._time()
        if over:
            self._end_s = self._time() + self._every_s
        return over

    async def wait(self, moved: asyncio.Event) -> None:
        """Wait for a change, or until the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._end_s):
                await moved.wait()


@dataclass(slots=True)
class _Channel:
    """The readers of one tenant, the task that looks for all of them, and the last changes with their numbers.

    Attributes:
        moved: set, and followed by another, when there are changes or the channel is over.
        left_s: when the last reader left.
    """

    followed: FollowedTenant
    name: str = field(default_factory=lambda: secrets.token_hex(4))
    readers: int = 0
    task: asyncio.Task[None] | None = None
    begun: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    number: int = 0
    last: deque[Change] = field(default_factory=lambda: deque(maxlen=MAX_WAITING))
    over: bool = False
    left_s: float = 0.0

    def id(self) -> str:
        """Return the id of the latest change: name of the channel, number of the change, and instant of the look that found it."""
        return f"{self.name}.{self.number}.{self.followed.looked_us}"

    def add(self, found: list[Change]) -> None:
        """Number changes, keep them for readers, and tell these."""
        for change in found:
            self.number += 1
            self.last.append(Change(self.id(), change.value))
        if found:
            self.tell()

    def tell(self) -> None:
        """Wake the readers."""
        self.moved.set()
        self.moved = asyncio.Event()

    def keeps(self, number: int) -> bool:
        """Whether all changes after the numbered one are kept."""
        return 0 <= self.number - number <= len(self.last)


class LiveChanges:
    """Streams of changes for the readers of one event loop.

    A stream yields None once in ``every_s`` seconds, however many changes there are, so that its reader can be checked.

    Args:
        read: runs a function of a connection in a thread.
    """

    def __init__(self, engine: "Engine", read: Read) -> None:
        self._engine = engine
        self._clock = engine.context.clock
        self._read = read
        self._channels: dict[str, _Channel] = {}

    async def tenant(self, tenant_id: str, every_s: float, after: str | None = None) -> AsyncGenerator[Change | None]:
        """Yield the changes of a tenant's actions: from now on, first a change without value, or after a known one.

        Where the changes after a known one are not known in this process, the present state of each action is sent
        that has changed since, or is not finished.

        Raises:
            NotFound: tenant_unknown.
        """
        channel = self._opened(tenant_id)
        channel.readers += 1
        try:
            await asyncio.shield(channel.begun)
            begin, number = channel.id(), channel.number
            first = []
            known = _OF_TENANT.fullmatch(after or "")
            if known is not None and known[1] == channel.name and channel.keeps(int(known[2])):
                begin, number = known[0], int(known[2])
            elif known is not None:
                found = await self._read(partial(channel.followed.missed, since_us=int(known[3])))
                first = [Change(known[0], each) for each in found[:-1]] + [Change(begin, each) for each in found[-1:]]
            for change in first or [Change(begin, None)]:
                yield change
            timer = _Timer(every_s)
            while True:
                if timer.is_over():
                    yield None
                if number < channel.number and channel.keeps(number):
                    number += 1
                    yield channel.last[number - channel.number - 1]
                elif number < channel.number or channel.over:
                    return
                else:
                    await timer.wait(channel.moved)
        finally:
            channel.readers -= 1
            if not channel.readers and channel.task is not None:
                channel.task.cancel()
                channel.task, channel.left_s = None, self._clock.elapsed_s()

    async def action(
        self, tenant_id: str, action_id: str, every_s: float, after: str | None = None
    ) -> AsyncGenerator[Change | None]:
        """Yield an action with its log lines, as they are written while an attempt runs, until it has ended.

        Nothing is queued for a slow reader: unread lines are read from the ledger when it goes on.

        Args:
            action_id: the whole id.

        Raises:
            NotFound: action_unknown.
        """
        followed, seen = FollowedAction(tenant_id, action_id, after), None

        def read_changes(connection: Connection) -> tuple[ChangeStamp | None, list[Change]]:
            """Return the action's stamp, and what has changed since the last look: nothing under the same stamp."""
            # The stamp first: a change in between is looked at twice and sent once.
            stamp = change_stamp(connection, tenant_id, action_id)
            return stamp, [] if stamp is not None and stamp == seen else followed.look(connection)

        timer = _Timer(every_s)
        while True:
            if timer.is_over():
                yield None
            changes: list[Change] = []
            try:
                seen, changes = await self._read(read_changes)
            except Unavailable:
                if seen is None:
                    raise
            for change in changes:
                yield change
            if followed.over:
                return
            await self._wait()

    def _opened(self, tenant_id: str) -> _Channel:
        """Return the channel of a tenant with a running task that looks for changes; channels that were unused for LINGER_S are
        dropped."""
        now_s = self._clock.elapsed_s()
        for each, channel in list(self._channels.items()):
            if channel.task is None and channel.left_s < now_s - LINGER_S:
                del self._channels[each]
        channel = self._channels.setdefault(tenant_id, _Channel(FollowedTenant(tenant_id, self._clock.now_us)))
        if channel.task is None:
            channel.begun = asyncio.get_running_loop().create_future()
            channel.task = asyncio.create_task(self._look(channel), name=f"lodger-live-{tenant_id}")
        return channel

    async def _look(self, channel: _Channel) -> None:
        """Read the changes of a tenant's actions for all readers of its channel."""
        try:
            more = True
            while more:  # after a pause there may be more than one look reads
                found = await self._read(channel.followed.look)
                more = len(found) >= MAX_ACTIONS
                channel.add(found)
            channel.begun.set_result(None)
            while True:
                await self._wait()
                with suppress(Unavailable):  # the database is unavailable: at the next time
                    channel.add(await self._read(channel.followed.look))
        except Exception as error:
            if not channel.begun.done():
                channel.begun.set_exception(error)
            elif not isinstance(error, NotFound):  # the tenant was deleted
                raise
        finally:
            if channel.task is asyncio.current_task():  # ended by a fault or with its tenant
                self._channels.pop(channel.followed.tenant_id, None)
                channel.over = True
                channel.tell()

    async def _wait(self) -> None:
        """Wait for a write of this process, or for the interval of looks."""
        await asyncio.sleep(MIN_GAP_S)  # one look serves many writes of a moment
        woken, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake_loop() -> None:
            """Wake the event loop's waiting task; a closed loop is left alone."""
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(woken.set)

        forget = self._engine.watch(wake_loop)
        try:
            async with asyncio.timeout(POLL_S):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            forget()


async def live_async(
    engine: "Engine", tenant_id: str, action_id: str | None, read: Read
) -> AsyncGenerator[Action | LogLine]:
    """Yield changes without occupying a thread between looks."""
    changes = LiveChanges(engine, read)
    if action_id is None:
        stream = changes.tenant(tenant_id, LINGER_S)
    else:
        whole = await read(partial(short_ids.action_id, tenant_id=tenant_id, given=action_id))
        stream = changes.action(tenant_id, whole, LINGER_S)
    async with aclosing(stream):
        async for change in stream:
            if change is not None and change.value is not None:
                yield change.value
