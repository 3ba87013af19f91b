"""The effects of one attempt, and the rows as they would be with them. Pure: it reads no database and writes none.

A row's *base* is what the attempt was given of it. A row that the script itself was shown before it wrote it is *checked*:
at commit it must still hold its base. One that it wrote unseen must only still be there.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lodger.engine.core.refusal import CallRefused, denied, not_found
from lodger.engine.data.filtering.aggregate import AggregateQuery, PartialAggregates, aggregate_rows
from lodger.engine.data.filtering.evaluator import Row, matches, ordered, placed, terms_of
from lodger.engine.data.filtering.parsing import Filter, Order
from lodger.engine.data.reading.bounded import weight_of
from lodger.engine.data.sets.dataset import Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.effects.effect import (
    FIRST_TOKEN,
    Consumed,
    Delete,
    Effect,
    Emit,
    Increment,
    Insert,
    KvAdd,
    KvSet,
    Mail,
    RowEffect,
    Update,
    after,
    described,
)
from lodger.engine.effects.journal_rows import FeedPosition, KnownRows, KnownValue, WrittenRow
from lodger.engine.effects.write_set import ExpectedRow, ExpectedValue, WriteSet

#: Bytes of rows that one attempt is given: they are kept, to be compared when it writes them.
MAX_KEPT_BYTES = 64 * 1024 * 1024

#: Gives a row with more to be asked of it.
RowTransform = Callable[[Row], Row]


def unchanged_row(row: Row) -> Row:
    """Give the row as it is."""
    return row


class Journal:
    """What one attempt of one step asked to change, in call order.

    Args:
        tenant_id: whose rows; nothing in the journal names another.
        action_id: with ``step`` it makes the ids of mails.
        datasets: what the names stand for.
        consumer: who reads feeds by that name.
    """

    def __init__(
        self,
        tenant_id: str,
        action_id: str,
        step: int = 0,
        datasets: Datasets | None = None,
        consumer: str | None = None,
    ) -> None:
        self.tenant_id = tenant_id
        self.action_id = action_id
        self.step = step
        self.consumer = consumer
        self.datasets = datasets or Datasets()
        self.effects: list[Effect] = []
        self.rows: dict[Dataset, KnownRows] = {}
        self.values: dict[tuple[str, str], KnownValue] = {}
        self.feeds: dict[str, FeedPosition] = {}
        self._written: tuple[ForeignDatabase | None] | None = None
        self._tokens = 0
        self._weight = 0

    def __bool__(self) -> bool:
        return bool(self.effects)

    def of(self, rows: Dataset) -> KnownRows:
        """Give what is known of a set."""
        return self.rows.setdefault(rows, KnownRows())

    def writes_in(self, rows: Dataset) -> None:
        """Note that something of a table is written or checked: all such tables of a run are in one database.

        Raises:
            CallRefused: ``denied``.
        """
        if not isinstance(rows, TableDataset):
            return
        if self._written is None:
            self._written = (rows.database,)
        elif self._written != (rows.database,):
            raise denied(
                f"{rows.name} is in another database than what this run has written: "
                "one transaction cannot hold both; let a second step write it"
            )

    @property
    def home(self) -> ForeignDatabase | None:
        """The database other than the ledger's that this run writes in, None when there is none."""
        return self._written[0] if self._written is not None else None

    @property
    def writes_tables(self) -> bool:
        """Whether a table of a platform's is written or looked at again."""
        return self._written is not None

    def write_set(self) -> WriteSet:
        """Give what a commit applies."""
        expected_rows = {
            rows: {
                key: ExpectedRow(held.base if held.checked else None, held.first, held.line)
                for key, held in known.touched.items()
                if held.base is not None
            }
            for rows, known in self.rows.items()
        }
        held = tuple(
            ExpectedValue(scope, key, value.base, value.first, value.line)
            for (scope, key), value in self.values.items()
            if value.checked
        )
        return WriteSet(
            self.tenant_id,
            self.action_id,
            self.step,
            self.datasets,
            tuple(enumerate(self.effects)),
            {rows: some for rows, some in expected_rows.items() if some},
            held,
            self.consumer,
        )

    # rows

    def record_read(self, rows: Dataset, found: Iterable[Row]) -> None:
        """Remember the rows that the script is shown: committed ones, or its own images of them."""
        known = self.of(rows)
        for row in found:
            key = row[rows.key.name]
            held = known.touched.get(key)
            if held is None:
                if key not in known.seen:
                    self._keep(row)
                known.seen[key] = row
            elif held.base is not None:
                known.seen.setdefault(key, held.base)

    def _keep(self, row: Row) -> None:
        self._weight += weight_of(row.values())
        if self._weight > MAX_KEPT_BYTES:
            raise CallRefused(
                "too_large", f"a run is given at most {MAX_KEPT_BYTES >> 20} MiB of rows; let the next one go on"
            )

    def check(self, rows: Dataset, key: Any) -> None:
        """Ask the commit to compare a row that the script was shown, though it does not write it."""
        known = self.of(rows)
        if key in known.seen:
            self.writes_in(rows)
            base = known.seen[key]
            known.touched.setdefault(key, WrittenRow(base, base, checked=True, first=len(self.effects))).checked = True

    def current(self, rows: Dataset, key: Any, committed: Row | None) -> Row | None:
        """Give a row as this attempt sees it."""
        known = self.of(rows)
        held = known.touched.get(key)
        return held.now if held is not None else known.seen.get(key, committed)

    def token(self) -> int:
        """Give a stand-in for a key that the database will make."""
        self._tokens += 1
        return FIRST_TOKEN - self._tokens

    def insert(
        self,
        rows: Dataset,
        row: Row,
        *,
        given: frozenset[str] | None = None,
        line: str | None = None,
        token: bool = False,
        upsert: bool = False,
    ) -> None:
        """Add a row; it holds its key, or a token of it. ``given`` names what is written, None is all of it.

        Raises:
            CallRefused: ``exists``: this attempt has made or seen a row of that key.
        """
        key, known = row[rows.key.name], self.of(rows)
        held = known.touched.get(key)
        if held.now is not None if held is not None else key in known.seen:
            raise CallRefused("exists", f"there is a row of that id in {rows.name} already")
        self.writes_in(rows)
        if held is None:
            known.touched[key] = WrittenRow(None, row, checked=False, first=len(self.effects), line=line, token=token)
        else:
            held.now = row
        self.effects.append(Insert(rows, key, row, given, token, upsert, line=line))

    def change(self, effect: Update | Increment, committed: Row | None) -> None:
        """Update or increment a row.

        Args:
            effect: what is asked.
            committed: the row as it stands, needed when the journal knows nothing of it.

        Raises:
            CallRefused: ``not_found``; and of an increment, ``not_a_number`` or ``out_of_range``.
        """
        held = self._held(effect, committed)
        assert held.now is not None
        held.now = after(held.now, effect)
        # An increment asks nothing of what the row held before.
        held.checked = held.checked or (isinstance(effect, Update) and self._shown(effect))
        self._wrote(effect, held)

    def delete(self, effect: Delete, committed: Row | None) -> None:
        """Remove a row.

        Raises:
            CallRefused: ``not_found``.
        """
        held = self._held(effect, committed)
        held.now = None
        held.checked = held.checked or self._shown(effect)
        self._wrote(effect, held)

    def needs(self, rows: Dataset, key: Any) -> bool:
        """Whether a write of this row must be told what is committed first."""
        known = self.of(rows)
        return key not in known.touched and key not in known.seen

    def _shown(self, effect: RowEffect) -> bool:
        known = self.of(effect.rows)
        held = known.touched.get(effect.key)
        return effect.key in known.seen and (held is None or held.base is not None)

    def _held(self, effect: Update | Increment | Delete, committed: Row | None) -> WrittenRow:
        known = self.of(effect.rows)
        held = known.touched.get(effect.key)
        if held is None:
            if effect.key not in known.seen and committed is not None:
                self._keep(committed)
            base = known.seen.get(effect.key, committed)
            held = WrittenRow(base, base, checked=False, first=len(self.effects), line=effect.line)
        if held.now is None:
            raise not_found(effect.rows.name)
        self.writes_in(effect.rows)
        return held

    def _wrote(self, effect: RowEffect, held: WrittenRow) -> None:
        self.of(effect.rows).touched[effect.key] = held
        self.effects.append(effect)

    # what its own reads see

    def untouched(self, rows: Dataset) -> tuple[Any, ...]:
        """Give the keys that the database must leave out: the journal answers for them."""
        return tuple(key for key, held in self.of(rows).touched.items() if not held.token)

    def written(self, rows: Dataset) -> dict[Any, Row | None]:
        """Give the rows that the journal answers for as this attempt sees them, None for one that it has removed."""
        return {key: held.now for key, held in self.of(rows).touched.items()}

    def images(self, rows: Dataset, tree: Filter, transform: RowTransform = unchanged_row) -> list[Row]:
        """Give the rows that the journal answers for and that satisfy a filter.

        Args:
            dress: gives a row with what its keys lead to, where the filter asks of that.
        """
        held = self.of(rows).touched.values()
        return [item.now for item in held if item.now is not None and matches(tree, transform(item.now))]

    def page(
        self,
        rows: Dataset,
        tree: Filter,
        order: tuple[Order, ...],
        limit: int,
        after_terms: Any,
        committed: list[Row],
        transform: RowTransform = unchanged_row,
        *,
        cut: bool = False,
    ) -> list[Row]:
        """Put the database's first rows (without the touched keys) and the journal's together.

        Args:
            cut: there are more of the database's, so that nothing can be said of what stands behind the last of them.
        """
        own = self.images(rows, tree, transform)
        if after_terms is not None:
            own = [row for row in own if placed(order, terms_of(order, row), after_terms) > 0]
        if cut:
            last = terms_of(order, committed[-1])
            own = [row for row in own if placed(order, terms_of(order, row), last) < 0]
        return ordered(order, committed + own)[:limit] if own else committed[:limit]

    def aggregate_rows(
        self, rows: Dataset, tree: Filter, wanted: AggregateQuery, transform: RowTransform = unchanged_row
    ) -> PartialAggregates:
        """Work out an aggregate of the rows that the journal answers for."""
        return aggregate_rows(wanted, self.images(rows, tree, transform))

    # keyed values

    def value(self, scope: str, key: str) -> KnownValue:
        """Give what is known of a key."""
        return self.values.setdefault((scope, key), KnownValue())

    def keep(self, effect: KvSet | KvAdd, now: str | None) -> None:
        """Write a key; ``now`` is the JSON text that its next read sees."""
        held = self.value(effect.scope, effect.key)
        if not held.written:
            held.first, held.line = len(self.effects), effect.line
        held.now, held.written = now, True
        held.checked = held.checked or (held.shown and isinstance(effect, KvSet))
        self.effects.append(effect)

    # feeds

    def consume(self, read: Consumed) -> None:
        """Move on in a feed."""
        self.effects.append(read)

    # mail and events

    def send(self, message: Mail | Emit) -> None:
        """Add a mail or an event."""
        self.effects.append(message)

    def message_id(self) -> str:
        """Give the Message-ID of the next mail: the same on every attempt of this step that asks for it at this place."""
        return f"<{self.action_id}.{self.step}.{len(self.effects)}@lodger>"

    def described(self, *, whole: bool = False) -> tuple[dict[str, Any], ...]:
        """Describe the effects for people, in call order; of an update with the values from before.

        Args:
            whole: of an increment and a removal too.
        """
        shown = []
        for effect in self.effects:
            before = None
            if isinstance(effect, Update | Increment | Delete if whole else Update):
                before = self.of(effect.rows).touched[effect.key].base
            shown.append(described(effect, before))
        return tuple(shown)
