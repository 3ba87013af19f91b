"""Properties of the ledger's tables besides columns, constraints and indexes, such as triggers. Drivers write them in their SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from sqlalchemy import Table

_KEY = "lodger_guards"


class Stored(NamedTuple):
    """Columns that count towards the bytes that a tenant stores; the database counts them, by triggers.

    Attributes:
        counter: the counting column of ``lodger_storage``.
        updated: whether these columns are ever updated.
    """

    counter: str
    columns: tuple[str, ...]
    updated: bool = False


class ScriptAccess(NamedTuple):
    """Rights of the role of scripts on the rows of one tenant.

    Attributes:
        privileges: as in GRANT.
        tenant: column of the tenant.
        setting: the database setting that holds the tenant.
    """

    privileges: str = "SELECT, INSERT, UPDATE, DELETE"
    tenant: str = "tenant_id"
    setting: str = "lodger.tenant"


class RowTrigger(NamedTuple):
    """A statement that runs after writes of a row; its SQL is the same for every database.

    Attributes:
        events: the SQL of each event and of its condition, which compares columns of ``NEW`` and ``OLD``, by the event's name.
        condition: a further condition, which may query other tables.
    """

    name: str
    events: Mapping[str, tuple[str, str]]
    condition: str
    statement: str


class Churn(Enum):
    """How rows change, for the database's clean-up."""

    #: At every slot.
    HOT = auto()
    #: They are inserted, and deleted after a time.
    GROWING = auto()


@dataclass(frozen=True, slots=True)
class TableGuards:
    """The guards of one table.

    Attributes:
        append_only: rows are never updated, and deleted only under this condition on ``OLD``, which is SQL.
    """

    stored: Stored | None = None
    scripts: ScriptAccess | None = None
    churn: Churn | None = None
    append_only: str | None = None
    triggers: tuple[RowTrigger, ...] = ()


def guards(**needs: Any) -> dict[str, TableGuards]:
    """Return the ``info`` of a table with these :class:`TableGuards`."""
    return {_KEY: TableGuards(**needs)}


def guards_of(table: Table) -> TableGuards:
    """Return the guards of a table."""
    found: TableGuards = table.info.get(_KEY) or TableGuards()
    return found
