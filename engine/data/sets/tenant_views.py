"""Views of datasets that show one tenant's rows, where the database has row security (:mod:`lodger.engine.store.drivers.features`)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Table

from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.store.drivers.features import View, ViewPlan
from lodger.engine.store.drivers.postgresql.row_security import RowSecurity


def view_dataset(rows: TableDataset, schema: str) -> TableDataset:
    """Return the same dataset, read and written through its view."""
    table = Table(rows.name, sa.MetaData(), *(_copied(column) for column in _shown(rows)), schema=schema)
    fields = {name: replace(item, column=table.c[item.column.key]) for name, item in rows.fields.items()}
    tenant, key = table.c[rows.tenant_column.key], fields[rows.key.name]
    return replace(rows, table=table, tenant_column=tenant, key=key, fields=fields)


def _copied(column: Column[Any]) -> Column[Any]:
    """Return a copy of a table's column for its view."""
    made: Column[Any] = column._copy()
    # A copied enumeration would take the view's schema for its own.
    made.type = column.type
    # What it refers to is not in this metadata; the database's own constraint on the table below holds all the same.
    made.foreign_keys.clear()
    made.constraints.clear()
    return made


def _shown(rows: TableDataset) -> list[Column[Any]]:
    """Return the view's columns, in the table's order."""
    wanted = {rows.tenant_column, *(item.column for item in rows.fields.values()), *rows.referred}
    return [column for column in rows.origin.columns if column in wanted or _filled(column)]


def _filled(column: Column[Any]) -> bool:
    """Whether the platform's mapping gives a column a value on insert or update."""
    return column.default is not None or column.onupdate is not None


def view(rows: TableDataset, security: RowSecurity, connection: Connection) -> View:
    """Return the statements that create a dataset's view and grant it to the role."""
    shown = _shown(rows)
    written = {rows.fields[name].column for name in rows.writable}
    inserted = {rows.tenant_column, rows.key.column, *written} | {each for each in shown if _filled(each)}
    updated = written | {each for each in shown if each.onupdate is not None}
    return security.view(
        ViewPlan(
            rows.name,
            rows.origin,
            security.home_of(connection, rows.origin),
            rows.tenant_column,
            shown,
            frozenset(inserted) if rows.insertable else None,
            frozenset(updated) if rows.writable else None,
            deletable=rows.deletable,
            checked=bool(rows.writable),
        )
    )


def statements(
    security: RowSecurity, sets: Iterable[TableDataset], connection: Connection, *, ledger: bool
) -> list[str]:
    """Return the statements that create the role, the schema and the views of these datasets, in order.

    Args:
        ledger: the database is the ledger's own.
    """
    views = [view(rows, security, connection) for rows in sets]
    return [*security.statements(ledger=ledger), *(each for made in views for each in made.statements)]
