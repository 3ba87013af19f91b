"""JSON paths in SQLite's JSON functions; see :class:`lodger.engine.store.drivers.features.JsonPath`."""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from lodger.engine.store.drivers.features import BOOLEAN, NUMBER, STRING, TIME, HeldCondition, JsonPath

Clause = sa.ColumnElement[bool]


class SqliteJsonPath(JsonPath):
    """A path in SQLite's JSON functions."""

    _TYPES = {BOOLEAN: ("true", "false"), NUMBER: ("integer", "real"), STRING: ("text",), TIME: ("text",)}  # noqa: RUF012 - never changed

    def __init__(self, body: sa.ColumnElement[Any], parts: Sequence[str], tag: str) -> None:
        self._body = body
        self._parts = parts
        # Names are checked, and paths bound values.
        self._path = "$." + ".".join(f'"{part}"' for part in parts)
        self._tag = f'."{tag}"'
        self._time = self._path + self._tag
        self._kind = sa.func.json_type(body, self._path)

    def _kind_at(self, parts: Sequence[Any]) -> sa.ColumnElement[Any]:
        """Return the JSON type of the value at a path, as SQL."""
        return sa.func.json_type(self._body, "$." + ".".join(f'"{part}"' for part in parts))

    def missing(self) -> Clause:
        """Whether the path leads to no value but null, through lists neither."""
        if len(self._parts) == 1:
            return self._absent()
        return self._absent() & sa.not_(
            self._through() & self._elements(lambda each: each.c.type != "null", spread=False)
        )

    def held(self, rank: int) -> tuple[Clause, sa.ColumnElement[Any]]:
        """Return whether the value has this type rank, and the value."""
        path = self._time if rank == TIME else self._path
        return self._is(sa.func.json_type(self._body, path), rank), sa.func.json_extract(self._body, path)

    def _is(self, kind: sa.ColumnElement[Any], rank: int) -> Clause:
        """Return the condition that a JSON type belongs to a type rank."""
        names = self._TYPES[rank]
        return kind == names[0] if len(names) == 1 else kind.in_(names)

    def values(self) -> list[sa.ColumnElement[Any]]:
        """Return the value; NULL for lists, objects and missing values."""
        value = sa.case(
            (self._kind == "object", sa.func.json_extract(self._body, self._time)),
            (self._kind == "array", sa.null()),
            else_=sa.func.json_extract(self._body, self._path),
        )
        return [value]

    def numbers(self) -> sa.ColumnElement[Any]:
        """Return the number as a double, NULL for other values."""
        there, value = self.held(NUMBER)
        return sa.case((there, value * 1.0), else_=sa.null())

    def some(self, rank: int, holds: HeldCondition) -> Clause:
        """Return whether a value that the path leads to through lists satisfies a condition."""

        def element_holds(each: sa.TableValuedAlias) -> Clause:
            """Return the condition that one element of the list fulfils the comparison."""
            if rank != TIME:
                return holds(self._is(each.c.type, rank), each.c.atom)
            text = sa.case((each.c.type == "object", each.c.value), else_="{}")
            return holds(
                self._is(sa.func.json_type(text, "$" + self._tag), rank), sa.func.json_extract(text, "$" + self._tag)
            )

        return (self._through() | (self._kind == "array")) & self._elements(element_holds, spread=True)

    def _elements(self, asked: Callable[[sa.TableValuedAlias], Clause], *, spread: bool) -> Clause:
        """Return the condition that a value which the path leads to through lists satisfies another one; ``spread``: also the elements
        of a list at its end."""
        text: sa.ColumnElement[Any] = self._body
        steps: list[sa.TableValuedAlias] = []
        source: Any = None
        for at, part in enumerate(self._parts, 1):
            path = f'$."{part}"'
            kind, value = sa.func.json_type(text, path), sa.func.json_extract(text, path)
            # json_extract has no booleans; the names of their types are their JSON.
            quoted = sa.case((kind.in_(("true", "false")), kind), else_=sa.func.json_quote(value))
            wrapped = sa.literal("[", sa.String()) + quoted + "]"
            listed = sa.case((kind == "array", value), else_=wrapped)
            each = sa.func.json_each(listed if spread or at < len(self._parts) else wrapped)
            steps.append(each.table_valued("value", "type", "atom", name=f"at{at}"))
            source = steps[-1] if source is None else source.join(steps[-1], sa.true())
            text = sa.case((steps[-1].c.type == "object", steps[-1].c.value), else_="{}")
        one: sa.ColumnElement[Any] = sa.literal_column("1")
        return sa.select(one).select_from(source).where(asked(steps[-1])).correlate_except(*steps).exists()
