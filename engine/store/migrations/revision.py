"""The revision of a database's schema and the one that this version needs, without importing Alembic.

Importing Alembic takes a seventh of the CPU time of a command that opens a ledger, and nearly every ledger is current.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect, text

#: Not Alembic's usual name, because a platform may run Alembic on the same database.
VERSION_TABLE = "lodger_version"

#: Called with (revision, its sentence, number, total) before each migration.
Progress = Callable[[str, str, int, int], None]

_NAMES = re.compile(r'^(down_)?revision = "(\w+)"$', re.MULTILINE)
_AT = text("SELECT version_num FROM lodger_version")


def ignore_progress(_revision: str, _sentence: str, _number: int, _total: int) -> None:
    """Report nothing."""


def current(connection: Connection) -> str | None:
    """Return the revision of this database, None for an empty one."""
    return connection.scalar(_AT) if inspect(connection).has_table(VERSION_TABLE) else None


@cache
def known() -> frozenset[str]:
    """Return every revision that this version knows."""
    return frozenset(name for down, name in _metadata() if not down)


@cache
def head() -> str:
    """Return the revision of this version's schema: the one without a successor."""
    (last,) = known() - {name for down, name in _metadata() if down}
    return last


@cache
def _metadata() -> list[tuple[str, str]]:
    files = (Path(__file__).parent / "versions").glob("*.py")
    return [found for file in files for found in _NAMES.findall(file.read_text(encoding="utf-8"))]
