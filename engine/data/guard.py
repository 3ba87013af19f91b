"""The second wall around scripts' questions on PostgreSQL: a role without rights, and row-level security for one tenant.

:mod:`lodger.engine.data.scope` binds every statement to its tenant; if one ever were not, the database itself answers with
this tenant's rows alone (Lodger's own tables), and with granted columns alone (the platform's). Role and tenant are set for
one transaction, so they hold behind a pooler and end with the question.
"""

import logging
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, text

from lodger.engine.data.dataset import TableDataset
from lodger.engine.data.datasets import Datasets

T = TypeVar("T")
ROLE = "lodger_script"
_log = logging.getLogger("lodger.data")
_standing: WeakKeyDictionary[Datasets, bool] = WeakKeyDictionary()

_ENTER = text(f"SELECT set_config('lodger.tenant', :tenant, true), set_config('role', '{ROLE}', true)")
_MEMBER = text(
    "SELECT coalesce((SELECT pg_has_role(current_user, oid, 'MEMBER') FROM pg_roles WHERE rolname = :role), false)"
)
_MAY_READ = text("SELECT has_column_privilege(:role, :table, :column, 'SELECT')")


def guarded(work: Callable[[Connection], T], tenant_id: str, datasets: Datasets) -> Callable[[Connection], T]:
    """Give the same question, asked as the role and for this tenant where the database has them."""

    def inside(connection: Connection) -> T:
        if connection.dialect.name == "postgresql" and stands(connection, datasets):
            connection.execute(_ENTER, {"tenant": tenant_id})
        return work(connection)

    return inside


def stands(connection: Connection, datasets: Datasets) -> bool:
    """Whether the role is there and may read all that is exposed; looked at once, and said aloud when it is not."""
    known = _standing.get(datasets)
    if known is None:
        lacking = _lacking(connection, datasets)
        if lacking:
            _log.warning("scripts' questions are not asked as role %s: %s", ROLE, lacking)
        known = _standing[datasets] = not lacking
    return known


def _lacking(connection: Connection, datasets: Datasets) -> str:
    if not connection.execute(_MEMBER, {"role": ROLE}).scalar_one():
        return "there is no such role, or this user is not its member"
    for rows in datasets:
        if rows.database is not None:
            continue
        for column in _read(rows):
            values = {"role": ROLE, "table": rows.table.fullname, "column": column}
            if not connection.execute(_MAY_READ, values).scalar_one():
                return f"it may not read {rows.table.fullname}.{column} (lodger.engine.data.guard.grant gives it that)"
    return ""


def grant(connection: Connection, datasets: Datasets) -> None:
    """Let the role read the exposed columns and no others; as the tables' owner, before a node starts."""
    quote = connection.dialect.identifier_preparer
    for rows in datasets:
        if rows.database is not None:
            continue
        columns = ", ".join(quote.quote(column) for column in _read(rows))
        connection.execute(text(f"GRANT SELECT ({columns}) ON {quote.format_table(rows.table)} TO {ROLE}"))
    _standing.pop(datasets, None)


def _read(rows: TableDataset) -> list[str]:
    return sorted({rows.tenant_column.name, *(field.column.name for field in rows.fields.values())})
