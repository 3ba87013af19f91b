"""Fields of filters: columns of exposed tables, and paths inside documents of collections."""

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column

from lodger.engine.core import strict_json
from lodger.engine.data.values.kinds import Kind
from lodger.engine.store.drivers.features import BOOLEAN, NULL, NUMBER, OTHER, STRING, TIME

#: A path inside a document: names joined by points. Other names can be stored, not filtered by.
PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62}){0,7}", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnField:
    """A column that scripts may read.

    Attributes:
        name: as scripts say it; never goes into SQL text.
        kind: decides wire form and comparison.
        column: the table's own column object; the only source of identifiers in SQL.
        nullable: whether null may be written.
        max_length: characters, None when unbounded.
        scale: digits after the point of a decimal, None when unbounded.
        choices: the texts of an enumeration, None otherwise.
    """

    name: str
    kind: Kind
    column: Column[Any]
    nullable: bool = True
    max_length: int | None = None
    scale: int | None = None
    choices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PathField:
    """A path inside a document; its ``parts`` are checked names."""

    name: str
    parts: tuple[str, ...]

    def found(self, document: Any) -> Any:
        """Return the wire value at this path, None if there is none, and the list if the path leads through one."""
        value = document
        for part in self.parts:
            if isinstance(value, list):
                break
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def every(self, document: Any) -> list[Any]:
        """Return the wire values at this path through the elements of lists, those of a list at its end, too; none is null."""
        values: list[Any] = [document]
        held = values
        for part in self.parts:
            held = [value.get(part) for value in values if isinstance(value, dict)]
            values = [each for value in held for each in (value if isinstance(value, list) else [value])]
        return [value for value in (*values, *(each for each in held if isinstance(each, list))) if value is not None]


@dataclass(frozen=True, slots=True, eq=False)
class RelatedField:
    """A column of a related row; it can only be used in filters.

    Attributes:
        name: as scripts say it, ``customer.state``.
        link: the foreign key column.
        target: the related dataset (:class:`lodger.engine.data.sets.dataset.TableDataset`).
        inner: the column of the related dataset.
    """

    name: str
    link: ColumnField
    target: Any
    inner: ColumnField

    @property
    def hidden(self) -> str:
        """The name under which a row holds its related row during filtering; no column has it."""
        return f".{self.link.name}"


#: What belongs to the row itself: it can also be ordered by, grouped by and measured.
OwnField = ColumnField | PathField
Field = OwnField | RelatedField


def classed(value: Any) -> tuple[int, Any]:
    """Return (type rank, comparable form) of a document's value; lists and objects compare as equal."""
    if value is None:
        return NULL, 0
    if isinstance(value, bool):
        return BOOLEAN, int(value)
    if isinstance(value, int | float):
        return NUMBER, value
    if isinstance(value, str):
        return STRING, value
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(strict_json.INSTANT), str):
        return TIME, value[strict_json.INSTANT]
    return OTHER, 0


__all__ = [
    "BOOLEAN", "NULL", "NUMBER", "OTHER", "PATH", "STRING", "TIME", "ColumnField", "Field", "OwnField", "PathField", "RelatedField",
    "classed",
]  # fmt: skip
