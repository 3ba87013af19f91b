"""The journal: effects of one attempt, and the rows as they would be with them. It accesses no database.

The *base* of a row is its content as the attempt read it. A row that the script was shown before it wrote it is
*checked*: at commit it must still equal its base. A row that was written unseen must only still exist.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lodger.engine.core.refusal import CallRefused, denied, not_found
from lodger.engine.data.filtering.aggregate import AggregateQuery, PartialAggregates, aggregate_rows
from lodger.engine.data.filtering.evaluator import Row, matches, ordered, placed, terms_of
from lodger.engine.data.filtering.parsing import Filter, Order
from lodger.engine.data.sets.dataset import Dataset, TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.effects.effect import (
    FIRST_TOKEN,
    CancelRun,
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
    RunLater,
    Update,
    apply_to,
    describe,
)
from lodger.engine.effects.journal_rows import FeedPosition, KnownRows, KnownValue, WrittenRow
from lodger.engine.effects.write_set import ExpectedRow, ExpectedValue, WriteSet
from lodger.engine.store.drivers.features import weight_of

#: Maximum total size of the rows that one attempt reads; they are kept for comparison at the commit.
MAX_KEPT_BYTES = 64 * 1024 * 1024

#: Adds related rows to a row.
RowTransform = Callable[[Row], Row]


def unchanged_row(row: Row) -> Row:
    """Return the row unchanged."""
    return row


class Journal:
    """The effects of one attempt of one step, in call order.

    Args:
        tenant_id: owner of all rows in the journal.
        action_id: with ``step`` the base of the ids of mails.
        datasets: the datasets by name.
        consumer: name of the reader of feeds.
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
        """Return the rows of a dataset that this attempt has read or written."""
        return self.rows.setdefault(rows, KnownRows())

    def require_same_database(self, rows: Dataset) -> None:
        """Record that a table is written or checked: all such tables of a run must be in one database.

        Raises:
            CallRefused: ``denied``.
        """
        if not isinstance(rows, TableDataset):
            return
        if self._written is None:
            self._written = (rows.database,)
        elif self._written != (rows.database,):
            raise denied(
                f"{rows.name} is in another database than earlier changes of this run: "
                "one transaction cannot span both; write it in a second step"
            )

    @property
    def home(self) -> ForeignDatabase | None:
        """The database other than the ledger's that this run writes to, None if there is none."""
        return self._written[0] if self._written is not None else None

    @property
    def writes_tables(self) -> bool:
        """Whether a table of the platform is written or checked."""
        return self._written is not None

    def write_set(self) -> WriteSet:
        """Return the part of the journal that a commit applies."""
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

    def record_read(self, rows: Dataset, found: Iterable[Row]) -> None:
        """Record rows that the script is shown: committed ones, or the attempt's own versions of them."""
        known = self.of(rows)
        for row in found:
            key = row[rows.key.name]
            held = known.touched.get(key)
            if held is None:
                if key not in known.seen:
                    self._count_bytes(row)
                known.seen[key] = row
            elif held.base is not None:
                known.seen.setdefault(key, held.base)

    def _count_bytes(self, row: Row) -> None:
        """Count the size of a row that the attempt keeps; raises CallRefused (``too_large``) beyond the maximum."""
        self._weight += weight_of(row.values())
        if self._weight > MAX_KEPT_BYTES:
            raise CallRefused(
                "too_large", f"a run can read at most {MAX_KEPT_BYTES >> 20} MiB of rows; continue in the next run"
            )

    def check(self, rows: Dataset, key: Any) -> None:
        """Have the commit check a row that the script was shown but does not write."""
        known = self.of(rows)
        if key in known.seen:
            self.require_same_database(rows)
            base = known.seen[key]
            known.touched.setdefault(key, WrittenRow(base, base, checked=True, first=len(self.effects))).checked = True

    def current(self, rows: Dataset, key: Any, committed: Row | None) -> Row | None:
        """Return a row as this attempt sees it."""
        known = self.of(rows)
        held = known.touched.get(key)
        return held.now if held is not None else known.seen.get(key, committed)

    def token(self) -> int:
        """Return a token for a key that the database will generate."""
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
        """Insert a row with its key, or with a token. ``given`` names the columns to write, None all of them.

        Raises:
            CallRefused: ``exists``: this attempt has inserted or seen a row with that key.
        """
        key, known = row[rows.key.name], self.of(rows)
        held = known.touched.get(key)
        if held.now is not None if held is not None else key in known.seen:
            raise CallRefused("exists", f"{rows.name} already has a row with this id")
        self.require_same_database(rows)
        if held is None:
            known.touched[key] = WrittenRow(None, row, checked=False, first=len(self.effects), line=line, token=token)
        else:
            held.now = row
        self.effects.append(Insert(rows, key, row, given, token, upsert, line=line))

    def change(self, effect: Update | Increment, committed: Row | None) -> None:
        """Update or increment a row.

        Args:
            effect: the effect.
            committed: the committed row, needed if :meth:`needs` is true.

        Raises:
            CallRefused: ``not_found``; and of an increment, ``not_a_number`` or ``out_of_range``.
        """
        held = self._held(effect, committed)
        assert held.now is not None
        held.now = apply_to(held.now, effect)
        # An increment does not depend on the previous value.
        held.checked = held.checked or (isinstance(effect, Update) and self._was_shown(effect))
        self._add_effect(effect, held)

    def delete(self, effect: Delete, committed: Row | None) -> None:
        """Add the deletion of a row.

        Raises:
            CallRefused: ``not_found``.
        """
        held = self._held(effect, committed)
        held.now = None
        held.checked = held.checked or self._was_shown(effect)
        self._add_effect(effect, held)

    def needs(self, rows: Dataset, key: Any) -> bool:
        """Whether a write of this row needs its committed content first."""
        known = self.of(rows)
        return key not in known.touched and key not in known.seen

    def _was_shown(self, effect: RowEffect) -> bool:
        """Whether the script has seen a committed version of the row that an effect writes."""
        known = self.of(effect.rows)
        held = known.touched.get(effect.key)
        return effect.key in known.seen and (held is None or held.base is not None)

    def _held(self, effect: Update | Increment | Delete, committed: Row | None) -> WrittenRow:
        """Return the row that an effect changes, as it would be with the earlier effects."""
        known = self.of(effect.rows)
        held = known.touched.get(effect.key)
        if held is None:
            if effect.key not in known.seen and committed is not None:
                self._count_bytes(committed)
            base = known.seen.get(effect.key, committed)
            held = WrittenRow(base, base, checked=False, first=len(self.effects), line=effect.line)
        if held.now is None:
            raise not_found(effect.rows.name)
        self.require_same_database(effect.rows)
        return held

    def _add_effect(self, effect: RowEffect, held: WrittenRow) -> None:
        """Append an effect and keep the row as it is after it."""
        self.of(effect.rows).touched[effect.key] = held
        self.effects.append(effect)

    # Reads of the attempt itself

    def excluded_keys(self, rows: Dataset) -> tuple[Any, ...]:
        """Return the keys that a query must exclude, because their rows come from the journal."""
        return tuple(key for key, held in self.of(rows).touched.items() if not held.token)

    def written(self, rows: Dataset) -> dict[Any, Row | None]:
        """Return the rows of the journal as this attempt sees them, None for deleted ones."""
        return {key: held.now for key, held in self.of(rows).touched.items()}

    def matching_rows(self, rows: Dataset, tree: Filter, transform: RowTransform = unchanged_row) -> list[Row]:
        """Return the rows of the journal that match a filter.

        Args:
            transform: adds related rows for filters on them.
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
        """Merge the first committed rows (without those of the journal) and the journal's rows into a page.

        Args:
            cut: the database has more rows, so that the order of rows after the last one is unknown.
        """
        own = self.matching_rows(rows, tree, transform)
        if after_terms is not None:
            own = [row for row in own if placed(order, terms_of(order, row), after_terms) > 0]
        if cut:
            last = terms_of(order, committed[-1])
            own = [row for row in own if placed(order, terms_of(order, row), last) < 0]
        return ordered(order, committed + own)[:limit] if own else committed[:limit]

    def aggregate_rows(
        self, rows: Dataset, tree: Filter, wanted: AggregateQuery, transform: RowTransform = unchanged_row
    ) -> PartialAggregates:
        """Compute an aggregate of the journal's rows."""
        return aggregate_rows(wanted, self.matching_rows(rows, tree, transform))

    # Keyed values

    def value(self, scope: str, key: str) -> KnownValue:
        """Return what this attempt knows of a keyed value."""
        return self.values.setdefault((scope, key), KnownValue())

    def set_value(self, effect: KvSet | KvAdd, now: str | None) -> None:
        """Write a key; ``now`` is the JSON text for later reads of the attempt."""
        held = self.value(effect.scope, effect.key)
        if not held.written:
            held.first, held.line = len(self.effects), effect.line
        held.now, held.written = now, True
        held.checked = held.checked or (held.shown and isinstance(effect, KvSet))
        self.effects.append(effect)

    # Reads of feeds, mails, events and later runs

    def add(self, effect: Consumed | Mail | Emit | RunLater | CancelRun) -> None:
        """Add an effect on no row and no key."""
        self.effects.append(effect)

    def message_id(self) -> str:
        """Return the Message-ID of the next mail: the same in every attempt of this step with the same preceding effects."""
        return f"<{self.action_id}.{self.step}.{len(self.effects)}@lodger>"

    def describe(self, *, whole: bool = False) -> tuple[dict[str, Any], ...]:
        """Describe the effects in call order, updates with their previous values.

        Args:
            whole: add previous values for increments and deletions too.
        """
        shown = []
        for effect in self.effects:
            before = None
            if isinstance(effect, Update | Increment | Delete if whole else Update):
                before = self.of(effect.rows).touched[effect.key].base
            shown.append(describe(effect, before))
        return tuple(shown)
