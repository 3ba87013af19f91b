"""The one place where a statement is bound to its tenant. Every statement on tenants' rows is begun here.

A script's filters, keys and values are added to these statements with AND, so they can only narrow them.
"""

from typing import Any, Protocol

from sqlalchemy import (
    Column,
    Delete,
    Insert,
    Select,
    String,
    Table,
    Update,
    and_,
    delete,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy import types as sql_types
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core.refusal import denied
from lodger.engine.data.sets.dataset import Collection
from lodger.engine.store.drivers.expressions import same_text
from lodger.engine.store.schema.script_data import documents


class TenantTable(Protocol):
    """Rows that carry their tenant."""

    @property
    def table(self) -> Table:
        """The table of the rows."""
        ...

    @property
    def tenant_column(self) -> Column[Any]:
        """The column with the tenant."""
        ...

    def tenant_value(self, tenant_id: str) -> Any:
        """Return a tenant's id as this table stores it."""
        ...


class Scope:
    """Statements that see one tenant's rows of one set and no others."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id

    def predicate(self, rows: TenantTable) -> ColumnElement[bool]:
        """Return the tenant's predicate; no other code writes it for data that scripts can use."""
        column, value = rows.tenant_column, self._value(rows)
        if isinstance(column.type, String):
            return same_text(column, literal(value, String()))
        if isinstance(column.type, sql_types.TypeDecorator) and isinstance(column.type.impl_instance, String):
            return same_text(column, literal(value, column.type))
        own: ColumnElement[bool] = column == value
        return own

    def _value(self, rows: TenantTable) -> Any:
        value = rows.tenant_value(self.tenant_id)
        if value is None:  # would match rows without a tenant
            raise denied("this tenant has no access to that set")
        return value

    def _within(self, rows: TenantTable) -> ColumnElement[bool]:
        own = self.predicate(rows)
        return and_(own, documents.c.collection == rows.name) if isinstance(rows, Collection) else own

    def select(self, rows: TenantTable, *columns: ColumnElement[Any]) -> Select[Any]:
        """Begin a query of these columns."""
        return select(*columns).select_from(rows.table).where(self._within(rows))

    def update(self, rows: TenantTable) -> Update:
        """Begin an update."""
        return update(rows.table).where(self._within(rows))

    def delete(self, rows: TenantTable) -> Delete:
        """Begin a delete."""
        return delete(rows.table).where(self._within(rows))

    def insert(self, rows: TenantTable, values: dict[str, Any]) -> Insert:
        """Begin an insert of one row; its tenant is always this one, whatever the values contain."""
        fixed: dict[str, Any] = {rows.tenant_column.key: self._value(rows)}
        if isinstance(rows, Collection):
            fixed["collection"] = rows.name
        return insert(rows.table).values(values | fixed)
