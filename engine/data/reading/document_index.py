"""Indexes on paths of collections: a row for each document and path, written with the document.

An index only narrows a query: the documents it finds are filtered again, so that a result never depends on it. It holds the
first 200 characters of a text.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.filtering.parsing import And, Compare, Filter, In, Op
from lodger.engine.data.filtering.sql_compiler import COMPARE
from lodger.engine.data.sets.dataset import Collection, OwnTable
from lodger.engine.data.sets.scope import Scope
from lodger.engine.data.values.fields import BOOLEAN, NULL, NUMBER, OTHER, STRING, TIME, PathField, classed
from lodger.engine.store.drivers.prepared import Answer, Prepared
from lodger.engine.store.schema.script_data import collection_indexes, document_index, documents

#: Paths of one collection that can be indexed, and letters of a text that its index has.
MAX_INDEXES, MAX_CHARACTERS = 8, 200
_d, _i = document_index.c, collection_indexes.c
_RANGED = {Op.LT, Op.LTE, Op.GT, Op.GTE}


_ENTRIES = OwnTable(document_index)


def ask_paths(connection: sa.Connection, scope: Scope, name: str, *, complete: bool = False) -> Answer:
    """Ask for the paths of a collection that have an index, which writes keep; or only of complete ones, which queries use.

    Returns:
        A function that returns them.
    """
    return _paths.ask(connection, {"tenant": scope.tenant_id, "name": name, "least": int(complete)})


_paths = Prepared(
    lambda _driver: sa.select(_i.path).where(
        _i.tenant_id == sa.bindparam("tenant"),
        _i.collection == sa.bindparam("name"),
        _i.complete >= sa.bindparam("least"),
    )
)


def entry(path: str, row: Row) -> dict[str, Any]:
    """Return the index entry of a document for one path."""
    rank, inner = classed(PathField(path, tuple(path.split("."))).found(row))
    number = float(inner) if rank in (BOOLEAN, NUMBER) else None
    words = inner[:MAX_CHARACTERS] if rank in (STRING, TIME) else None
    return {"path": path, "id": row["id"], "rank": rank, "number": number, "words": words}


def write(connection: sa.Connection, scope: Scope, name: str, indexed: Iterable[str], row: Row) -> None:
    """Write the index entries of a document, one for each indexed path, in place of earlier ones."""
    remove(connection, scope, name, row["id"])
    fixed = {"tenant_id": scope.tenant_id, "collection": name}
    connection.execute(sa.insert(document_index), [entry(path, row) | fixed for path in indexed])


def remove(connection: sa.Connection, scope: Scope, name: str, key: str) -> None:
    """Delete the index entries of a document."""
    connection.execute(scope.delete(_ENTRIES).where(_d.collection == name, _d.id == key))


def narrowed(scope: Scope, rows: Collection, tree: Filter, indexed: Sequence[str]) -> list[sa.ColumnElement[bool]]:
    """Return conditions on the indexes that every document matching a filter satisfies."""
    parts = tree.parts if isinstance(tree, And) else (tree,)
    found: list[sa.ColumnElement[bool]] = []
    for part in parts:
        if isinstance(part, Compare | In) and isinstance(part.field, PathField) and part.field.name in indexed:
            # An index has texts as they are written.
            if isinstance(part, Compare) and part.ignore_case:
                continue
            said = _index_condition(part)
            if said is not None:
                mine = scope.select(_ENTRIES, _d.id).where(_d.collection == rows.name, _d.path == part.field.name)
                # A list's elements are asked. Two questions: a planner might answer neither half of an OR from its index.
                found.append(documents.c.id.in_(sa.union_all(mine.where(said), mine.where(_d.rank == OTHER))))
    return found


def asks_paths(tree: Filter) -> bool:
    """Whether a filter compares paths, so that an index could help."""
    parts = tree.parts if isinstance(tree, And) else (tree,)
    return any(isinstance(part, Compare | In) and isinstance(part.field, PathField) for part in parts)


def _index_condition(part: Compare | In) -> sa.ColumnElement[bool] | None:
    """Return a condition on the index that a comparison implies, None if there is none."""
    if isinstance(part, In):
        return sa.or_(sa.false(), *(_equal_condition(rank, inner) for rank, inner in part.values))
    rank, inner = part.value
    if part.op is Op.EQ:
        return _equal_condition(rank, inner)
    if part.op in _RANGED and rank not in (NULL, OTHER):
        return sa.and_(_d.rank == rank, _range_condition(part.op, rank, inner))
    if part.op is Op.STARTS_WITH and inner:
        begin = inner[:MAX_CHARACTERS]
        until = after_prefix(begin)
        return sa.and_(
            _d.rank == rank, _d.words >= _text(begin), *(() if until is None else (_d.words < _text(until),))
        )
    return None


def _equal_condition(rank: int, inner: Any) -> sa.ColumnElement[bool]:
    """Return the condition that an index entry holds this value; ``rank`` is its type's."""
    if rank in (NULL, OTHER):
        return _d.rank == rank
    if rank in (STRING, TIME):
        return sa.and_(_d.rank == rank, _d.words == _text(inner[:MAX_CHARACTERS]))
    return sa.and_(_d.rank == rank, _d.number == float(inner))


def _range_condition(op: Op, rank: int, inner: Any) -> sa.ColumnElement[bool]:
    """Return the condition that an index entry of this type is less or greater than the value."""
    if rank in (STRING, TIME):
        # Of a longer text the index has the beginning, which may be alike: equality is left to the question itself.
        text = _text(inner[:MAX_CHARACTERS])
        return _d.words <= text if op in (Op.LT, Op.LTE) else _d.words >= text
    found: sa.ColumnElement[bool] = COMPARE[op](_d.number, float(inner))
    return found


def _text(value: str) -> sa.ColumnElement[str]:
    """Return a text as a bound SQL value."""
    return sa.literal(value, sa.String())


def after_prefix(begin: str) -> str | None:
    """Return the first text, by code point, after all texts with this prefix; None if there is none."""
    while begin:
        last = ord(begin[-1])
        if last < 0x10FFFF:
            # Half surrogates are no characters.
            return begin[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
        begin = begin[:-1]
    return None
