"""A platform's trigger that ends the whole transaction, and a view that takes no writes: the run that met it is refused, in words that
say what to do, and what was written beside it in the same group commit is there.
"""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.databases.fixtures import kind, url
from tests.node.harness import SETTINGS, Signals
from tests.store.platform_database import Player, call

from lodger.engine import Engine
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.records import Action
from lodger.engine.sync import Engine as SyncEngine
from lodger.sandbox.outcome import Outcome

__all__ = ["kind", "url"]
platform = sa.MetaData()
stock = sa.Table(
    "stock",
    platform,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("house", sa.String(20), nullable=False),
    sa.Column("what", sa.String(20)),
    sa.UniqueConstraint("house", "what", sqlite_on_conflict="ROLLBACK"),
)
#: A view of the platform's, which scripts see as a table.
shown = sa.Table(
    "shown",
    sa.MetaData(),
    *(sa.Column(c.name, c.type, primary_key=c.primary_key, nullable=c.nullable) for c in stock.c),
)
TRIGGER = """
    CREATE TRIGGER strict BEFORE INSERT ON stock WHEN new.what = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'a secret of the platform'); END
"""


class Group(Player):
    """Lets all runs of a round end at once, so that their ends are written in one transaction, the worst in the middle."""

    def __init__(self, engine: SyncEngine, number: int) -> None:
        super().__init__(engine, self.write)
        self._missing = number
        self._together = asyncio.Event()

    async def write(self, attempt: Attempt) -> None:
        what = str(attempt.claim.params)
        if what == "view":
            await call(attempt, "db.insert", set="shown", values={"what": what}, line="main.js:3")
        else:
            await call(attempt, "kv.set", key=what, value=1)
            await call(attempt, "db.insert", set="stock", values={"what": what}, line="main.js:3")

    async def execute(self, claim: Claim) -> Finished:
        finished = await super().execute(claim)
        self._missing -= 1
        if self._missing <= 0:
            self._together.set()
        await self._together.wait()
        return finished


async def play_in_group(
    url: str, asked: list[str], database: object = None
) -> tuple[list[Action], list[str], list[str]]:
    """Run these in one group; return the actions, the rows of the stock, and the keys of the tenant's values."""
    settings = SETTINGS.model_copy(update={"slots": 8})
    async with Engine.open(url, settings=settings) as engine:
        inner = engine.inner
        where = inner.context.database.engine
        attached = None
        if database is not None:
            attached = inner.attach(str(database))
            where = attached.engine
        platform.create_all(where)
        with where.begin() as connection:
            if where.dialect.name == "sqlite":
                connection.exec_driver_sql(TRIGGER)
            connection.exec_driver_sql("CREATE VIEW shown AS SELECT DISTINCT id, house, what FROM stock")
        for table in (stock, shown):
            inner.expose(table, tenant_column="house", write=["what"], database=attached)
        inner.prepare()
        await engine.tenants.create("oak", grants=["sets:write", "kv"])
        await engine.scripts.put("oak", "job", "export default () => 1")
        signals = Signals(engine)
        made = [await engine.run_in("oak", "job", 0, params=what) for what in asked]
        async with engine.node(Group(inner, len(asked)), "n1"):

            async def over() -> bool:
                return {(await engine.actions.get(None, each.id)).state for each in made} <= {"done", "failed"}

            await signals.until(over)
            records = [await engine.actions.get(None, each.id) for each in made]
        with where.connect() as connection:
            rows = sorted(connection.scalars(sa.select(stock.c.what)))
        with inner.context.database.read() as reading:
            keys = sorted(reading.scalars(sa.text("SELECT key FROM lodger_kv")))
        return records, rows, keys


def check_texts(record: Action, fix: str) -> None:
    """Assert that the author learns where and the platform what to do, and nothing of the platform's trigger."""
    error = record.error
    assert error is not None
    assert (error.name, error.file, error.line) == ("EffectRefused", "main.js", 3)
    assert fix in error.message
    assert "secret" not in error.message


def test_a_trigger_that_rolls_everything_back_refuses_its_own_run_and_no_other(kind: str, url: str) -> None:
    if kind != "sqlite":
        pytest.skip("PostgreSQL's triggers can end nothing but their own statement")
    records, rows, keys = asyncio.run(play_in_group(url, ["a", "b", "bad", "c", "d"]))
    assert [each.outcome for each in records] == [
        Outcome.OK,
        Outcome.OK,
        Outcome.EFFECT_REFUSED,
        Outcome.OK,
        Outcome.OK,
    ]
    assert rows == keys == ["a", "b", "c", "d"]
    check_texts(records[2], "RAISE(ABORT)")


def test_a_rule_that_rolls_everything_back_does_so_too(kind: str, url: str) -> None:
    if kind != "sqlite":
        pytest.skip("PostgreSQL's rules can end nothing but their own statement")
    records, rows, keys = asyncio.run(play_in_group(url, ["a", "once", "b", "once", "c"]))
    assert sorted(each.outcome for each in records) == [Outcome.EFFECT_REFUSED] + [Outcome.OK] * 4
    assert rows == keys == ["a", "b", "c", "once"]


def test_in_a_database_of_its_own_it_is_refused_too(kind: str, url: str, tmp_path: Path) -> None:
    records, rows, keys = asyncio.run(play_in_group(url, ["a", "bad", "b"], tmp_path / "shop.db"))
    assert [each.outcome for each in records] == [Outcome.OK, Outcome.EFFECT_REFUSED, Outcome.OK]
    assert rows == keys == ["a", "b"]
    check_texts(records[1], "RAISE(ABORT)")


def test_a_view_in_a_database_of_its_own_takes_no_writes_either(kind: str, url: str, tmp_path: Path) -> None:
    records, _rows, _keys = asyncio.run(play_in_group(url, ["view"], tmp_path / "shop.db"))
    assert [each.outcome for each in records] == [Outcome.EFFECT_REFUSED]
    check_texts(records[0], "INSTEAD OF")


def test_a_view_that_takes_no_writes_refuses_its_run(kind: str, url: str) -> None:
    records, rows, _keys = asyncio.run(play_in_group(url, ["a", "view", "b"]))
    assert [each.outcome for each in records] == [Outcome.OK, Outcome.EFFECT_REFUSED, Outcome.OK]
    assert rows == ["a", "b"]
    check_texts(records[1], "INSTEAD OF")
