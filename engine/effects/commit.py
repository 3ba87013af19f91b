"""Applies a journal on a connection, inside the caller's transaction: completely, or not at all with an error.

The one owner of writes to tenants' rows. The caller holds the write transaction (``BEGIN IMMEDIATE`` on SQLite; on
PostgreSQL rows are locked here), so that rows cannot change between comparison and write.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, literal
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.sql.elements import ColumnElement

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.changes import feed, triggers
from lodger.engine.data.filtering.evaluator import Row
from lodger.engine.data.reading import document_index
from lodger.engine.data.reading.reader import Reader
from lodger.engine.data.sets import guard
from lodger.engine.data.sets.dataset import Collection, Dataset, Reference, TableDataset
from lodger.engine.data.sets.foreign import state_of
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects import database_errors, holds, kv_store
from lodger.engine.effects.commit_errors import ConflictFound, EffectRefused, WriteBlocked
from lodger.engine.effects.database_errors import (
    CONSTRAINT_AT_COMMIT,
    ENDS_TRANSACTION,
    HELD,
    NO_WRITES,
    TOO_LONG,
    TOO_SLOW,
    TransactionLost,
    is_read_only_view,
    is_refusal,
)
from lodger.engine.effects.effect import (
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
    given_values,
)
from lodger.engine.effects.journal import Journal
from lodger.engine.effects.write_set import ROW_EFFECTS, ExpectedRow, WriteSet
from lodger.engine.store.actions import later_runs
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.drivers import driver_of, prepared
from lodger.engine.store.drivers.prepared import Answer
from lodger.engine.store.queue import events, followers, outbox


def apply(connection: Connection, pending: Journal | WriteSet, *, now_us: int, verify: bool = True) -> dict[int, Any]:
    """Apply every effect in call order, in a savepoint of its own.

    Args:
        connection: a connection in a transaction that may write.
        pending: effects of a successful step; all must belong to the connection's database.
        now_us: time of the commit, microseconds UTC.
        verify: compare the rows that were read with the present ones; False if they were compared before and held
            since.

    Returns:
        The keys that the database generated, by their tokens.

    Raises:
        EffectRefused: a constraint or a reference; nothing is applied.
        ConflictFound: a written row changed since it was read; nothing is applied.
        WriteBlocked: a sealed attempt, or a transaction of the platform, locks the rows; nothing is applied.
        TransactionLost: the caller's transaction was rolled back by the database.
    """
    try:
        with savepoint(connection):
            return write(connection, pending, now_us=now_us, verify=verify)
    except DBAPIError as error:
        if driver_of(connection).is_transaction_lost(connection):
            raise database_errors.root_cause(error) from None
        raise


def write(connection: Connection, pending: Journal | WriteSet, *, now_us: int, verify: bool = True) -> dict[int, Any]:
    """Do the work of :func:`apply` inside the caller's savepoint, which must be rolled back if this raises."""
    if not pending:
        return {}
    write_set = pending if isinstance(pending, WriteSet) else pending.write_set()
    try:
        with guard.recheck_on_error(write_set.datasets, write_set.home), _bounded_waits(connection, write_set):
            return _Commit(connection, write_set, now_us).run(verify=verify)
    except DBAPIError as error:
        if write_set.home is None and state_of(error) in HELD:
            said = "rows that this run changes are locked by another transaction"
            raise WriteBlocked(ConflictFound("conflict", said, index=0)) from error
        if write_set.home is None and state_of(error) == TOO_LONG:
            raise EffectRefused("too_slow", TOO_SLOW, index=len(write_set.effects) - 1) from error
        raise


#: Maximum wait for a row that the platform has locked, in a commit in the ledger's shared transaction, milliseconds.
LOCK_MS = 50
#: Maximum duration of one statement of such a commit, triggers of the platform's table included, milliseconds.
STATEMENT_MS = 5000


@contextmanager
def _bounded_waits(connection: Connection, write_set: WriteSet) -> Iterator[None]:
    """Limit waits and statements on the platform's tables in the ledger's database: its transactions and triggers are unbounded."""
    if write_set.home is not None or not any(isinstance(rows, TableDataset) for rows in write_set.sets):
        yield
        return
    with driver_of(connection).short_waits(connection, LOCK_MS, STATEMENT_MS):
        yield


class _Commit:
    def __init__(self, connection: Connection, write_set: WriteSet, now_us: int) -> None:
        self.connection = connection
        self.driver = driver_of(connection)
        self.write_set = write_set
        self.now_us = now_us
        self.scope = Scope(write_set.tenant_id)
        self.reader = Reader(connection, self.scope)
        self.wall = write_set.datasets.wall(write_set.home)
        self.live: dict[Dataset, dict[Any, Row]] = {}
        self.generated: dict[int, Any] = {}
        self.changed: dict[Dataset, dict[Any, str]] = {}
        self.indexes: dict[str, Answer] = {}

    def run(self, *, verify: bool) -> dict[int, Any]:
        """Lock and compare the rows of the write set, then apply its effects; return generated keys by token."""
        self.verify = verify
        if self.wall.role:
            guard.name_tenant(self.connection, self.write_set.tenant_id, self.write_set.datasets, self.write_set.sets)
        if verify:
            require_free = holds.ask(self.connection, self.write_set)
        for each in {rows.name for rows in self.write_set.sets if isinstance(rows, Collection)}:
            self.indexes[each] = document_index.ask_paths(self.connection, self.scope, each)
        # The same order in every commit, so that two commits cannot deadlock.
        for rows, expected_rows in sorted(self.write_set.expected_rows.items(), key=lambda item: item[0].name):
            self.live[rows] = self.reader.rows(rows, expected_rows, lock=True)
            if verify:
                self._unchanged(rows, expected_rows)
        if verify:
            require_free()
            kv_store.check_unchanged(self.connection, self.write_set, self.now_us)
        consumer = self.write_set.consumer
        last = self.driver.begin_attribution(self.connection, consumer) if self._has_triggers() else None
        for with_role, some in groupby(self.write_set.effects, self._uses_role):
            with guard.as_role(self.connection, stands=with_role):
                for index, effect in some:
                    self._apply_or_refuse(index, effect)
        self._check_deferred_rules()
        self._write_feed()
        self._execute_kept()
        if last is not None:
            self.driver.end_attribution(self.connection, last, consumer)
        return self.generated

    def _check_deferred_rules(self) -> None:
        """Check deferred constraints now: the transaction is shared with other attempts."""
        tables = [
            (n, effect) for n, effect in self.write_set.effects if isinstance(effect, ROW_EFFECTS) and _in_table(effect)
        ]
        if not tables:
            return
        index, last = tables[-1]
        try:
            self.driver.check_constraints(self.connection)
        except DBAPIError as error:
            if not is_refusal(error):
                raise
            place = last.line if len({effect.line for _n, effect in tables}) == 1 else None
            raise EffectRefused("constraint", CONSTRAINT_AT_COMMIT, index=index, place=place) from None

    def _write_feed(self) -> None:
        """Write changes to the feed, one per row."""
        for rows, changed in self.changed.items():
            if not feed.kept(rows) or self._has_trigger(rows):
                continue
            keyed = [
                (feed.key_text(rows, self._generated_key(key)), kind)
                for key, kind in changed.items()
                if kind != feed.NOTHING
            ]
            owner = feed.owner_of(rows, self.write_set.tenant_id)
            feed.record(self.connection, feed.source_of(rows), owner, keyed, self.now_us, self.write_set.consumer)

    def _has_triggers(self) -> bool:
        """Whether triggers record some of the changes, which need the name of the consumer."""
        return any(isinstance(rows, TableDataset) and rows.feed == "trigger" for rows in self.write_set.sets)

    def _has_trigger(self, rows: Dataset) -> bool:
        """Whether a trigger of the database records the changes of a dataset in the feed."""
        return isinstance(rows, TableDataset) and rows.feed == "trigger" and triggers.stands(self.connection, rows)

    def _record_change(self, effect: RowEffect) -> None:
        """Record the net change of a row over the whole run."""
        changed = self.changed.setdefault(effect.rows, {})
        kind = feed.INSERT if isinstance(effect, Insert) else feed.DELETE if isinstance(effect, Delete) else feed.UPDATE
        changed[effect.key] = feed.net(changed.get(effect.key), kind)

    def _uses_role(self, placed: tuple[int, Effect]) -> bool:
        """Whether an effect is written under the role that cannot write other tenants' rows."""
        effect = placed[1]
        if isinstance(effect, KvSet | KvAdd) or (
            isinstance(effect, ROW_EFFECTS) and isinstance(effect.rows, Collection)
        ):
            return self.wall.role
        return isinstance(effect, ROW_EFFECTS) and effect.rows.name in self.wall.written

    def _apply_or_refuse(self, index: int, effect: Effect) -> None:
        """Write one effect; a refusal by the database is raised as EffectRefused, which names the effect."""
        before = prepared.mark(self.connection, _Placed(index, effect))
        try:
            self._apply(index, effect)
        except DBAPIError as error:
            self._refuse(error, _Placed(index, effect))
            raise
        except CallRefused as refusal:
            raise EffectRefused(refusal.code, refusal.message, index=index, place=effect.line) from None
        finally:
            prepared.mark(self.connection, before)

    def _execute_kept(self) -> None:
        """Send the statements that were kept to be executed together, and wait for them; raises the refusal of one that failed."""
        try:
            prepared.flush(self.connection)
        except DBAPIError as error:
            self._refuse(error, None)
            raise

    def _refuse(self, error: DBAPIError, placed: "_Placed | None") -> None:
        """Raise the refusal of the effect whose statement has failed, which may be an earlier one; return if it is none."""
        marked = prepared.mark_of(error)
        placed = marked if isinstance(marked, _Placed) else placed
        if placed is None:
            return
        index, effect = placed.index, placed.effect
        if is_refusal(error) and self.driver.is_transaction_lost(self.connection):
            said = f"{_name(effect)}: {ENDS_TRANSACTION}"
            raise TransactionLost(EffectRefused("rolled_back", said, index=index, place=effect.line)) from error
        if is_read_only_view(error) or self.driver.is_read_only_view(error):
            raise EffectRefused("read_only", f"{_name(effect)}: {NO_WRITES}", index=index, place=effect.line) from None
        if state_of(error) == TOO_LONG and self.write_set.home is None:
            raise EffectRefused("too_slow", TOO_SLOW, index=index, place=effect.line) from None
        if not is_refusal(error):
            return
        if isinstance(effect, Insert) and effect.upsert and isinstance(error, IntegrityError):
            said = (
                f"a row of {effect.rows.name} with this key exists now, or a constraint of the table forbids this row"
            )
            raise ConflictFound("conflict", said, index=index, place=effect.line) from None
        said = (
            f"{effect.rows.name} has a document with the id {effect.key!r} already; upsert changes it"
            if isinstance(effect, Insert) and isinstance(effect.rows, Collection)
            else f"{_name(effect)}: a constraint of the table forbids this"
        )
        raise EffectRefused("constraint", said, index=index, place=effect.line) from None

    def _unchanged(self, rows: Dataset, expected_rows: Mapping[Any, ExpectedRow]) -> None:
        """Raise ConflictFound if a row that the attempt read differs by now."""
        live = self.live[rows]
        for key, held in expected_rows.items():
            current = live.get(key)
            if current is None or (held.base is not None and current != held.base):
                what = f"a row of {rows.name} has changed in the meantime"
                raise ConflictFound("conflict", what, index=held.index, place=held.line)

    def _apply(self, index: int, effect: Effect) -> None:
        """Write one effect to the database, by its kind."""
        if isinstance(effect, ROW_EFFECTS):
            self._record_change(effect)
        if isinstance(effect, Insert):
            self._insert(effect)
        elif isinstance(effect, Update | Increment):
            self._change(effect)
        elif isinstance(effect, Delete):
            self._delete(effect)
        elif isinstance(effect, KvSet | KvAdd):
            kv_store.write(self.connection, self.write_set.tenant_id, effect, self.now_us)
        elif isinstance(effect, Consumed):
            self._consume(index, effect)
        elif isinstance(effect, Emit):
            place = (self.write_set.action_id, self.write_set.step, index)
            events.enqueue(
                self.connection,
                self.write_set.tenant_id,
                effect.name,
                strict_json.plain(json.loads(effect.data)),
                place,
                self.now_us,
            )
        elif isinstance(effect, RunLater):
            later_runs.request(self.connection, self._later(effect), self.now_us)
        elif isinstance(effect, CancelRun):
            later_runs.cancel(self.connection, self.write_set.tenant_id, effect.script, effect.run, self.now_us)
        else:
            self._mail(index, effect)

    def _consume(self, index: int, effect: Consumed) -> None:
        """Move the position of a reader of changes; raise ConflictFound if another run of it has moved it since it was read."""
        place = (self.connection, self.write_set.tenant_id, effect.consumer, effect.source)
        if self.verify and followers.position(*place) != effect.base:
            said = f"changes of {effect.name} were read by another run in the meantime"
            raise ConflictFound("conflict", said, index=index, place=effect.line)
        followers.move(*place, effect.to, self.now_us)

    def _later(self, effect: RunLater) -> later_runs.LaterRun:
        """Return the later run that an effect requests."""
        return later_runs.LaterRun(
            self.write_set.tenant_id, effect.id, effect.script, effect.at_us, effect.input, effect.key,
            f"{later_runs.BY_ACTION}{self.write_set.action_id}",
        )  # fmt: skip

    def _insert(self, effect: Insert) -> None:
        """Insert a row or a document."""
        rows = effect.rows
        row = self._resolved(rows, effect.row)
        said = self._resolved(rows, given_values(effect))
        if isinstance(rows, Collection):
            self.scope.insert_document(self.connection, rows, effect.key, _body(row), self.now_us)
            self._index(rows, row)
        else:
            self._check_references(rows, said)
            values: dict[str, Any] = self._values(rows, said)
            if not effect.token:
                values |= self._values(rows, {rows.key.name: effect.key})
            result = self.connection.execute(self.scope.insert(rows, values))
            generated = None
            if effect.token:
                position = list(rows.table.primary_key.columns).index(rows.key.column)
                generated = self.generated[effect.key] = (result.inserted_primary_key or {position: None})[position]
            if result.rowcount == 0 or (effect.token and generated is None):  # SQLite reports the key of another row
                raise CallRefused("not_written", f"insert in {rows.name}: a rule of the table discards this row")
        self.live.setdefault(rows, {})[effect.key] = row

    def _change(self, effect: Update | Increment) -> None:
        """Update or increment a row or a document."""
        rows = effect.rows
        live = self.live.setdefault(rows, {})
        if effect.key not in live:
            raise CallRefused("vanished", "a row to be changed no longer exists")
        changed = self._resolved(rows, apply_to(live[effect.key], effect))
        live[effect.key] = changed
        if isinstance(rows, Collection):
            self.scope.update_document(self.connection, rows, effect.key, _body(changed), self.now_us)
            self._index(rows, changed)
            return
        named = effect.changes if isinstance(effect, Update) else effect.amounts
        part = {name: changed[name] for name in named}
        self._check_references(rows, part)
        values = self._values(rows, part)
        self._require_one_row(
            self.connection.execute(self.scope.update(rows).where(self._key_condition(rows, effect.key)).values(values))
        )

    def _delete(self, effect: Delete) -> None:
        """Delete a row or a document."""
        rows, live = effect.rows, self.live.get(effect.rows, {})
        if isinstance(rows, Collection) and effect.key in live:
            self.scope.delete_document(self.connection, rows, effect.key)
        else:
            self._require_one_row(
                self.connection.execute(self.scope.delete(rows).where(self._key_condition(rows, effect.key)))
            )
        live.pop(effect.key, None)
        if isinstance(effect.rows, Collection) and self._indexed(effect.rows):
            document_index.remove(self.connection, self.scope, effect.rows.name, effect.key)

    def _index(self, rows: Collection, row: Row) -> None:
        """Write the index entries of a document."""
        indexed = self._indexed(rows)
        if indexed:
            document_index.write(self.connection, self.scope, rows.name, indexed, row)

    def _indexed(self, rows: Collection) -> list[str]:
        """Return the indexed paths of a collection, looked up only once."""
        return [row[0] for row in self.indexes[rows.name]()]

    def _require_one_row(self, result: Any) -> None:
        """Raise CallRefused (``vanished``) unless a statement changed exactly one row."""
        if result.rowcount != 1:
            raise CallRefused("vanished", "a row to be changed no longer exists")

    def _key_condition(self, rows: Dataset, key: Any) -> ColumnElement[bool]:
        """Return the SQL condition that a row of a dataset has this key, or the generated key of a token."""
        return self.reader.compiler.equals(rows.key, self._generated_key(key))

    def _generated_key(self, key: Any) -> Any:
        """Return the key that the database generated for a token; other keys unchanged."""
        return self.generated.get(key, key) if self.generated and isinstance(key, int) else key

    def _values(self, rows: TableDataset, row: Row) -> dict[str, Any]:
        """Return the values of a row by column, as the database stores them."""
        written = self.reader.compiler.written
        return {rows.fields[name].column.key: written(rows.fields[name], value) for name, value in row.items()}

    def _resolved(self, rows: Dataset, row: Row) -> Row:
        """Replace tokens by generated keys, in references only: plain numbers could look like tokens."""
        if not self.generated or isinstance(rows, Collection):
            return row
        return row | {name: self.generated[row[name]] for name in rows.references if row.get(name) in self.generated}

    def _check_references(self, rows: TableDataset, row: Row) -> None:
        """Refuse references to rows that this tenant does not have; those of other tenants get the same error as missing ones."""
        for name, reference in rows.references.items():
            value = row.get(name)
            if value is not None and not self._exists(rows, name, reference, value):
                raise CallRefused("no_such_reference", f"{rows.name}.{name}: the referenced row does not exist")

    def _exists(self, rows: TableDataset, name: str, reference: Reference, value: Any) -> bool:
        """Whether a reference of an inserted row leads to a row of this tenant."""
        target = self.write_set.datasets.of_table(reference.table, rows.database)
        if target is None:
            return False
        bound = self.reader.compiler.bound(rows.fields[name], value)
        found = self.scope.select(target, literal(1)).where(target.table.c[reference.column.key] == bound).limit(1)
        return self.connection.execute(found).first() is not None

    def _mail(self, index: int, mail: Mail) -> None:
        """Add a mail to the outbox."""
        write_set = self.write_set
        row = {
            "tenant_id": write_set.tenant_id,
            "id": mail.message_id.strip("<>"),
            "action_id": write_set.action_id,
            "step": write_set.step,
            "n": index,
            "kind": "mail",
            "target": "",
            "message_id": mail.message_id,
            "payload": strict_json.dump(mail.parts()),
        }
        outbox.enqueue(self.connection, [row], self.now_us)


@dataclass(frozen=True, slots=True)
class _Placed:
    """An effect and its place in the run, as the mark of its statements."""

    index: int
    effect: Effect


def _body(row: Row) -> str:
    """Return the JSON text of a document without its id."""
    return strict_json.dump({name: value for name, value in row.items() if name != "id"})


def _name(effect: Effect) -> str:
    """Return a name of an effect for error messages."""
    if isinstance(effect, Insert | Update | Increment | Delete):
        return f"{type(effect).__name__.lower()} in {effect.rows.name}"
    if isinstance(effect, RunLater | CancelRun):
        return "later run"
    return "mail" if isinstance(effect, Mail) else "event" if isinstance(effect, Emit) else "kv"


def _in_table(effect: RowEffect) -> bool:
    """Whether an effect is on a row of a table, not on a document."""
    return isinstance(effect.rows, TableDataset)
