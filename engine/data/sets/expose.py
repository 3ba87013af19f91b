"""Turns a platform's SQLAlchemy table or mapped class into a dataset that scripts see as ``db.NAME``.

Declarations through which one tenant could learn about another are refused here, before any script runs.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypedDict

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Table
from sqlalchemy.exc import NoSuchTableError

from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused, denied
from lodger.engine.data.sets.dataset import KeySource, Reference, TableDataset
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.data.sets.uniqueness import require_unique_within_tenant
from lodger.engine.data.values import kinds
from lodger.engine.data.values.fields import ColumnField
from lodger.engine.data.values.kinds import KEYED, Kind

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
#: Names that mean something to JavaScript or to the filter language.
TAKEN = frozenset({"then", "constructor", "prototype", "toJSON", "toString", "valueOf", "and", "or", "not"})

#: Which changes of a table are written down.
FEEDS = ("reported", "trigger", "off")

_KINDS: tuple[tuple[type[Any], Kind], ...] = (
    (sa.Boolean, Kind.BOOL),
    (sa.Uuid, Kind.UUID),
    (sa.DateTime, Kind.INSTANT),
    (sa.Date, Kind.DATE),
    (sa.BigInteger, Kind.BIGINT),
    (sa.Integer, Kind.INT),
    (sa.Float, Kind.FLOAT),
    (sa.Numeric, Kind.DECIMAL),
    (sa.JSON, Kind.JSON),
    (sa.LargeBinary, Kind.BYTES),
    (sa.String, Kind.TEXT),
)


_SETTING = re.compile(r"[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*", re.ASCII)


class ExposeOptions(TypedDict, total=False):
    """Further options of an exposed table; see :func:`expose`."""

    read: Sequence[str | Column[Any]] | None
    write: Sequence[str | Column[Any]]
    name: str | None
    insert: bool | None
    delete: bool | None
    allow_unique: Iterable[str]
    tenant_value: Callable[[str], Any] | None
    feed: Literal["reported", "trigger", "off"] | None
    tenant_setting: str | None


def expose(
    source: Any,
    *,
    tenant_column: str | Column[Any],
    read: Sequence[str | Column[Any]] | None = None,
    write: Sequence[str | Column[Any]] = (),
    name: str | None = None,
    insert: bool | None = None,
    delete: bool | None = None,
    allow_unique: Iterable[str] = (),
    tenant_value: Callable[[str], Any] | None = None,
    database: ForeignDatabase | None = None,
    feed: str | None = None,
    tenant_setting: str | None = None,
) -> TableDataset:
    """Describe a table as scripts may see it.

    Args:
        source: a Core ``Table`` or a class mapped to one table.
        tenant_column: the column that holds the row's tenant.
        read: columns that may be read, filtered and ordered by; None is all but the tenant's.
        write: columns that may be inserted and updated; they must be readable. Never the tenant's column, nor a key
            that the database or Lodger generates.
        name: name of the dataset in ``db.NAME``; the table's name when None.
        insert, delete: whether rows may be inserted and deleted; None is yes when a column may be written.
        allow_unique: names of unique constraints or indexes without the tenant's column that scripts may write
            nevertheless: their violations reveal values of other tenants.
        tenant_value: converts Lodger's tenant id to the column's value; None converts by the column's type.
        database: where the table is; None is the ledger's own database.
        feed: which changes scripts can follow. ``reported``: those made through Lodger and those that the platform reports;
            ``trigger``: all, by triggers that ``prepare`` makes; ``off``: none. None is ``reported`` where the key allows it.
        tenant_setting: session variable that policies of the table's own row security read the tenant from, such as
            ``app.tenant``: it is set to the tenant column's value in each transaction for a script. PostgreSQL only.

    Raises:
        InputError: with ``code`` beginning with ``expose_``.
    """
    if tenant_setting is not None and not _SETTING.fullmatch(tenant_setting):
        raise InputError("expose_setting", setting=tenant_setting)
    table, names = _table(source)
    set_name = name if name is not None else table.name
    if not NAME.fullmatch(set_name) or set_name in TAKEN:
        raise InputError("expose_name", name=set_name)
    tenant = _column(table, names, tenant_column)
    key_column = _key(table, tenant)
    by_column = {column: label for label, column in names.items()}
    reads = (
        [_column(table, names, item) for item in read]
        if read is not None
        else [column for column in table.columns if column is not tenant and column in by_column]
    )
    if table.name.startswith("lodger_"):
        raise InputError("expose_ledger", table=table.name)
    writes = [_column(table, names, item) for item in write]
    if tenant in writes:
        raise InputError("expose_tenant", table=table.name, column=tenant.name)
    made = [
        column.name
        for column in writes
        if column.computed is not None or (column.identity is not None and column.identity.always is True)
    ]
    if made:
        raise InputError("expose_computed", table=table.name, column=made[0])
    hidden = [column.name for column in writes if column not in reads]
    if hidden:
        raise InputError("expose_write_only", table=table.name, column=hidden[0])
    fields = {
        by_column[column]: _field(table, column, by_column[column]) for column in dict.fromkeys([key_column, *reads])
    }
    key = fields[by_column[key_column]]
    require_unique_within_tenant(table, tenant, writes, frozenset(allow_unique))
    writable = frozenset(by_column[column] for column in writes)
    needed = _unwritable_required(table, tenant, key_column, writes)
    may_insert = bool(writes) and not needed if insert is None else insert
    if may_insert and needed:
        raise InputError("expose_insert", table=table.name, column=needed[0])
    return TableDataset(
        name=set_name,
        table=table,
        origin=table,
        tenant_column=tenant,
        tenant_value=tenant_value or _tenant_reader(set_name, table, tenant),
        key=key,
        key_source=_key_source(table, key, key.name in writable),
        fields=fields,
        writable=writable,
        insertable=may_insert,
        deletable=bool(writes) if delete is None else delete,
        required=frozenset(by_column[c] for c in writes if not c.nullable and not _has_default(c)),
        references=_references(writes, by_column),
        database=database,
        links=_links(fields),
        unique=_unique_within(table, tenant, by_column, frozenset(fields)),
        feed=_feed(table, key, feed),
        allow_unique=frozenset(allow_unique),
        tenant_setting=tenant_setting,
    )


def table_name(source: Any) -> str | None:
    """Return the name of a table, given as a text or as a model of Django; None for anything else."""
    name = source if isinstance(source, str) else getattr(getattr(source, "_meta", None), "db_table", None)
    return name if isinstance(name, str) else None


def reflected(connection: Connection, metadata: sa.MetaData, name: str) -> sa.Table:
    """Return a table as the database describes it.

    Args:
        metadata: the collection of the database's reflected tables, by which they refer to each other.
        name: name of the table, with a schema before a dot if need be.

    Raises:
        InputError: expose_source.
    """
    schema, _, bare = name.rpartition(".")
    try:
        return sa.Table(bare, metadata, schema=schema or None, autoload_with=connection)
    except NoSuchTableError:
        raise InputError("expose_source.absent", name=name) from None


def _feed(table: Table, key: ColumnField, wish: str | None) -> str:
    """Return how the changes of a table are recorded."""
    if wish not in (None, *FEEDS):
        raise InputError("expose_feed.value", wish=wish, feeds=FEEDS)
    if key.kind in KEYED:
        return wish or "reported"
    if wish in (None, "off"):
        return "off"
    raise InputError("expose_feed", table=table.name, kind=key.kind)


def _table(source: Any) -> tuple[Table, dict[str, Column[Any]]]:
    """Return the table of a mapped class, or a table itself, with its columns by the names that scripts see."""
    if isinstance(source, Table):
        return source, {column.key: column for column in source.columns}
    # Imported only for a mapped class, which comes with it imported.
    from sqlalchemy.orm import Mapper

    mapper = sa.inspect(source, raiseerr=False)
    if isinstance(mapper, Mapper) and mapper.inherits is not None:
        raise InputError("expose_source.shared", source=source, owner=mapper.inherits.class_.__name__)
    if isinstance(mapper, Mapper) and isinstance(mapper.local_table, Table) and len(mapper.tables) == 1:
        return mapper.local_table, {
            attribute.key: attribute.columns[0]
            for attribute in mapper.column_attrs
            if isinstance(attribute.columns[0], Column)
        }
    raise InputError("expose_source", source=source)


def _column(table: Table, names: dict[str, Column[Any]], item: Any) -> Column[Any]:
    """Return the column that an argument names."""
    found = names.get(item) if isinstance(item, str) else None
    if found is None and not isinstance(item, str):
        found = next((column for column in names.values() if column is getattr(item, "expression", item)), None)
        if found is None:
            found = names.get(getattr(item, "key", ""))
    if found is None:
        raise InputError("expose_column", table=table.name, column=item, names=names)
    return found


def _key(table: Table, tenant: Column[Any]) -> Column[Any]:
    """Return the primary key column beside the tenant's."""
    left = [column for column in table.primary_key.columns if column is not tenant]
    if len(left) != 1:
        raise InputError("expose_key", table=table.name)
    return left[0]


def _field(table: Table, column: Column[Any], name: str) -> ColumnField:
    """Return a column as scripts see it."""
    kind = next((made for base, made in _KINDS if isinstance(column.type, base)), None)
    if kind is None:
        raise InputError("expose_type", table=table.name, column=column.name, type=column.type)
    if not NAME.fullmatch(name) or name in TAKEN:
        raise InputError("expose_name.column", name=name)
    choices = tuple(column.type.enums) if isinstance(column.type, sa.Enum) else None
    return ColumnField(
        name=name,
        kind=kind,
        column=column,
        nullable=bool(column.nullable),
        max_length=getattr(column.type, "length", None) if kind is Kind.TEXT else None,
        scale=getattr(column.type, "scale", None) if kind is Kind.DECIMAL else None,
        choices=choices,
    )


def _unique_within(
    table: Table, tenant: Column[Any], by_column: dict[Column[Any], str], shown: frozenset[str]
) -> frozenset[frozenset[str]]:
    """Return the sets of visible columns that are unique within a tenant."""
    plain = [list(each.columns) for each in table.constraints if isinstance(each, sa.UniqueConstraint)]
    for index in table.indexes:
        partial = any(options.get("where") is not None for options in index.dialect_options.values())
        if index.unique and not partial and all(isinstance(each, Column) for each in index.expressions):
            plain.append(list(index.columns))
    named = (frozenset(by_column.get(column, "") for column in columns if column is not tenant) for columns in plain)
    return frozenset(each for each in named if each and each <= shown)


def _has_default(column: Column[Any]) -> bool:
    return any(item is not None for item in (column.default, column.server_default, column.computed, column.identity))


def _unwritable_required(table: Table, tenant: Column[Any], key: Column[Any], writes: list[Column[Any]]) -> list[str]:
    """Return the columns that need a value which scripts cannot write, so that they cannot insert rows."""
    return [
        column.name
        for column in table.columns
        if not column.nullable and not _has_default(column) and column not in (tenant, key) and column not in writes
    ]


def _key_source(table: Table, key: ColumnField, writable: bool) -> KeySource:
    """Return where the key of a new row comes from: the script, Lodger (a UUID or a text) or the database."""
    if writable:
        return KeySource.GIVEN
    if key.kind is Kind.UUID:
        return KeySource.UUID
    if key.kind is Kind.TEXT:
        return KeySource.TEXT
    if table.autoincrement_column is key.column or key.column.identity is not None:
        return KeySource.DATABASE
    return KeySource.GIVEN


def _references(writes: list[Column[Any]], by_column: dict[Column[Any], str]) -> dict[str, Reference]:
    """Return the foreign keys that scripts may write, by field."""
    return {
        by_column[column]: Reference(link.column.table, link.column)
        for column in writes
        for link in column.foreign_keys
    }


def _links(fields: dict[str, ColumnField]) -> dict[str, tuple[str, Table, Column[Any]]]:
    """Return the foreign keys of visible columns by relation name."""
    found: dict[str, tuple[str, Table, Column[Any]]] = {}
    for name, item in fields.items():
        for link in item.column.foreign_keys:
            short = name.removesuffix("_id")
            found[short if short and short not in fields else f"{name}_row"] = (name, link.column.table, link.column)
    return found


def _tenant_reader(name: str, table: Table, tenant: Column[Any]) -> Callable[[str], Any]:
    """Return the function that converts a tenant's id to a value of the tenant column; it raises CallRefused (denied) if there is
    none."""
    field = _field(table, tenant, "tenant")

    def tenant_value(tenant_id: str) -> Any:
        """Return the tenant's id as the tenant column stores it, None if the column cannot hold it."""
        try:
            given: Any = int(tenant_id) if _NUMBER.fullmatch(tenant_id) and field.kind is Kind.INT else tenant_id
            tenant_value = kinds.read(field.kind, given, "tenant")
        except CallRefused:
            tenant_value = None
        if (
            tenant_value is None or str(tenant_value) != tenant_id
        ):  # 07 and 7 are two tenants, and only one of them can be meant
            raise denied(f"this tenant has no access to {name}")
        return uuid.UUID(tenant_value) if isinstance(tenant.type, sa.Uuid) and tenant.type.as_uuid else tenant_value

    return tenant_value
