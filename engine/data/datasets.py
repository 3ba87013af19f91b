"""The sets that a platform exposed, by name; every other name is a collection."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, Table

from lodger.engine.data.dataset import Collection, Dataset, TableDataset
from lodger.engine.data.expose import NAME, TAKEN, expose
from lodger.engine.data.refusal import bad_request
from lodger.engine.errors import Conflict


class Datasets:
    """What ``db.NAME`` means on this node. Filled by the platform before scripts run."""

    def __init__(self) -> None:
        self._tables: dict[str, TableDataset] = {}

    def expose(self, source: Any, *, tenant_column: str | Column[Any], **options: Any) -> TableDataset:
        """Expose a table or mapped class; arguments are those of :func:`lodger.engine.data.expose.expose`.

        Raises:
            InputError: the table cannot be exposed so.
            Conflict: the name is taken.
        """
        made = expose(source, tenant_column=tenant_column, **options)
        if made.name in self._tables:
            raise Conflict(
                "expose_name_taken", f"a set named {made.name!r} is exposed already", fix="give another name="
            )
        self._tables[made.name] = made
        return made

    def named(self, name: str) -> Dataset:
        """Give the set of this name.

        Raises:
            CallRefused: the name cannot be one.
        """
        found = self._tables.get(name)
        if found is not None:
            return found
        if not NAME.fullmatch(name) or name in TAKEN:
            raise bad_request("a set is named by letters, digits and _")
        return Collection(name)

    def of_table(self, table: Table) -> TableDataset | None:
        """Give the set through which a table is exposed."""
        return next((item for item in self._tables.values() if item.table is table), None)

    def __iter__(self) -> Iterator[TableDataset]:
        return iter(self._tables.values())

    def described(self) -> dict[str, Any]:
        """Give what a script's side needs to know: kinds of the columns by set."""
        return {
            item.name: {
                "key": item.key.name,
                "columns": {field.name: field.kind.value for field in item.shown},
            }
            for item in self
        }
