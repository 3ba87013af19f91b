"""The MetaData of all of Lodger's tables, with fixed names of constraints for migrations."""

from typing import Any

from sqlalchemy import Column, MetaData, String, Table
from sqlalchemy.schema import SchemaItem

#: Key in the ``info`` of a wing's table with rows of tenants that an archive contains; its value checks a row and its decoded JSON
#: columns, and raises ValueError, TypeError, LookupError or InputError, or is None.
ARCHIVED = "archived"
#: Key in the ``info`` of a table with encrypted values, in columns ``key_id`` and ``sealed``: returns, of a row, the place that its value
#: is bound to.
SEALED = "sealed"
#: Key in the ``info`` of a table: its columns that are about what is under way in one ledger, which a restored row begins without.
UNDER_WAY = "under way"

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def table_of_tenants(name: str, *more: SchemaItem, **options: Any) -> Table:
    """Return a table whose rows belong to tenants: the first part of its key is the tenant's id."""
    return Table(name, metadata, Column("tenant_id", String(200), primary_key=True), *more, **options)
