"""The datasets that scripts address as ``db.NAME``: exposed tables and collections of JSON documents."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Table

from lodger.engine.core.refusal import bad_request
from lodger.engine.data.values.fields import PATH, ColumnField, OwnField, PathField
from lodger.engine.data.values.kinds import Kind
from lodger.engine.store.schema.script_data import documents

if TYPE_CHECKING:
    from lodger.engine.data.sets.foreign import ForeignDatabase

#: The column of a collection that is not inside the document.
DOCUMENT_ID = ColumnField("id", Kind.TEXT, documents.c.id, nullable=False, max_length=200)


class KeySource(StrEnum):
    """Where a new row's key comes from."""

    UUID = "uuid"  # made at the call
    TEXT = "text"  # made at the call, as text
    GIVEN = "given"  # the script says it
    DATABASE = "database"  # made by the database at commit; until then a token stands for it


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key that scripts may write: it must reference a row of the same tenant in an exposed dataset."""

    table: Table
    column: Column[Any]


@dataclass(frozen=True, slots=True, eq=False)
class TableDataset:
    """The exposed part of a platform's table. Made by :func:`lodger.engine.data.sets.expose.expose` only.

    Attributes:
        table: the object that statements name: the platform's table, or a view of it.
        origin: the platform's table.
        database: where it is; None is the ledger's own database.
        referred: columns that other exposed datasets refer to.
        links: foreign keys among the columns, by the name under which they are followed: the column's name here, the table and the
            column that it leads to.
        unique: columns that together are unique within a tenant.
        feed: how its changes are recorded: ``reported``, ``trigger`` or ``off``.
        tenant_setting: session variable of the database that the platform's own policies read the tenant from.
        allow_unique: constraints or columns, unique over all tenants, that the platform allows scripts to write.
    """

    name: str
    table: Table
    origin: Table
    tenant_column: Column[Any]
    tenant_value: Callable[[str], Any]
    key: ColumnField
    key_source: KeySource
    fields: dict[str, ColumnField]
    writable: frozenset[str]
    insertable: bool
    deletable: bool
    required: frozenset[str] = frozenset()
    references: dict[str, Reference] = field(default_factory=dict)
    database: "ForeignDatabase | None" = None
    referred: frozenset[Column[Any]] = frozenset()
    links: dict[str, tuple[str, Table, Column[Any]]] = field(default_factory=dict)
    unique: frozenset[frozenset[str]] = frozenset()
    feed: str = "reported"
    tenant_setting: str | None = None
    allow_unique: frozenset[str] = frozenset()

    def lookup(self, name: str) -> OwnField:
        """Return the field that a filter or an order names.

        Raises:
            CallRefused: it is not among the columns that may be read.
        """
        if name not in self.fields:
            columns = ", ".join(sorted(self.fields))
            raise bad_request(f"{self.name} has no column {name[:100]!r}; its columns are: {columns}")
        return self.fields[name]

    @property
    def shown(self) -> tuple[ColumnField, ...]:
        """The columns that scripts see, in their declared order."""
        return tuple(self.fields.values())


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table of Lodger's, whose rows carry their tenant's id as it is."""

    table: Table

    @property
    def tenant_column(self) -> Column[Any]:
        """The column with the tenant."""
        return self.table.c.tenant_id

    def tenant_value(self, tenant_id: str) -> str:
        """Return the tenant's id, unchanged."""
        return tenant_id


@dataclass(frozen=True, slots=True)
class Collection(OwnTable):
    """A collection of documents; it needs no set-up. Its table is Lodger's own and shared by all tenants."""

    table: Table = field(default=documents, kw_only=True)
    name: str

    @property
    def key(self) -> ColumnField:
        """The field that identifies a document."""
        return DOCUMENT_ID

    def lookup(self, name: str) -> OwnField:
        """Return the field of a path like ``address.city``.

        Raises:
            CallRefused: it is not a path of plain names.
        """
        if name == "id":
            return DOCUMENT_ID
        if not PATH.fullmatch(name):
            raise bad_request(
                "a field is a name, or names joined by dots, of letters, digits and _ only; "
                "a path enters all elements of a list, without a number"
            )
        return PathField(name, tuple(name.split(".")))


Dataset = TableDataset | Collection


def database_of(rows: Dataset) -> "ForeignDatabase | None":
    """Return the database that a dataset is in, None for the ledger's."""
    return rows.database if isinstance(rows, TableDataset) else None
