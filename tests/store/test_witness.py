"""Who sees that somebody has committed: every commit of anybody is seen, and nothing else is."""

import asyncio
from pathlib import Path

from sqlalchemy import Connection, text
from tests.store.bench import Bench

from lodger.engine.ledger.database import Database
from lodger.engine.ledger.witness import Witness
from lodger.engine.node.pen import Pen

MARK = "UPDATE lodger_tenants SET name = name || '!'"


def marked(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text(MARK))


def test_every_commit_is_seen_and_nothing_else(bench: Bench, tmp_path: Path) -> None:
    bench.tenant()
    database = bench.engine.books.database
    witness = database.witness()
    if witness is None:
        assert database.dialect == "postgresql"
        return
    seen = [witness.version()]
    with database.read() as connection:
        connection.execute(text("SELECT * FROM lodger_tenants")).all()
    assert witness.version() == seen[0]
    marked(database)
    seen.append(witness.version())
    other = Database(str(database.url.database))
    marked(other)
    other.close()
    seen.append(witness.version())
    assert len(set(seen)) == 3
    witness.close()
    witness.close()
    assert witness.version() != witness.version(), "who cannot see says so"


def test_a_file_that_cannot_be_read_looks_changed_every_time(tmp_path: Path) -> None:
    place = tmp_path / "no.db"
    place.write_bytes(b"this is no database" * 100)
    witness = Witness(str(place))
    assert witness.version() != witness.version()
    witness.close()


def test_what_stands_is_asked_once_until_somebody_commits(bench: Bench) -> None:
    bench.tenant()
    database, asked = bench.engine.books.database, []

    def ask(connection: Connection) -> str:
        asked.append(1)
        return str(connection.scalar(text("SELECT max(name) FROM lodger_tenants WHERE id = 'acme'")))

    async def scenario() -> None:
        pen = Pen(database)
        first = await pen.standing("name", ask)
        assert await pen.standing("name", ask) == first
        each_time = database.dialect != "sqlite"
        assert len(asked) == (2 if each_time else 1)
        marked(database)
        assert await pen.standing("name", ask) == first + "!"
        assert await pen.standing(("name", "other"), ask) == first + "!"
        assert len(asked) == (4 if each_time else 3)
        pen.close()

    asyncio.run(scenario())
