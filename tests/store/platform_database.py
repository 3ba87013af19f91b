"""A ledger, and a platform's own database beside it; scripts played by calls to an attempt's host side, without a worker."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from tests.store.bench import Bench
from tests.unit.data.shop import count_on, customers, orders, platform

from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.foreign import receipts
from lodger.engine.data.sets.guard import inspect_databases
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.effects import foreign_commit, sealed_commits, write_set_codec
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.effects.sealed_commits import Finish, SealedAttempt
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.node.executors.sandbox_executor import finished
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.store.schema.script_data import documents, holds, kv, outbox, sealed
from lodger.engine.sync import Engine
from lodger.sandbox.job import Report
from lodger.sandbox.outcome import Outcome

READ = ["id", "state", "items", "note", "customer_id", "total", "ref"]
WRITE = [name for name in READ if name != "id"]
Play = Callable[[Attempt], Awaitable[None]]


def furnish(engine: Engine, place: str | sa.Engine, *, prepared: bool = True) -> Any:
    """Attach the platform's database at a place, create and expose its tables; return it."""
    database = engine.attach(place)
    platform.create_all(database.engine)
    with database.engine.begin() as connection:
        if connection.scalar(sa.select(sa.func.count()).select_from(orders)) == 0:
            connection.execute(customers.insert().values(id=1, org_id="one", email="a@one.example"))
            for number in (1, 2, 3):
                connection.execute(orders.insert().values(id=number, org_id="one", state="open", items=number))
            connection.execute(orders.insert().values(id=9, org_id="two", state="open", items=9))
            for table in (customers, orders):
                count_on(connection, table)
    expose(engine, database)
    if prepared:
        engine.prepare()
    return database


def expose(engine: Engine, database: Any) -> None:
    engine.expose(customers, tenant_column="org_id", write=["email"], database=database)
    engine.expose(orders, tenant_column="org_id", read=READ, write=WRITE, database=database)


def tenant(engine: Engine, **limits: int) -> None:
    """Create the tenant, with grants to write exposed tables and to mail any address."""
    engine.tenants.create("one", grants=["sets:write", "mail:*"], limits=limits)
    engine.scripts.put("one", "job", "export default () => 1")


async def call(attempt: Attempt, name: str, **arguments: Any) -> Any:
    reply = await attempt.call(name, json.dumps(arguments))
    assert reply.ok, reply.json
    return json.loads(reply.json)


async def every_effect(attempt: Attempt) -> None:
    """Ask for one effect of every kind, in both databases."""
    await call(attempt, "db.find", set="orders")
    customer = await call(attempt, "db.insert", set="customers", values={"email": "new@one.example"})
    values = {"state": "new", "items": 1, "customer_id": customer["id"], "total": "12.34", "line": None}
    values.pop("line")
    await call(attempt, "db.insert", set="orders", values=values)
    await call(attempt, "db.increment", set="orders", id=2, amounts={"items": 5})
    await call(attempt, "db.update", set="orders", id=1, changes={"state": "done"}, line="main.js:7")
    await call(attempt, "db.delete", set="orders", id=3)
    await call(attempt, "kv.get", key="k")
    await call(attempt, "kv.set", key="k", value=1)
    await call(attempt, "kv.add", key="n", amount=1)
    await call(attempt, "db.insert", set="notes", values={"text": "x"})
    await call(attempt, "mail.send", to="x@example.com", subject="s", text="t")
    await call(attempt, "schedule.runAt", delay=86_400_000, input=[1], key="k")


class Player:
    """Plays a script by calls. Satisfies :class:`lodger.engine.effects.finished.Executor`."""

    def __init__(self, engine: Engine, play: Play) -> None:
        self.engine = engine
        self.play = play
        self.runs = 0

    async def start(self) -> None:
        self.reads = ThreadReads(self.engine.context.database)

    async def stop(self) -> None:
        self.reads.close()

    async def execute(self, claim: Claim) -> Finished:
        self.runs += 1
        await inspect_databases(self.engine.datasets, self.reads)
        now_us = self.engine.context.clock.now_us()
        attempt = Attempt(
            claim,
            self.reads,
            self.engine.datasets,
            now_us=now_us,
            numbers=self.reads.numbers,
            fetch_state=FetchState.of(claim),
        )
        await self.play(attempt)
        return finished(claim, attempt, Report(Outcome.OK, result="1"))


class PlatformDatabase:
    """Both databases, driven by hand."""

    def __init__(self, bench: Bench, place: str, *, prepared: bool = True) -> None:
        self.bench = bench
        self.engine = bench.engine
        self.place = place
        self.database = furnish(bench.engine, place, prepared=prepared)
        tenant(bench.engine)

    def run(self, play: Play = every_effect) -> tuple[Claim, Finished]:
        """Claim what is due and play a script for it."""
        player = Player(self.engine, play)

        async def go() -> tuple[Claim, Finished]:
            await player.start()
            try:
                (claim,) = self.bench.claim(1)
                return claim, await player.execute(claim)
            finally:
                await player.stop()

        return asyncio.run(go())

    def ask(self) -> str:
        return self.engine.run_in("one", "job", 0).id

    def seal(self, play: Play = every_effect) -> tuple[Committed, SealedAttempt | None]:
        """Run a script and commit its end; return also the sealed attempt, if it was sealed."""
        claim, done = self.run(play)
        committed = self.bench.commit(claim, finished=done)
        return committed, committed.sealed[0] if committed.sealed else None

    def apply(self, one: SealedAttempt) -> foreign_commit.Receipt:
        """Apply a sealed attempt's effects to the platform's database."""
        write_set = write_set_codec.decode(one.write_set, self.engine.datasets)
        return foreign_commit.apply(self.database, write_set, one.attempt, now_us=self.bench.clock.us)

    def settle(self, one: SealedAttempt, receipt: foreign_commit.Receipt) -> Finish | None:
        with self.engine.context.database.write() as connection:
            return sealed_commits.settle_sealed(
                self.engine.context, connection, self.engine.datasets, one, receipt, self.bench.clock.us
            )

    def left(self) -> list[SealedAttempt]:
        """Take up what others have left."""
        self.bench.clock.advance(100)
        with self.engine.context.database.write() as connection:
            return sealed_commits.take_due(self.engine.context, connection, self.bench.clock.us, 10)

    def there(self) -> dict[str, list[Any]]:
        """Return what the platform's database holds of the tenant."""
        found = {}
        with self.database.engine.connect() as connection:
            mine = sa.select(orders.c.state, orders.c["items"], customers.c.email).outerjoin_from(orders, customers)
            rows = connection.execute(mine.where(orders.c.org_id == "one").order_by(orders.c.id))
            found["orders"] = [tuple(row) for row in rows]
            people = sa.select(customers.c.email).where(customers.c.org_id == "one").order_by(customers.c.id)
            found["customers"] = [tuple(row) for row in connection.execute(people)]
            with suppress(sa.exc.DBAPIError):
                found["receipts"] = [tuple(row) for row in connection.execute(sa.select(receipts.c.verdict))]
        return found

    def here(self) -> dict[str, Any]:
        """Count what the ledger's database holds."""
        return here(self.engine)


def here(engine: Engine) -> dict[str, Any]:
    """Count what the ledger's database holds, with keyed values and the inputs of later runs."""
    with engine.context.database.read() as connection:
        found: dict[str, Any] = {
            table.name: connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (documents, outbox, sealed, holds)
        }
        found["kv"] = [tuple(row) for row in connection.execute(sa.select(kv.c.key, kv.c.value).order_by(kv.c.key))]
        asked = sa.select(actions.c.params).where(actions.c.requested_by.is_not(None))
        found["later"] = list(connection.scalars(asked))
    return found


BEFORE = {"orders": [("open", 1, None), ("open", 2, None), ("open", 3, None)], "customers": [("a@one.example",)]}
AFTER = {
    "orders": [("done", 1, None), ("open", 7, None), ("new", 1, "new@one.example")],
    "customers": [("a@one.example",), ("new@one.example",)],
    "receipts": [("applied",)],
}
NOTHING = {"lodger_documents": 0, "lodger_outbox": 0, "lodger_sealed": 0, "lodger_holds": 0, "kv": [], "later": []}
ALL = {
    "lodger_documents": 1,
    "lodger_outbox": 1,
    "lodger_sealed": 0,
    "lodger_holds": 0,
    "kv": [("k", "1"), ("n", "1")],
    "later": ["[1]"],
}
