"""The registry of what scripts may use of a platform: exposed datasets by name (every other name is a collection), and functions."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Unpack

from sqlalchemy import Column, Engine, MetaData, Table
from sqlalchemy.engine import URL

from lodger.engine.core.access.labels import SET
from lodger.engine.core.errors import Conflict
from lodger.engine.core.functions import PlatformFunction
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.sets.dataset import Collection, Dataset, KeySource, TableDataset
from lodger.engine.data.sets.expose import NAME, TAKEN, ExposeOptions, expose
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.data.sets.guard import DatabaseIsolation
from lodger.engine.data.sets.tenant_views import view_dataset
from lodger.sandbox.outcome import Outcome

_NO_WALL = DatabaseIsolation()


class Datasets:
    """Sets by the name that scripts use on this node. Filled by the platform before scripts run."""

    def __init__(self) -> None:
        self._tables: dict[str, TableDataset] = {}
        self._functions: dict[str, PlatformFunction] = {}
        self._metadata: dict[ForeignDatabase | None, MetaData] = {}
        self._databases: dict[object, ForeignDatabase] = {}
        self._walls: dict[ForeignDatabase | None, DatabaseIsolation] = {}
        self._twins: dict[str, TableDataset] = {}
        self._pinned: Datasets | None = None
        self._source: Datasets | None = None
        self._elsewhere: frozenset[str] = frozenset()

    def attach(self, source: str | URL | Engine) -> ForeignDatabase:
        """Return the database at an address or of a platform's engine; the same object for the same argument.

        Raises:
            InputError: database_url.
        """
        key: object = source if isinstance(source, Engine) else str(source)
        if key not in self._databases:
            self._databases = self._databases | {key: ForeignDatabase(source)}
        return self._databases[key]

    def metadata_of(self, database: ForeignDatabase | None) -> MetaData:
        """Return the collection of a database's tables that were reflected."""
        return self._metadata.setdefault(database, MetaData())

    @property
    def databases(self) -> tuple[ForeignDatabase, ...]:
        """The databases other than the ledger's."""
        return tuple(self._databases.values())

    def close(self) -> None:
        """Close the connections to databases other than the ledger's; safe to call twice."""
        for each in self._databases.values():
            each.close()

    def expose(
        self,
        source: Any,
        *,
        tenant_column: str | Column[Any],
        database: ForeignDatabase | Engine | URL | str | None = None,
        **options: Unpack[ExposeOptions],
    ) -> TableDataset:
        """Expose a table or mapped class; arguments are those of :func:`lodger.engine.data.sets.expose.expose`.

        ``database`` may also be an engine or an address: what :meth:`attach` takes.

        Raises:
            InputError: the table cannot be exposed so.
            Conflict: the name is taken.
        """
        place = database if database is None or isinstance(database, ForeignDatabase) else self.attach(database)
        made = expose(source, tenant_column=tenant_column, database=place, **options)
        if made.name in self._tables:
            raise Conflict("expose_name_taken", name=made.name)
        self._tables = self._tables | {made.name: made}
        self.unknown(place)
        return made

    def put_function(self, function: PlatformFunction) -> None:
        """Register a function of the platform.

        Raises:
            Conflict: function_taken.
        """
        if function.name in self._functions:
            raise Conflict("function_taken", name=function.name)
        self._functions = self._functions | {function.name: function}
        self._pinned = None

    def function(self, name: str) -> PlatformFunction:
        """Return the function of this name.

        Raises:
            CallRefused: there is none; ``set_elsewhere`` if only other processes have declared it.
        """
        found = self._functions.get(name)
        if found is None and name in self._elsewhere:
            raise _elsewhere(name)
        if found is None:
            raise bad_request("the platform has no function of this name")
        return found

    @property
    def functions(self) -> tuple[PlatformFunction, ...]:
        """The functions of this process."""
        return tuple(self._functions.values())

    @property
    def function_names(self) -> list[str]:
        """The names of the functions of all processes: those of tables have no dot."""
        return sorted({*self._functions, *(name for name in self._elsewhere if "." in name)})

    def _changed(self) -> None:
        """After a change of the datasets, drop the snapshot and compute anew which ones are read through a tenant wall's views."""
        twins: dict[str, TableDataset] = {}
        for database, wall in self._walls.items():
            for each in self.tables(database):
                rows = _without(each, wall.cross_tenant_unique_columns.get(each.name, frozenset()))
                if rows.name in wall.views or rows is not each:
                    twins[rows.name] = view_dataset(rows, wall.schema) if rows.name in wall.views else rows
        self._twins, self._pinned = twins, None

    def tables(self, database: ForeignDatabase | None) -> list[TableDataset]:
        """Return the exposed tables of a database, each with the columns that others of them refer to."""
        here = [rows for rows in self._tables.values() if rows.database is database]
        links = [(table, column) for rows in here for _name, table, column in rows.links.values()]
        links += [(each.table, each.column) for rows in here for each in rows.references.values()]
        return [
            replace(rows, referred=frozenset(column for table, column in links if table is rows.origin))
            for rows in here
        ]

    # the second wall: :mod:`lodger.engine.data.sets.guard`

    @property
    def unseen(self) -> list[ForeignDatabase | None]:
        """Return the databases whose row security was not inspected yet; None is the ledger's."""
        used = {rows.database for rows in self._tables.values()}
        return [each for each in (None, *self.databases) if each not in self._walls and (each is None or each in used)]

    def stand(self, database: ForeignDatabase | None, wall: DatabaseIsolation) -> None:
        """Store which isolation was found in a database; its datasets are then read through the views that exist."""
        self._walls = self._walls | {database: wall}
        self._changed()

    def unknown(self, database: ForeignDatabase | None) -> None:
        """Discard the isolation found in a database: the next use inspects it again."""
        if self._source is not None:
            self._source.unknown(database)
            return
        self._walls = {each: wall for each, wall in self._walls.items() if each is not database}
        self._changed()

    def wall(self, database: ForeignDatabase | None) -> DatabaseIsolation:
        """Return the isolation found in a database; none if it was not inspected."""
        return self._walls.get(database, _NO_WALL)

    def pinned(self) -> "Datasets":
        """Return a snapshot of all datasets, for one run."""
        if self._source is not None:
            return self
        if self._pinned is None:
            self._pinned = copy(self)  # every change replaces what the two share
            self._pinned._source = self
        return self._pinned

    @property
    def labels(self) -> frozenset[str]:
        """Labels that the exposed tables and the functions give to a node of this process."""
        return frozenset(SET + name for name in (*self._tables, *self._functions))

    def learn(self, names: Iterable[str]) -> None:
        """Learn which tables and functions other processes of the ledger have: they are no collections here."""
        found = frozenset(names) - set(self._tables) - set(self._functions)
        if found != self._elsewhere:
            self._elsewhere, self._pinned = found, None

    def named(self, name: str) -> Dataset:
        """Return the dataset of this name.

        Raises:
            CallRefused: the name cannot be one; ``set_elsewhere`` if it is a table that only other processes have exposed.
        """
        found = self._twins.get(name) or self._tables.get(name)
        if found is not None:
            return found
        if name in self._elsewhere:
            raise _elsewhere(name)
        if not NAME.fullmatch(name) or name in TAKEN:
            raise bad_request("the name of a set has only letters, digits and _")
        return Collection(name)

    def table(self, name: str) -> TableDataset:
        """Return the exposed table of this name.

        Raises:
            KeyError: none is exposed under it.
        """
        return self._twins.get(name) or self._tables[name]

    def of_table(self, table: Table, database: ForeignDatabase | None = None) -> TableDataset | None:
        """Return the dataset through which a table of a database is exposed."""
        for name, rows in self._tables.items():
            if rows.origin is table and rows.database is database:
                return self.table(name)
        return None

    def __iter__(self) -> Iterator[TableDataset]:
        return iter(self._tables.values())

    def described(self) -> dict[str, Any]:
        """Return the kinds of columns by dataset, for the sandbox."""
        return {
            item.name: {
                "key": item.key.name,
                "columns": {field.name: field.kind.value for field in item.shown},
                "links": {
                    name: target.name
                    for name, (_link, table, column) in item.links.items()
                    if (target := self.of_table(table, item.database)) and target.key.column.key == column.key
                },
            }
            for item in self
        }


def _elsewhere(name: str) -> CallRefused:
    """Return the refusal of a dataset that other nodes have and this one lacks."""
    lacks = "function that this process has not declared" if "." in name else "table that this process has not exposed"
    what = f"{name} is a {lacks}: a run waits for a node that has, a trial needs --expose or --platform"
    return CallRefused("set_elsewhere", what, outcome=Outcome.ENGINE_FAULT)


def _without(rows: TableDataset, columns: frozenset[str]) -> TableDataset:
    """Return a table's dataset without write access to some columns."""
    if not columns:
        return rows
    needed = rows.required | ({rows.key.name} if rows.key_source is KeySource.GIVEN else set())
    return replace(
        rows,
        writable=rows.writable - columns,
        required=rows.required - columns,
        insertable=rows.insertable and not needed & columns,
    )
