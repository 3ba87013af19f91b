"""The revision of a database's schema and the one that this version needs, without importing Alembic.

Importing Alembic takes a seventh of the CPU time of a command that opens a ledger, and nearly every ledger is current.

A migration only adds to the schema (tables, columns with a default, indexes), so that nodes of the previous release go on. One
that takes something away states the oldest revision of which the release can use the schema after it: ``compatible_with = "0007"``. The
ledger keeps that value, by which an older release knows whether it may use a schema that it does not know.
"""

import re
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from lodger.engine.core.errors import Unavailable

#: Not Alembic's usual name, because a platform may run Alembic on the same database.
VERSION_TABLE = "lodger_version"

#: Called with (revision, its sentence, number, total) before each migration.
Progress = Callable[[str, str, int, int], None]

_NAMES = re.compile(r'^(revision|down_revision|compatible_with) = "(\w+)"$', re.MULTILINE)
_AT = text("SELECT version_num FROM lodger_version")
_COMPATIBLE = text("SELECT compatible_with FROM lodger_ledger")


def ignore_progress(_revision: str, _sentence: str, _number: int, _total: int) -> None:
    """Report no progress of a migration."""


def current(connection: Connection) -> str | None:
    """Return the revision of this database, None for an empty one."""
    return connection.scalar(_AT) if inspect(connection).has_table(VERSION_TABLE) else None


@cache
def known() -> tuple[str, ...]:
    """Return every revision that this version knows, oldest first."""
    after = {each.get("down_revision"): revision for revision, each in _metadata().items()}
    order = [after[None]]
    while order[-1] in after:
        order.append(after[order[-1]])
    return tuple(order)


def head() -> str:
    """Return the revision of this version's schema."""
    return known()[-1]


def compatible_with(revisions: Collection[str] | None = None) -> str | None:
    """Return the oldest revision of which the release can use the schema after all migrations.

    Args:
        revisions: only these migrations; the result is None if they do not change it.
    """
    stated = [_metadata()[each].get("compatible_with") for each in known() if revisions is None or each in revisions]
    return next((each for each in reversed(stated) if each), None)


def verdict(connection: Connection, at: str | None) -> str:
    """Compare a database's revision with this version's.

    Returns:
        ``empty``, ``current``, ``behind``, ``ahead`` (newer, and this version can use it) or ``newer`` (it cannot).
    """
    if at is None:
        return "empty"
    if at in known():
        return "current" if at == head() else "behind"
    compatible = inspect(connection).has_table("lodger_ledger") and connection.scalar(_COMPATIBLE) in known()
    return "ahead" if compatible else "newer"


def require_usable(connection: Connection, found: str | None = None) -> None:
    """Refuse a schema that this version cannot use.

    Args:
        found: verdict on the revision, if known.

    Raises:
        Unavailable: database_behind, database_newer.
    """
    at = current(connection)
    found = found or verdict(connection, at)
    if found == "behind":
        raise Unavailable("database_behind", revision=at, needed=head())
    if found == "newer":
        raise Unavailable("database_newer", revision=at, known=head())


@cache
def _metadata() -> dict[str, dict[str, str]]:
    """Return the metadata of the migrations by revision."""
    files = (Path(__file__).parent / "versions").glob("*.py")
    found = (dict(_NAMES.findall(file.read_text(encoding="utf-8"))) for file in files)
    return {each["revision"]: each for each in found if each}
