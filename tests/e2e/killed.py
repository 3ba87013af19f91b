"""``python -m tests.e2e.killed URL PLACE KILLS``: runs a script again and again and kills its node with SIGKILL each time.

Each time before another statement of the commit, counted from the end of the script: seal, apply and settle when PLACE is a
database of the platform's, the one transaction of the ledger when it is ``-``. Then a second node, in a fresh process, brings it to its
end. Prints one line of JSON: how many statements there are, how many kills there were, and what both databases then hold.
Processes are forked from this one, which opens nothing itself.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from tests.node.harness import Signals
from tests.store.platform_database import Player, call, expose, furnish, tenant
from tests.unit.data.shop import customers, orders, platform

from lodger.engine import Engine
from lodger.engine.core.settings import Settings
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.schema.script_data import documents, holds, kv, outbox, sealed

SETTINGS = Settings(sqlite_synchronous="NORMAL", slots=2, concurrent_runs=2, min_interval_s=1, lease_s=1.0, poll_s=0.02)

#: The node that finishes is not to lose its own lease because the machine is busy: it would be run once more each time.
FINISHING = SETTINGS.model_copy(update={"lease_s": 4.0})


async def play(attempt: Attempt) -> None:
    """Make one row of each kind, all carrying the action's id, and count in two places."""
    mine = attempt.claim.action_id
    await call(attempt, "db.insert", set="orders", values={"state": mine[-20:], "items": 1})
    await call(attempt, "db.increment", set="orders", id=1, amounts={"items": 1})
    await call(attempt, "db.insert", set="notes", values={"of": mine})
    await call(attempt, "kv.add", key="n", amount=1)
    await call(attempt, "mail.send", to="x@example.com", subject=mine, text="t")


def begin(engine: Engine, place: str) -> list[sa.Engine]:
    """Expose the platform's tables; return the engines on which statements are counted."""
    ledger = engine.context.database.engine
    if place != "-":
        database = engine.attach(place)
        expose(engine.inner, database)
        return [ledger, database.engine]
    engine.expose(customers, tenant_column="org_id", write=["email"])
    engine.expose(orders, tenant_column="org_id", read=["id", "state", "items"], write=["state", "items"])
    return [ledger]


async def ask(url: str, place: str, kill_at: int) -> int:
    """Ask for a run and have a node do it; killed before statement ``kill_at`` when it is reached, else give their number."""
    said = 0
    armed = False

    def count(*_: object) -> None:
        nonlocal said
        # Questions and heartbeats of other threads come when they come: they are no part of it.
        if armed and threading.current_thread().name.startswith(("lodger-writer", "lodger-finish")):
            said += 1
            if said == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    async with Engine.open(url, settings=SETTINGS) as engine:
        for each in begin(engine, place):
            sa.event.listen(each, "before_cursor_execute", count)
            # The end of a transaction is a statement too, and the one that matters most.
            sa.event.listen(each, "commit", count)
        signals = Signals(engine)

        async def armed_play(attempt: Attempt) -> None:
            nonlocal armed
            await play(attempt)
            armed = True

        async with engine.node(Player(engine.inner, armed_play)):
            await engine.run_in("one", "job", 0)
            await signals.wait("finished")
            armed = False
    return said


async def finish(url: str, place: str) -> None:
    """Bring everything to its end as a second node."""
    async with Engine.open(url, settings=FINISHING) as engine:
        begin(engine, place)
        signals = Signals(engine)

        async def done() -> bool:
            return not [each for each in await engine.actions.list("one") if each.state not in ("done", "failed")]

        async with engine.node(Player(engine.inner, play)):
            if not await done():
                await signals.until(done)


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Do something in a process of its own; return its exit status and what it answered."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(writer, json.dumps(work()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        body = answer.read()
    _, status = os.waitpid(child, 0)
    return status, json.loads(body) if body else None


def prepare(url: str, place: str) -> None:
    with_inner = Engine.open(url, settings=SETTINGS).inner
    with with_inner as engine:
        if place != "-":
            furnish(engine, place)
        else:
            with engine.context.database.write() as connection:
                platform.create_all(connection)
                connection.execute(orders.insert().values(id=1, org_id="one", state="open", items=0))
                if engine.context.database.driver.name == "postgresql":
                    connection.execute(sa.text("SELECT setval(pg_get_serial_sequence('orders', 'id'), 1)"))
        tenant(engine)


def audit(url: str, place: str) -> dict[str, Any]:
    """Return what both databases hold when all is finished."""
    with Engine.open(url, settings=SETTINGS).inner as engine:
        there = sa.create_engine(place) if place != "-" and "sqlite" in place else None
        shop = engine.context.database.engine if place == "-" else there or engine.attach(place).engine
        with shop.connect() as connection:
            made = sa.select(orders.c.state).where(orders.c.org_id == "one", sa.func.length(orders.c.state) == 20)
            rows = sorted(connection.scalars(made))
            counted = connection.scalar(sa.select(orders.c["items"]).where(orders.c.id == 1))
        if there is not None:
            there.dispose()
        with engine.context.database.read() as connection:
            actions = engine.actions.list("one", limit=1000)
            return {
                "actions": len(actions),
                "states": sorted({each.state for each in actions}),
                "failed": [str(each.error) for each in actions if each.state == "failed"],
                "rows_once": rows == sorted(each.id[-20:] for each in actions),
                "counted": counted,
                "documents": connection.scalar(sa.select(sa.func.count()).select_from(documents)),
                "mails": connection.scalar(sa.select(sa.func.count(sa.distinct(outbox.c.action_id)))),
                "all_mails": connection.scalar(sa.select(sa.func.count()).select_from(outbox)),
                "kv": int(connection.scalar(sa.select(kv.c.value)) or 0),
                "left": (connection.scalar(sa.select(sa.func.count()).select_from(sealed)) or 0)
                + (connection.scalar(sa.select(sa.func.count()).select_from(holds)) or 0),
            }


def main(url: str, place: str, wanted: int) -> None:
    in_child(lambda: prepare(url, place))
    _, statements = in_child(lambda: asyncio.run(ask(url, place, 0)))
    kills = 0
    for number in range(1, statements + 1, max(1, statements // wanted)):
        status, _ = in_child(lambda number=number: asyncio.run(ask(url, place, number)))
        if os.WIFSIGNALED(status):
            kills += 1
            in_child(lambda: asyncio.run(finish(url, place)))
    _, found = in_child(lambda: audit(url, place))
    sys.stdout.write(json.dumps({"statements": statements, "kills": kills} | (found or {})))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
