"""``lodger db prepare``: what Lodger wants in a platform's databases, created by the command, or by a user that runs its output."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.databases.fixtures import kind, url
from tests.e2e.ready import lodger

from lodger.engine.data.sets import guard
from lodger.engine.data.sets.foreign import receipts
from lodger.engine.sync import Engine

__all__ = ["kind", "url"]

PLATFORM = """
import os
import sqlalchemy as sa
metadata = sa.MetaData()
orders = sa.Table("orders", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(40)),
                  sa.Column("state", sa.String(20)))
elsewhere = sa.Table("parcels", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.String(40)))

def expose(engine):
    engine.expose(orders, tenant_column="org", write=["state"])
    engine.expose(elsewhere, tenant_column="org", database="sqlite:///" + os.environ["SHOP"])
"""


@pytest.fixture
def folder(tmp_path: Path, url: str) -> Path:
    (tmp_path / "shop.py").write_text(PLATFORM)
    with Engine.open(url) as engine:
        with engine.context.database.write() as connection:
            connection.execute(
                sa.text("CREATE TABLE orders (id INTEGER PRIMARY KEY, org VARCHAR(40), state VARCHAR(20))")
            )
        engine.tenants.create("one")
    return tmp_path


def stands(folder: Path, url: str) -> tuple[set[str], bool]:
    """Return the views that stand in the ledger's database, and whether the other one takes receipts."""
    namespace: dict[str, object] = {}
    exec(compile(PLATFORM.replace('os.environ["SHOP"]', repr(str(folder / "shop.db"))), "shop", "exec"), namespace)
    with Engine.open(url) as engine:
        namespace["expose"](engine)  # type: ignore[operator]  # a function
        with engine.context.database.read() as connection:
            wall = guard.look(connection, engine.datasets.tables(None))
        (shop,) = engine.datasets.databases
        with shop.read() as connection:
            return set(wall.views), sa.inspect(connection).has_table(receipts.name)


def test_prepared_by_the_command(folder: Path, url: str, kind: str) -> None:
    arguments = ("db", "prepare", "--expose", "shop:expose", "--db", url)
    said = lodger(*arguments, "--json", cwd=folder, SHOP=str(folder / "shop.db"))
    assert said.code == 0, said.err
    assert said.json["prepared"]
    assert stands(folder, url) == ({"orders"} if kind == "postgresql" else set(), True)
    assert lodger(*arguments, cwd=folder, SHOP=str(folder / "shop.db")).code == 0, "again changes nothing"


def test_what_it_prints_is_what_it_would_run(folder: Path, url: str, kind: str) -> None:
    arguments = ("db", "prepare", "--expose", "shop:expose", "--db", url, "--sql")
    said = lodger(*arguments, "--json", cwd=folder, SHOP=str(folder / "shop.db"))
    assert said.code == 0, said.err
    assert stands(folder, url) == (set(), False), "printing changes nothing"
    for place, statements in said.json["statements"].items():
        engine = sa.create_engine(
            f"sqlite:///{folder / 'shop.db'}"
            if place != "the ledger"
            else url.replace("postgresql:", "postgresql+psycopg:")
        )
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement.replace("%", "%%"))
        engine.dispose()
    assert stands(folder, url) == ({"orders"} if kind == "postgresql" else set(), True)
    plain = lodger(*arguments, cwd=folder, SHOP=str(folder / "shop.db"))
    assert "CREATE TABLE IF NOT EXISTS lodger_receipts" in plain.out


def test_types_for_scripts_of_this_platform(folder: Path, url: str) -> None:
    scripts = folder / "scripts"
    arguments = ("init", scripts, "--expose", "shop:expose", "--db", url, "--json")
    said = lodger(*arguments, cwd=folder, SHOP=str(folder / "shop.db"))
    assert said.code == 0, said.err
    assert said.json["jsconfig"]
    assert "readonly orders: Rows<OrdersRow, OrdersValues>;" in (scripts / "lodger-types" / "sets.d.ts").read_text()
    assert "declare const db: Db;" in (scripts / "lodger-types" / "lodger.d.ts").read_text()
    (scripts / "jsconfig.json").write_text("{}")
    assert not lodger(*arguments, cwd=folder, SHOP=str(folder / "shop.db")).json["jsconfig"]
    assert (scripts / "jsconfig.json").read_text() == "{}", "what is there is left as it is"


def test_a_user_who_may_not_is_told_what_to_do(folder: Path, url: str, kind: str) -> None:
    if kind == "sqlite":
        said = lodger("db", "prepare", "--expose", "shop:expose", "--db", url, cwd=folder, SHOP="/nowhere/shop.db")
        assert said.code == 1
        assert "the option --sql" in said.err + said.out
        return
    with Engine.open(url) as engine, engine.context.database.write() as connection:
        connection.execute(sa.text("CREATE ROLE plain LOGIN"))
        connection.execute(sa.text("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain"))
    try:
        weak = url.replace("postgres@", "plain@")
        said = lodger(
            "db", "prepare", "--expose", "shop:expose", "--db", weak, cwd=folder, SHOP=str(folder / "shop.db")
        )
        assert said.code == 1
        assert "the option --sql" in said.err + said.out
    finally:
        with Engine.open(url) as engine, engine.context.database.write() as connection:
            connection.execute(sa.text("DROP OWNED BY plain"))
            connection.execute(sa.text("DROP ROLE plain"))
