"""Row security for scripts' data, where the database has it: an unprivileged role, and views and policies for one tenant.

:mod:`lodger.engine.data.sets.scope` binds every statement to its tenant; behind it the database itself shows and accepts only
this tenant's rows. Role and tenant are set for one transaction, so they work behind a pooler and end with it.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.exc import ProgrammingError

from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import Collection, Dataset, TableDataset, database_of
from lodger.engine.data.sets.tenant_views import view
from lodger.engine.data.sets.uniqueness import cross_tenant_unique_columns
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.postgresql.row_security import RowSecurity

if TYPE_CHECKING:
    from lodger.engine.data.sets.datasets import Datasets
    from lodger.engine.data.sets.foreign import ForeignDatabase

T = TypeVar("T")
_log = logging.getLogger("lodger.data")


@dataclass(frozen=True, slots=True)
class DatabaseIsolation:
    """The row security objects that exist in one database.

    Attributes:
        schema: of the views.
        role: queries can run as the role, so Lodger's own tables show one tenant.
        views: datasets with an up-to-date view.
        written: of these, the datasets that are also written as the role. Without datasets with triggers that run with the writer's
            rights, which may need more than the role's, and without the platform's own views, as their tables are unknown.
        cross_tenant_unique_columns: columns, by dataset, that scripts may not write although they were exposed; see
            :func:`lodger.engine.data.sets.uniqueness.cross_tenant_unique_columns`.
    """

    role: bool = False
    views: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    cross_tenant_unique_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    schema: str = ""


#: What the role needs of Lodger's own tables.
NEEDED = {
    "lodger_documents": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "lodger_kv": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "lodger_document_index": ("SELECT", "INSERT", "DELETE"),
    "lodger_collection_indexes": ("SELECT",),
    "lodger_cursors": ("SELECT",),
    "lodger_changes": ("SELECT",),
    "lodger_changes_forgotten": ("SELECT",),
}
_NEEDED = [(name, privilege) for name, some in NEEDED.items() for privilege in some]


def look(connection: Connection, sets: Iterable[TableDataset], *, ledger: bool = True) -> DatabaseIsolation:
    """Inspect a database for row security objects; log a warning for missing ones.

    Args:
        sets: the exposed datasets of the database.
        ledger: whether it is the ledger's, with Lodger's own tables for scripts.
    """
    sets = list(sets)
    unique = cross_tenant_unique_columns(connection, sets)
    for name, columns in unique.items():
        _log.warning(
            "%s: %s is unique over all tenants in the database, though not in the declared table: scripts may not write it "
            "unless allow_unique= names the constraint",
            name,
            ", ".join(sorted(columns)),
        )
    for name in filtered(connection, sets):
        _log.warning(
            "%s: row security of the table's own applies to this user, so scripts may see no rows: name the session variable that "
            "its policies read with expose(tenant_setting=…), or give the user BYPASSRLS", name,
        )  # fmt: skip
    return replace(_standing(connection, sets, ledger=ledger), cross_tenant_unique_columns=unique)


def is_unused(connection: Connection) -> bool:
    """Whether row security was prepared for this user, who may not act as its role: scripts' statements run without it."""
    security = driver_of(connection).row_security(connection)
    return security is not None and security.is_ungranted(connection)


def filtered(connection: Connection, sets: Iterable[TableDataset]) -> list[str]:
    """Return the names of the datasets whose tables hide rows by a row security of their own that is told no tenant."""
    security = driver_of(connection).row_security(connection)
    if security is None:
        return []
    return [rows.name for rows in sets if rows.tenant_setting is None and security.is_filtered(connection, rows.origin)]


def _standing(connection: Connection, sets: list[TableDataset], *, ledger: bool) -> DatabaseIsolation:
    """Return the role and the up-to-date views that exist in a database, and warn about missing ones; unique columns are left out."""
    security = driver_of(connection).row_security(connection)
    if security is None:
        return DatabaseIsolation()
    role = security.role
    if not security.is_member(connection):
        _log.warning("queries of scripts do not run as role %s: it does not exist, or this user is not a member", role)
        return DatabaseIsolation()
    if ledger and not security.has_privileges(connection, _NEEDED):
        _log.warning("role %s lacks privileges on Lodger's tables: `lodger db prepare` grants them", role)
        return DatabaseIsolation()
    marks = security.marks(connection)
    standing = frozenset(rows.name for rows in sets if marks.get(rows.name) == view(rows, security, connection).mark)
    # What leads to a set without a view cannot be asked as the role either.
    while lost := {
        rows.name
        for rows in sets
        if rows.name in standing and any(each.origin in _led_to(rows) and each.name not in standing for each in sets)
    }:
        standing -= lost
    for rows in sets:
        if rows.name not in standing:
            why = "differs from the current expose()" if rows.name in marks else "does not exist"
            _log.warning("%s is read without its view, which %s: `lodger db prepare` creates it", rows.name, why)
    written = frozenset(
        rows.name
        for rows in sets
        if rows.name in standing and rows.writable and not security.runs_code(connection, rows.origin)
    )
    return DatabaseIsolation(True, standing, written, schema=security.schema)


def _led_to(rows: TableDataset) -> set[Table]:
    """Return the tables that a dataset's foreign keys lead to."""
    return {each.table for each in rows.references.values()} | {table for _name, table, _column in rows.links.values()}


#: Asks something of the ledger's database.
Ask = Callable[[Callable[[Connection], DatabaseIsolation]], Awaitable[DatabaseIsolation]]


async def inspect_databases(datasets: "Datasets", read: Ask) -> None:
    """Inspect each database once; one that is unreachable is inspected again at the next call."""
    for database in datasets.unseen:

        def inspect_database(connection: Connection, of: "ForeignDatabase | None" = database) -> DatabaseIsolation:
            """Return what keeps tenants apart in one database; ``of`` is None for the ledger's."""
            return look(connection, datasets.tables(of), ledger=of is None)

        try:
            ask = read if database is None else database.ask
            datasets.stand(database, await ask(inspect_database))
        except Exception:  # noqa: BLE001 - the next query of that database reports it
            _log.warning("%s cannot be inspected", "the ledger's database" if database is None else database.place)


def isolated_query(
    work: Callable[[Connection], T], tenant_id: str, datasets: "Datasets", rows: Dataset | None = None
) -> Callable[[Connection], T]:
    """Return the query, run as the role and for this tenant where the database has them.

    Args:
        rows: the queried dataset; None for Lodger's own tables.
    """
    wall = datasets.wall(None if rows is None else database_of(rows))
    own = rows is None or isinstance(rows, Collection)
    stands = wall.role if own else rows is not None and rows.name in wall.views
    if not stands and (not isinstance(rows, TableDataset) or rows.tenant_setting is None):
        return work

    def query_isolated(connection: Connection) -> T:
        """Do the work as the scripts' database role, with the tenant set for the second wall."""
        security = driver_of(connection).row_security(connection)
        if security is None:  # a database without session variables
            return work(connection)
        named = _tenant(security, tenant_id, datasets, () if rows is None else (rows,))
        if rows is not None:
            named["lodger.owner"] = str(_value(rows, tenant_id) or "")
        security.assign(connection, named | ({"role": security.role} if stands else {}))
        with recheck_on_error(datasets, None if rows is None else database_of(rows)):
            return work(connection)

    return query_isolated


@contextmanager
def recheck_on_error(datasets: "Datasets", database: "ForeignDatabase | None") -> Iterator[None]:
    """Mark the database for inspection after a ProgrammingError, which is raised again: a view may have been dropped."""
    try:
        yield
    except ProgrammingError:
        datasets.unknown(database)
        raise


def name_tenant(connection: Connection, tenant_id: str, datasets: "Datasets", sets: Iterable[Dataset]) -> None:
    """Set the tenant of a writing transaction: without it the views show no rows."""
    security = driver_of(connection).row_security(connection)
    if security is not None:
        security.assign(connection, _tenant(security, tenant_id, datasets, sets))


@contextmanager
def as_role(connection: Connection, *, stands: bool) -> Iterator[None]:
    """Run the block as the role, where it exists; then return to the engine's own user."""
    security = driver_of(connection).row_security(connection)
    if not stands or security is None:
        yield
        return
    security.assume(connection)
    yield  # after an exception the savepoint takes the role back
    security.leave(connection)


def _tenant(security: RowSecurity, tenant_id: str, datasets: "Datasets", sets: Iterable[Dataset]) -> dict[str, str]:
    """Return the settings by which the database restricts a transaction to a tenant."""
    named = {"lodger.tenant": tenant_id}
    for rows in sets:
        if isinstance(rows, TableDataset):
            related = [datasets.of_table(table, rows.database) for table in _led_to(rows)]
            for each in (rows, *related):
                value = _value(each, tenant_id)
                if each is not None and value is not None:
                    named[security.setting(each.name)] = str(value)
                    if each.tenant_setting is not None:
                        named[each.tenant_setting] = str(value)
    return named


def _value(rows: Dataset | None, tenant_id: str) -> Any:
    """Return the tenant's value in a dataset; None if the tenant has no access to it."""
    try:
        return None if rows is None else rows.tenant_value(tenant_id)
    except CallRefused:  # has no part in it: its view shows nothing
        return None
