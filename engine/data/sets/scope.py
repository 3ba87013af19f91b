"""The one place where a statement is bound to its tenant. Every statement on tenants' rows is begun here.

A script's filters, keys and values are added to these statements with AND, so they can only narrow them.
"""

from typing import Any

import sqlalchemy as sa

from lodger.engine.core.refusal import denied
from lodger.engine.data.sets.dataset import Collection, Dataset, OwnTable
from lodger.engine.store.drivers.expressions import same_text
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.schema.script_data import documents, kv

#: Rows that carry their tenant.
TenantTable = Dataset | OwnTable


def _own(**columns: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that columns have the values that are bound under these names."""
    return sa.and_(*(same_text(column, sa.bindparam(name, type_=sa.String())) for name, column in columns.items()))


_own_document = _own(tenant=documents.c.tenant_id, of=documents.c.collection, key=documents.c.id)
_own_value = _own(tenant=kv.c.tenant_id, of=kv.c.scope, name=kv.c.key)
_insert_document = Prepared(
    lambda _driver: sa.insert(documents).values(
        tenant_id=sa.bindparam("tenant"), collection=sa.bindparam("of"), id=sa.bindparam("key"), body=sa.bindparam("text"),
        created_us=sa.bindparam("now"), updated_us=sa.bindparam("now"),
    )
)  # fmt: skip
_update_document = Prepared(
    lambda _driver: (
        sa.update(documents).where(_own_document).values(body=sa.bindparam("text"), updated_us=sa.bindparam("now"))
    )
)

_VALUE: dict[str, Any] = {
    "tenant_id": sa.bindparam("tenant", type_=sa.String()), "scope": sa.bindparam("of", type_=sa.String()),
    "key": sa.bindparam("name", type_=sa.String()), "value": sa.bindparam("text", type_=sa.String()),
    "expires_us": sa.bindparam("until", type_=sa.BigInteger()),
    "updated_us": sa.bindparam("now", type_=sa.BigInteger()),
}  # fmt: skip
_update_value = Prepared(
    lambda _driver: (
        sa.update(kv).where(_own_value).values({name: _VALUE[name] for name in ("value", "expires_us", "updated_us")})
    )
)
_insert_value = Prepared(
    lambda _driver: sa.insert(kv).from_select(
        list(_VALUE), sa.select(*_VALUE.values()).where(~sa.select(sa.literal_column("1")).where(_own_value).exists())
    )
)
_delete_value = Prepared(lambda _driver: sa.delete(kv).where(_own_value))
_delete_document = Prepared(lambda _driver: sa.delete(documents).where(_own_document))


class Scope:
    """Statements that see one tenant's rows of one dataset and no others."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id

    def predicate(self, rows: TenantTable) -> sa.ColumnElement[bool]:
        """Return the tenant's predicate; no other code writes it for data that scripts can use."""
        column, value = rows.tenant_column, self._value(rows)
        if isinstance(column.type, sa.String):
            return same_text(column, sa.literal(value, sa.String()))
        if isinstance(column.type, sa.types.TypeDecorator) and isinstance(column.type.impl_instance, sa.String):
            return same_text(column, sa.literal(value, column.type))
        own: sa.ColumnElement[bool] = column == value
        return own

    def _value(self, rows: TenantTable) -> Any:
        """Return the bound tenant as a dataset's tenant column stores it."""
        value = rows.tenant_value(self.tenant_id)
        if value is None:  # would match rows without a tenant
            raise denied("this tenant has no access to that set")
        return value

    def _within(self, rows: TenantTable) -> sa.ColumnElement[bool]:
        """Return the condition that a row belongs to this tenant and dataset."""
        own = self.predicate(rows)
        return sa.and_(own, documents.c.collection == rows.name) if isinstance(rows, Collection) else own

    def select(self, rows: TenantTable, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
        """Return a query of these columns, restricted to the tenant."""
        return sa.select(*columns).select_from(rows.table).where(self._within(rows))

    def update(self, rows: TenantTable) -> sa.Update:
        """Return an UPDATE statement, restricted to the tenant."""
        return sa.update(rows.table).where(self._within(rows))

    def delete(self, rows: TenantTable) -> sa.Delete:
        """Return a DELETE statement, restricted to the tenant."""
        return sa.delete(rows.table).where(self._within(rows))

    def insert_document(self, connection: sa.Connection, rows: Collection, key: str, body: str, now_us: int) -> None:
        """Insert a document. A server executes this, and the two below, with the next awaited statement."""
        _insert_document.rows(connection, self._document(rows, key) | {"text": body, "now": now_us})

    def update_document(self, connection: sa.Connection, rows: Collection, key: str, body: str, now_us: int) -> None:
        """Replace the body of a document that this transaction has locked."""
        _update_document.rows(connection, self._document(rows, key) | {"text": body, "now": now_us})

    def delete_document(self, connection: sa.Connection, rows: Collection, key: str) -> None:
        """Delete a document that this transaction has locked."""
        _delete_document.rows(connection, self._document(rows, key))

    def set_value(
        self, connection: sa.Connection, of: str, key: str, value: str | None, expires_us: int | None, now_us: int
    ) -> None:
        """Set or, with None, delete the value of a key; the caller holds the tenant's lock."""
        place: dict[str, Any] = {"tenant": self.tenant_id, "of": of, "name": key}
        if value is None:
            _delete_value.rows(connection, place)
            return
        values = place | {"text": value, "until": expires_us, "now": now_us}
        _update_value.rows(connection, values)
        _insert_value.rows(connection, values)

    def _document(self, rows: Collection, key: str) -> dict[str, Any]:
        """Return the key columns of a document."""
        return {"tenant": self._value(rows), "of": rows.name, "key": key}

    def insert(self, rows: TenantTable, values: dict[str, Any]) -> sa.Insert:
        """Begin an insert of one row; its tenant is always this one, whatever the values contain."""
        fixed: dict[str, Any] = {rows.tenant_column.key: self._value(rows)}
        if isinstance(rows, Collection):
            fixed["collection"] = rows.name
        return sa.insert(rows.table).values(values | fixed)
