"""Write sets: the effects that a commit applies, with the rows and values that must be unchanged.

A journal has everything that an attempt has seen; a write set is the part that leaves the attempt. It is plain values,
so that it can be stored when an attempt is sealed and applied by any node
(:mod:`lodger.engine.effects.write_set_codec`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.sets.dataset import Dataset, database_of
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.effects.effect import Delete, Effect, Increment, Insert, Update

#: (kind, scope, key) of a keyed value, a document or a cursor in the ledger's database.
Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """A row that the attempt writes or has checked.

    Attributes:
        base: expected content, None if the row must only exist.
        index: index of the first effect on it; ``line`` is the position of that call in the script.
    """

    base: Row | None
    index: int
    line: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """A keyed value that must be unchanged since the script saw it."""

    scope: str
    key: str
    base: str | None
    index: int
    line: str | None = None


@dataclass(frozen=True, slots=True)
class WriteSet:
    """Effects of one attempt of one step that are applied together, in one transaction of one database.

    Attributes:
        effects: with their index in the journal, which is part of the ids of mails.
        expected_rows: rows that must be unchanged, by dataset and key.
        held: keyed values that must be unchanged.
        consumer: name of the reader of feeds; it does not see its own changes.
    """

    tenant_id: str
    action_id: str
    step: int
    datasets: Datasets
    effects: tuple[tuple[int, Effect], ...] = ()
    expected_rows: Mapping[Dataset, Mapping[Any, ExpectedRow]] = field(default_factory=dict)
    held: tuple[ExpectedValue, ...] = ()
    consumer: str | None = None

    def __bool__(self) -> bool:
        return bool(self.effects or self.held or any(self.expected_rows.values()))

    @property
    def sets(self) -> set[Dataset]:
        """The datasets that are written or checked."""
        return {effect.rows for _index, effect in self.effects if isinstance(effect, ROW_EFFECTS)} | set(
            self.expected_rows
        )

    @property
    def home(self) -> ForeignDatabase | None:
        """The database other than the ledger's that some effects belong to, None if there is none."""
        return next((each for each in map(database_of, self.sets) if each is not None), None)

    def part(self, *, foreign: bool) -> "WriteSet":
        """Return the part that belongs to the other database, or the part that belongs to the ledger's."""

        def belongs(effect: Effect) -> bool:
            """Whether an effect belongs to this part: to the ledger's database, or to another one."""
            away = isinstance(effect, ROW_EFFECTS) and database_of(effect.rows) is not None
            return away is foreign

        return WriteSet(
            self.tenant_id,
            self.action_id,
            self.step,
            self.datasets,
            tuple((index, effect) for index, effect in self.effects if belongs(effect)),
            {rows: held for rows, held in self.expected_rows.items() if (database_of(rows) is not None) is foreign},
            () if foreign else self.held,
            self.consumer,
        )


ROW_EFFECTS = (Insert, Update, Increment, Delete)
