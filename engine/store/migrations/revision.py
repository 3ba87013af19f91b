"""Which schema a database has and which one this version wants, without Alembic: only changing a schema needs that.

Importing Alembic is a seventh of the CPU time in which a command opens a ledger that is set up, which is nearly every ledger.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect, text

#: A platform may run Alembic on the same database under the usual name.
VERSION_TABLE = "lodger_version"

#: Called with (revision, its sentence, number, of how many) before each migration.
Progress = Callable[[str, str, int, int], None]

_NAMES = re.compile(r'^(down_)?revision = "(\w+)"$', re.MULTILINE)
_AT = text("SELECT version_num FROM lodger_version")


def silent(_revision: str, _sentence: str, _number: int, _total: int) -> None:
    """Tell nobody."""


def current(connection: Connection) -> str | None:
    """Give the revision of this database, None for an empty one."""
    return connection.scalar(_AT) if inspect(connection).has_table(VERSION_TABLE) else None


@cache
def known() -> frozenset[str]:
    """Give every revision that this version knows."""
    return frozenset(name for down, name in _said() if not down)


@cache
def head() -> str:
    """Give the revision of this version's schema: the one that no other goes on from."""
    (last,) = known() - {name for down, name in _said() if down}
    return last


@cache
def _said() -> list[tuple[str, str]]:
    files = (Path(__file__).parent / "versions").glob("*.py")
    return [found for file in files for found in _NAMES.findall(file.read_text(encoding="utf-8"))]
