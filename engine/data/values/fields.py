"""What a filter can name: a column of an exposed table, or a path inside a collection's document."""

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column

from lodger.engine.core import strict_json
from lodger.engine.data.values.kinds import Kind
from lodger.engine.store.stores.features import BOOLEAN, NULL, NUMBER, OTHER, STRING, TIME

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
    """A place inside a document; ``parts`` are checked names, so a path built from them holds nothing else."""

    name: str
    parts: tuple[str, ...]

    def found(self, document: Any) -> Any:
        """Return the wire value at this path, None when nothing is there."""
        value = document
        for part in self.parts:
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        return value


@dataclass(frozen=True, slots=True, eq=False)
class RelatedField:
    """A column of the row that a foreign key leads to; it can be filtered by, and nothing else.

    Attributes:
        name: as scripts say it, ``customer.state``.
        link: the column that leads there.
        target: the set it leads to (:class:`lodger.engine.data.sets.dataset.TableDataset`).
        inner: the column there.
    """

    name: str
    link: ColumnField
    target: Any
    inner: ColumnField

    @property
    def hidden(self) -> str:
        """Under which name a row holds its related one while it is asked; no column is called so."""
        return f".{self.link.name}"


#: What belongs to the row itself: it can also be ordered by, grouped by and measured.
OwnField = ColumnField | PathField
Field = OwnField | RelatedField


def classed(value: Any) -> tuple[int, Any]:
    """Return a document value's class and what is compared within it; lists and objects compare alike."""
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
