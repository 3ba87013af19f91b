"""What differs between databases stands in their drivers and nowhere else, so that a further database is a further file."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

import lodger.engine as package
from lodger.engine.core.errors import InputError
from lodger.engine.store.drivers import driver_of, register
from lodger.engine.store.drivers.sqlite import SqliteDriver
from lodger.engine.sync import Engine

ROOT = Path(package.__file__).resolve().parent
#: Where databases may be told apart.
ALLOWED = ("store/drivers/", "store/migrations/")
NAMES = {"sqlite", "postgresql", "postgres"}
#: A setting, and options of tables that other databases ignore.
HARMLESS = {"sqlite_synchronous", "sqlite_autoincrement", "sqlite_with_rowid"}
DRIVERS = ("sqlalchemy.dialects", "psycopg")


def faults(tree: ast.AST) -> Iterator[int]:
    """Yield the lines at which code asks which database it has, or uses what one database alone has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "dialect":
            yield node.lineno
        elif isinstance(node, ast.Compare | ast.Subscript | ast.MatchValue):
            yield from (each.lineno for each in ast.walk(node) if _names(each))
        elif isinstance(node, ast.Dict) and sum(_names(key) for key in node.keys) > 1:
            yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compiles":
            yield from (each.lineno for each in node.args if _names(each))
        elif isinstance(node, ast.keyword) and (node.arg or "").startswith(("sqlite_", "postgresql_")):
            if node.arg not in HARMLESS:
                yield node.value.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if any(each.startswith(DRIVERS) for each in module):
                yield node.lineno


def _names(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in NAMES


@pytest.mark.usefixtures("uncollected")
def test_no_code_outside_the_drivers_asks_which_database_it_has() -> None:
    found, seen = [], 0
    for file in sorted(ROOT.rglob("*.py")):
        place = file.relative_to(ROOT).as_posix()
        if not place.startswith(ALLOWED):
            seen += 1
            text = file.read_text(encoding="utf-8")
            if any(
                word in text for word in ("dialect", "compiles", "psycopg", *NAMES)
            ):  # no other has what is looked for
                found += [f"engine/{place}:{line}" for line in faults(ast.parse(text))]
    assert not found, "ask the driver: " + ", ".join(found)
    assert seen > 200


@pytest.mark.parametrize(
    "code",
    [
        "if connection.dialect.name != SQLITE: pass",
        "if database.kind == 'sqlite': pass",
        "if url.get_backend_name() in {'postgresql', 'x'}: pass",
        "{'sqlite': 1, 'postgresql': 2}[name]",
        "match name:\n    case 'sqlite': pass",
        "from sqlalchemy.dialects import postgresql",
        "import psycopg",
        "compiles(Element, 'postgresql')",
        "Index('x', sqlite_where=condition)",
    ],
)
def test_each_way_to_ask_is_found(code: str) -> None:
    assert list(faults(ast.parse(code)))


class Third(SqliteDriver):
    """Another database, by its name; it counts what it is asked."""

    name = "thirdlite"

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def ledger_url(self, url: URL) -> URL:
        return super().ledger_url(url).set(drivername="sqlite")

    def among(self, column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
        self.asked["among"] = self.asked.get("among", 0) + 1
        return super().among(column, name)

    def insert(self, table: sa.Table) -> Any:
        self.asked["insert"] = self.asked.get("insert", 0) + 1
        return super().insert(table)


def test_a_third_database_is_one_more_driver(tmp_path: Path) -> None:
    third, place = Third(), tmp_path / "ledger.db"
    with pytest.raises(InputError, match="Lodger does not support thirdlite"):
        Engine.open(f"{third.name}:///{place}")
    register(third)
    clock = VirtualClock()
    with Engine.open(f"{third.name}:///{place}", clock=clock) as engine:
        bench = Bench(engine, clock)
        bench.schedule(tenant_id=bench.tenant())
        bench.clock.advance(60)
        assert len(bench.tick()) == 1
        assert len(bench.run()) == 1
        assert bench.states() == ["done"]
        with engine.context.database.read() as connection:
            assert driver_of(connection) is third
    assert third.asked["among"] > 0
    assert third.asked["insert"] > 0
