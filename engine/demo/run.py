"""One run of the demo: ledger, node, walls, mailbox and viewer, from set-up to summary."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from lodger.engine import Engine
from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.clock import Clock, from_us
from lodger.engine.core.settings import Settings, load
from lodger.engine.demo.cast import CAST, OFF_DAYS
from lodger.engine.demo.demo_feed import Feed
from lodger.engine.demo.mailbox import Mailbox
from lodger.engine.demo.setup import Stage, set_up
from lodger.engine.demo.story import Story
from lodger.engine.demo.summary import Summary, summarise
from lodger.engine.demo.tables import carts, customers, orders, products, tickets
from lodger.engine.node.outbox.mailer import Mailer, MailServer
from lodger.engine.web import dashboard_link
from lodger.sandbox.runtimes.js.artefact import ensure

#: How often the viewer is drawn anew and the schedules are read.
DRAW_S = 0.25
#: How often the outbox is emptied.
MAIL_S = 0.5
#: The demo's live slots come every few seconds: an older one was missed.
MISSED_AFTER_S = 2.0
#: What ends a run in order; SIGHUP is the terminal's window being closed.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SENDER = "shops@lodger.example"
DATABASE = "ledger.db"


class Viewer(Protocol):
    """What shows the story."""

    def refresh(self) -> None:
        """Draw the present state."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a run.

    Attributes:
        folder: where the ledger is, or is made.
        for_s: seconds until it ends by itself; None runs until it is interrupted.
        serve: whether engine and dashboard stay up after that, until interrupted.
        dashboard: whether the dashboard is served.
    """

    folder: Path
    for_s: float | None
    serve: bool = False
    dashboard: bool = False


def expose(engine: Engine) -> None:
    """Expose the shops' tables to scripts as ``db.NAME``."""
    engine.expose(customers, tenant_column="shop")
    engine.expose(products, tenant_column="shop", write=["sale_cents"], insert=False, delete=False)
    engine.expose(orders, tenant_column="shop", write=["state"], insert=False, delete=False)
    engine.expose(carts, tenant_column="shop", write=["state"], insert=False, delete=False)
    engine.expose(tickets, tenant_column="shop", write=["state", "answered"], insert=False, delete=False)


async def play(
    plan: Plan,
    clock: Clock,
    say: Callable[[str], None],
    viewer: Callable[[Story, Callable[[], datetime]], contextlib.AbstractContextManager[Viewer]],
) -> Summary:
    """Run the demo.

    Args:
        say: called with a sentence about each preparation.
        viewer: creates the viewer; entered when the engine starts, left before the summary.
    """

    def now() -> datetime:
        return from_us(clock.now_us())

    settings = load(database=str(plan.folder / DATABASE), missed_after_s=MISSED_AFTER_S, min_interval_s=1, api_port=0)
    await asyncio.to_thread(ensure, settings.cache_dir, progress=say)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine.open(settings.database, clock=clock, settings=settings))
        story = Story(begun=now())
        mailbox = await stack.enter_async_context(Mailbox(story.tell))
        stage = await asyncio.to_thread(set_up, engine.inner)
        say(_prepared(stage, plan))
        if plan.dashboard:
            story.dashboard = await _dashboard(stack, engine, say)
        story.begun = now()
        story.ends = None if plan.for_s is None else story.begun + timedelta(seconds=plan.for_s)
        async with _at_work(engine, story, mailbox, settings) as feed:
            with viewer(story, now) as drawn:
                interrupted = await _watch(feed, drawn, clock, plan.for_s)
            if plan.serve and not interrupted:
                say("The engine and its dashboard stay up; Ctrl-C ends them.")
                await _watch(feed, None, clock, None)
        return await asyncio.to_thread(summarise, engine.inner, story.begun, now(), feed.late_ms)


async def _dashboard(stack: AsyncExitStack, engine: Engine, say: Callable[[str], None]) -> str | None:
    """Serve the dashboard on a free port; return its address, on a terminal the link that signs in once; None without the extra for it."""
    try:
        from lodger.engine.server.server import Server
    except ModuleNotFoundError:
        say(dashboard_link.MISSING)
        return None
    server = Server(engine.inner)
    if not dashboard_link.add_dashboard(server.api):
        say(dashboard_link.MISSING)
        return None
    await server.start()
    stack.push_async_callback(server.stop)
    with audit_as(via="cli"):
        await asyncio.to_thread(engine.inner.tokens.first, "demo")
    if not dashboard_link.shows_secrets():
        place = engine.context.settings.database
        say(
            f"Its dashboard: {server.url}/. To print a link that signs in once: lodger token link --db {place} --url {server.url}"
        )
        return server.url
    found = await asyncio.to_thread(dashboard_link.link, engine.inner, server.url)
    say(f"Its dashboard, signed in once by this link for 15 minutes: {found}")
    return found


def _prepared(stage: Stage, plan: Plan) -> str:
    if not stage.fresh:
        return f"Continuing with the ledger in {plan.folder}."
    rows = ", ".join(f"{count} {name}" for name, count in stage.rows.items())
    return f"Two shops with {rows}. The engine was off for {OFF_DAYS} days and starts now."


@asynccontextmanager
async def _at_work(engine: Engine, story: Story, mailbox: Mailbox, settings: Settings) -> AsyncIterator[Feed]:
    context = engine.context
    expose(engine)
    mailer = Mailer(
        context.database, MailServer(mailbox.host, mailbox.port, sender=SENDER), context.clock, poll_s=MAIL_S
    )
    sources = {(part.shop, part.script): part.source() for part in CAST}
    feed = Feed(engine, story, sources, settings.missed_after_s)
    try:
        await feed.look()
        await mailer.start()
        async with engine.node(name="demo", deliver=False):
            yield feed
        # What the last runs put into the outbox goes out before the curtain falls.
        while await mailer.round():
            pass
    finally:
        await mailer.stop()
        feed.stop()


async def _watch(feed: Feed, drawn: Viewer | None, clock: Clock, for_s: float | None) -> bool:
    """Draw until the time is over or the user interrupts; return whether it was the user."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDS:
        loop.add_signal_handler(number, interrupted.set)
    begun = clock.elapsed_s()
    try:
        while not interrupted.is_set() and (for_s is None or clock.elapsed_s() - begun < for_s):
            await feed.look()
            if drawn is not None:
                drawn.refresh()
            left = DRAW_S if for_s is None else min(DRAW_S, for_s - (clock.elapsed_s() - begun))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(interrupted.wait(), max(0.0, left))
        await feed.look()
        if drawn is not None:
            drawn.refresh()
        return interrupted.is_set()
    finally:
        for number in _ENDS:
            loop.remove_signal_handler(number)
