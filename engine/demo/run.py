"""One run of the demo: ledger, node, walls and mailbox, from set-up to summary."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Row, inspect

from lodger.engine import Engine, sync
from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.clock import Clock, SystemClock, from_us
from lodger.engine.core.settings import Settings, load
from lodger.engine.demo.cast import CAST, OFF_DAYS, ONCE_AFTER_S
from lodger.engine.demo.demo_feed import Feed
from lodger.engine.demo.shops import SHOPS, carts, customers, fill, orders, products, tickets
from lodger.engine.demo.summary import summarise
from lodger.engine.node.outbox.sender import Sender
from lodger.engine.store.connection.database import Database
from lodger.engine.web import dashboard_link
from lodger.sandbox.runtimes.js.artefact import ensure


def set_up(engine: sync.Engine) -> dict[str, int]:
    """Fill the ledger, or continue the set-up of an earlier run; return the numbers of new rows by table, none if it was filled."""
    now = from_us(engine.context.clock.now_us())
    rows: dict[str, int] = {}
    with engine.context.database.write() as connection:
        if not inspect(connection).has_table(customers.name):
            rows = fill(connection, now)
    known = {tenant.id for tenant in engine.tenants.list()}
    for shop in SHOPS:
        if shop.id not in known:
            engine.tenants.create(
                shop.id, name=shop.name, grants=["sets:write", "mail:*@mail.example"], people=[shop.manager]
            )
    bound = {(schedule.tenant_id, schedule.name) for schedule in engine.schedules.list()}
    for part in CAST:
        engine.scripts.put(part.shop, part.script, part.source())
        if part.rule is None:
            engine.run_at(part.shop, part.script, now + timedelta(seconds=ONCE_AFTER_S), part.params)
        elif (part.shop, part.name) not in bound:
            engine.schedules.create(
                part.shop,
                part.name,
                script=part.script,
                rules=part.rule,
                tz=part.tz,
                missed=part.missed,
                params=part.params or None,
                limits=part.limits or None,
                first_after=now - timedelta(days=OFF_DAYS),
            )
    return rows


#: How often the outbox is emptied.
POLL_S = 0.5


class Mailbox(Sender):
    """A sender without a server: a line for each mail.

    Args:
        write: prints one line.
    """

    name: ClassVar[str] = "mail"
    effect: ClassVar[str] = "mail"
    lanes: ClassVar[int] = 4
    each: ClassVar[int] = 10
    poll_s = POLL_S

    def __init__(self, database: Database, clock: Clock, write: Callable[[str], None]) -> None:
        super().__init__(database, clock)
        self._write = write

    async def deliver(self, rows: list[Row[Any]]) -> None:
        """Write a line for each mail, and mark it as sent."""
        for row in rows:
            mail = json.loads(row.payload)
            self._write(f"mail    to {', '.join(mail['to'])}: {mail['subject']}")
            await self.mark(row, None)


#: How often the schedules are read.
LOOK_S = 0.25
#: The demo's live slots come every few seconds: an older one was missed.
MISSED_AFTER_S = 2.0
#: What ends a run in order; SIGHUP is the terminal's window being closed.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DATABASE = "ledger.db"


def expose(engine: Engine) -> None:
    """Expose the shops' tables to scripts as ``db.NAME``."""
    engine.expose(customers, tenant_column="shop")
    engine.expose(products, tenant_column="shop", write=["sale_cents"], insert=False, delete=False)
    engine.expose(orders, tenant_column="shop", write=["state"], insert=False, delete=False)
    engine.expose(carts, tenant_column="shop", write=["state"], insert=False, delete=False)
    engine.expose(tickets, tenant_column="shop", write=["state", "answered"], insert=False, delete=False)


async def play(
    folder: Path, for_s: float | None, say: Callable[[str], None], *, serve: bool, dashboard: bool
) -> dict[str, Any]:
    """Play the demo to its end, and return the summary.

    Args:
        folder: where the ledger is, or is made.
        for_s: seconds until it ends by itself; None runs until it is interrupted.
        say: prints a line.
        serve: whether engine and dashboard stay up after that, until interrupted.
        dashboard: whether the dashboard is served.
    """
    clock, settings = (
        SystemClock(),
        load(database=str(folder / DATABASE), missed_after_s=MISSED_AFTER_S, min_interval_s=1, api_port=0),
    )
    await asyncio.to_thread(ensure, settings.cache_dir, progress=say)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine.open(settings.database, clock=clock, settings=settings))
        rows = await asyncio.to_thread(set_up, engine.inner)
        new = f"Two shops with {', '.join(f'{count} {name}' for name, count in rows.items())}."
        off = f"The engine was off for {OFF_DAYS} days and starts now."
        say(f"{new} {off}" if rows else f"Continuing with the ledger in {folder}.")
        if dashboard:
            await _dashboard(stack, engine, say)
        begun = from_us(clock.now_us())
        async with _at_work(engine, say, settings) as feed:
            interrupted = await _watch(feed, clock, for_s)
            if serve and not interrupted:
                say("The engine and its dashboard stay up; Ctrl-C ends them.")
                await _watch(feed, clock, None)
        return await asyncio.to_thread(summarise, engine.inner, begun, from_us(clock.now_us()), feed.late_ms)


async def _dashboard(stack: AsyncExitStack, engine: Engine, say: Callable[[str], None]) -> None:
    """Serve the dashboard on a free port, and print its address, on a terminal the link that signs in once."""
    try:
        from lodger.engine.server.server import Server
    except ModuleNotFoundError:
        say(dashboard_link.MISSING)
        return
    server = Server(engine.inner)
    if not dashboard_link.add_dashboard(server.api):
        say(dashboard_link.MISSING)
        return
    await server.start()
    stack.push_async_callback(server.stop)
    with audit_as(via="cli"):
        await asyncio.to_thread(engine.inner.tokens.first, "demo")
    if not dashboard_link.shows_secrets():
        place = engine.context.settings.database
        say(
            f"Its dashboard: {server.url}/. To print a link that signs in once: lodger token link --db {place} --url {server.url}"
        )
        return
    found = await asyncio.to_thread(dashboard_link.link, engine.inner, server.url)
    say(f"Its dashboard, signed in once by this link for 15 minutes: {found}")


@asynccontextmanager
async def _at_work(engine: Engine, say: Callable[[str], None], settings: Settings) -> AsyncIterator[Feed]:
    """Start the mailbox and the node; when the block ends, the mails of the last runs are still sent."""
    expose(engine)
    sources = {(part.shop, part.script): part.source() for part in CAST}
    feed = Feed(engine, say, sources, settings.missed_after_s)
    mailbox = Mailbox(engine.context.database, engine.context.clock, say)
    try:
        await feed.look()
        await mailbox.start()
        async with engine.node(name="demo", deliver=False):
            yield feed
        while await mailbox.send_due():
            pass
    finally:
        await mailbox.stop()
        feed.stop()


async def _watch(feed: Feed, clock: Clock, for_s: float | None) -> bool:
    """Write the schedules' next slots until the time is over or a signal comes; return whether one came."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDS:
        loop.add_signal_handler(number, interrupted.set)
    begun = clock.elapsed_s()
    try:
        while not interrupted.is_set() and (for_s is None or clock.elapsed_s() - begun < for_s):
            await feed.look()
            left = LOOK_S if for_s is None else min(LOOK_S, for_s - (clock.elapsed_s() - begun))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(interrupted.wait(), max(0.0, left))
        await feed.look()
        return interrupted.is_set()
    finally:
        for number in _ENDS:
            loop.remove_signal_handler(number)
