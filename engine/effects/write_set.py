"""What a commit applies: effects in the order of their calls, and what must still hold when they are.

A journal knows all that an attempt has seen; a write set is the part of it that leaves the attempt. It is plain values, so that
it can be stored when an attempt is sealed and applied by any node (:mod:`lodger.engine.effects.write_set_codec`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.sets.dataset import Dataset, database_of
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.effects.effect import Delete, Effect, Increment, Insert, Update

#: (what it is, its scope, its key): a place in the ledger's database that a run writes: a keyed value, a document, a cursor.
Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """A row that was there for the attempt and that it writes or has checked.

    Attributes:
        base: what it held, None when only its being there matters.
        index: of the first effect on it; ``line`` is where the script asked for that.
    """

    base: Row | None
    index: int
    line: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """A keyed value that must still be what the attempt was shown."""

    scope: str
    key: str
    base: str | None
    index: int
    line: str | None = None


@dataclass(frozen=True, slots=True)
class WriteSet:
    """Effects of one attempt of one step that are applied together, in one transaction of one database.

    Attributes:
        effects: with their place in the journal, which mails are named by.
        standing: rows that must still stand, by set and key.
        held: keyed values that must still hold.
        consumer: who reads feeds by that name; it is not told of what it changes itself.
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
        """What is written or looked at again."""
        return {effect.rows for _index, effect in self.effects if isinstance(effect, ROW_EFFECTS)} | set(
            self.expected_rows
        )

    @property
    def home(self) -> ForeignDatabase | None:
        """The database other than the ledger's that some of it belongs to; there is at most one."""
        return next((each for each in map(database_of, self.sets) if each is not None), None)

    def part(self, *, foreign: bool) -> "WriteSet":
        """Give what belongs to the other database, or what belongs to the ledger's."""

        def mine(effect: Effect) -> bool:
            away = isinstance(effect, ROW_EFFECTS) and database_of(effect.rows) is not None
            return away is foreign

        return WriteSet(
            self.tenant_id,
            self.action_id,
            self.step,
            self.datasets,
            tuple((index, effect) for index, effect in self.effects if mine(effect)),
            {rows: held for rows, held in self.expected_rows.items() if (database_of(rows) is not None) is foreign},
            () if foreign else self.held,
            self.consumer,
        )


ROW_EFFECTS = (Insert, Update, Increment, Delete)
