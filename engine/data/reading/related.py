"""Related rows through foreign keys: ``{"customer.state": "gold"}`` in a filter, ``include: ["customer"]`` in a query.

Both datasets must be exposed, in one database, readable for the run, and the rows the tenant's. A row without a related one has nulls
there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lodger.engine.core.refusal import bad_request
from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.filtering.parsing import And, Compare, Filter, In, Lookup, Not, Or
from lodger.engine.data.reading.reader import Reader
from lodger.engine.data.sets.dataset import Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.values.fields import ColumnField, Field, RelatedField

#: Most conditions of a filter that follow a key: each is a question of its own to the database.
MAX_RELATIONS = 20
#: What the rows that come along may weigh together, bytes.
MAX_BYTES = 8 * 1024 * 1024
#: Whether a run may read a set.
MayRead = Callable[[str], bool]
#: The rows of a set that the run has written: how each looks to it, None when it has removed it.
WrittenRows = Callable[[TableDataset], Mapping[Any, Row | None]]


@dataclass(frozen=True, slots=True)
class Relation:
    """A foreign key from a column of one dataset to the key of another."""

    name: str
    link: ColumnField
    target: TableDataset


def relations(rows: Dataset, datasets: Datasets, may_read: MayRead) -> dict[str, Relation]:
    """Return the relations of a dataset by name: the column's name without ``_id``."""
    found: dict[str, Relation] = {}
    if not isinstance(rows, TableDataset):
        return found
    for label, (link, table, column) in rows.links.items():
        target = datasets.of_table(table, rows.database)
        if target is not None and target.key.column.key == column.key and may_read(target.name):
            found[label] = Relation(label, rows.fields[link], target)
    return found


def lookup_of(rows: Dataset, datasets: Datasets, may_read: MayRead) -> Lookup:
    """Return a function that finds the field of a name in a filter, including related fields."""
    followed = 0

    def field_named(name: str) -> Field:
        """Return the field of this name, which may lead through a relation, as in ``customer.city``."""
        nonlocal followed
        label, point, rest = name.partition(".")
        if not point or not isinstance(rows, TableDataset):
            return rows.lookup(name)
        known = relations(rows, datasets, may_read)
        if label not in known:
            raise bad_request(f"{rows.name} has the relations: {', '.join(sorted(known)) or 'none'}")
        followed += 1
        if followed > MAX_RELATIONS:
            raise bad_request(f"a filter follows at most {MAX_RELATIONS} relations")
        relation = known[label]
        inner = relation.target.lookup(rest)
        assert isinstance(inner, ColumnField)
        return RelatedField(name, relation.link, relation.target, inner)

    return field_named


def fields_of(tree: Filter) -> Iterator[RelatedField]:
    """Return the related fields in a filter."""
    if isinstance(tree, And | Or):
        for part in tree.parts:
            yield from fields_of(part)
    elif isinstance(tree, Not):
        yield from fields_of(tree.part)
    elif isinstance(tree, Compare | In) and isinstance(tree.field, RelatedField):
        yield tree.field


class RelatedRows:
    """Related rows as a run sees them: read by :meth:`fetch`, then returned by :meth:`of`."""

    def __init__(self, touched: WrittenRows) -> None:
        self._touched = touched
        self._read: dict[TableDataset, dict[Any, Row]] = {}

    def fetch(self, reader: Reader, wanted: Iterable[tuple[TableDataset, Iterable[Any]]]) -> None:
        """Read the rows of these keys, except those that the run has written itself."""
        for target, keys in wanted:
            known = self._touched(target)
            missing = {key for key in keys if key is not None} - known.keys() - self._read.get(target, {}).keys()
            if missing:
                self._read.setdefault(target, {}).update(reader.rows(target, missing, max_bytes=MAX_BYTES))

    def of(self, target: TableDataset, key: Any) -> Row | None:
        """Return the related row with this key of a dataset, None when there is none."""
        known = self._touched(target)
        return known[key] if key in known else self._read.get(target, {}).get(key)

    def with_related(self, row: Row, fields: Iterable[RelatedField]) -> Row:
        """Return a row with its related rows, for filtering."""
        return row | {field.hidden: self.of(field.target, row.get(field.link.name)) for field in fields}
