"""Things of a tenant that have a name, each a row of one table: found, listed, counted and deleted alike."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, Table, delete, func, select

from lodger.engine.core.errors import NotFound
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.tenants import tenants

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """The things of one table with the key (tenant_id, name).

    Attributes:
        rows: selects the rows, with all that a thing is made of.
        make: makes a thing of a row.
        unknown: the error for a tenant and a name that it does not have.
    """

    table: Table
    rows: Select[Any]
    make: Callable[[Any], T]
    unknown: Callable[[str, str], NotFound]

    def find(self, connection: Connection, tenant_id: str, name: str) -> T | None:
        """Return a tenant's thing of this name, None if there is none."""
        c = self.table.c
        row = connection.execute(self.rows.where(c.tenant_id == tenant_id, c.name == name)).first()
        return None if row is None else self.make(row)

    def get(self, connection: Connection, tenant_id: str, name: str) -> T:
        """Return a tenant's thing of this name.

        Raises:
            NotFound: :attr:`unknown`.
        """
        found = self.find(connection, tenant_id, name)
        if found is None:
            raise self.unknown(tenant_id, name)
        return found

    def list_all(self, connection: Connection, tenant_id: str) -> list[T]:
        """Return a tenant's things, by name.

        Raises:
            NotFound: tenant_unknown.
        """
        tenants.get(connection, tenant_id)
        c = self.table.c
        return [
            self.make(row) for row in connection.execute(self.rows.where(c.tenant_id == tenant_id).order_by(c.name))
        ]

    def count(self, connection: Connection, tenant_id: str) -> int:
        """Return how many things of the table a tenant has."""
        return connection.scalar(select(func.count()).where(self.table.c.tenant_id == tenant_id)) or 0

    def erase(self, connection: Connection, tenant_id: str, name: str) -> T:
        """Lock the tenant, delete a thing and return it.

        Raises:
            NotFound: :attr:`unknown`.
        """
        ready_queue.lock(connection, [tenant_id])
        found = self.get(connection, tenant_id, name)
        c = self.table.c
        prepared.write(connection, delete(self.table).where(c.tenant_id == tenant_id, c.name == name))
        return found
