"""Brings an archive of a tenant into this ledger, all of it or nothing; see :mod:`lodger.engine.ledger.archive`.

Whoever made the file may be careless or hostile: every row is made this tenant's, of the tables and columns that there are, of their
kinds; nothing runs, is leased or armed; whatever a claim or a tick of all tenants would stumble over is read once before it is kept.
"""

import base64
import binascii
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Float, Integer, LargeBinary, Numeric, String, Table, select
from sqlalchemy.exc import DataError, IntegrityError

from lodger.engine.effects.savepoint import savepoint
from lodger.engine.errors import Conflict, InputError
from lodger.engine.identity import OWNED, PLATFORM
from lodger.engine.ledger import storage, tenants, turns
from lodger.engine.ledger.archive import FORMAT, MARK, TABLES
from lodger.engine.ledger.books import Books
from lodger.engine.ledger.grants import encoded
from lodger.engine.ledger.many import insert_many
from lodger.engine.ledger.migrations.revision import current
from lodger.engine.ledger.records import Tenant
from lodger.engine.ledger.schema import scheduling as s
from lodger.engine.typed_params import read_fields

#: Most bytes of an archive once it is unpacked, and of one row.
MOST_BYTES = 2 * 1024**3
MOST_ROW = 64 * 1024**2
PAGE = 500
#: Instants of the years 1 to 9999, microseconds: no other whole number in an archive is larger.
_LEAST, _MOST = -62_135_596_800_000_000, 253_402_300_800_000_000
#: States of an action in which nobody holds it.
_STATES = {"ready", "waiting_retry", "done", "failed", "cancelled", "skipped", "expired"}
_OPEN = ("ready", "waiting_retry")
_CLOCKS = {"suspended", "paused", "ended", "deleted"}
#: Columns whose text is JSON.
_JSON = {
    "params", "handed", "steps", "result", "error", "effects", "lines", "body", "value", "modules", "grants", "fields", "rules",
    "retry", "conduct", "limits", "hosts", "events", "payload", "before", "after", "answer",
}  # fmt: skip
_HISTORY = {"lodger_actions": ("result",), "lodger_attempts": ("error", "effects"), "lodger_attempt_logs": ("lines",)}


def _bad(why: str) -> InputError:
    return InputError(
        "archive_invalid", "this is no archive of a tenant", why=why, fix="export the tenant again, with this version"
    )


def bring_in(books: Books, connection: Connection, tenant_id: str, archive: bytes, now_us: int) -> Tenant:
    """Make a tenant of an archive, suspended.

    Raises:
        InputError: archive_invalid, archive_of_other, archive_of_other_version, limit_unknown, limit_out_of_range, grant_unknown.
        Conflict: tenant_exists, script_not_offered.
    """
    lines = _Lines(archive)
    head = _head(lines, tenant_id, current(connection))
    try:
        with savepoint(connection):
            return _Arrival(books, connection, tenant_id).through(head, lines, now_us)
    except (IntegrityError, DataError) as error:
        raise _bad(f"its rows contradict each other: {str(error.orig).splitlines()[0]}") from error


class _Lines:
    """The lines of an archive, bounded, whose digest is checked at the end."""

    def __init__(self, archive: bytes) -> None:
        self._packed = gzip.GzipFile(fileobj=io.BytesIO(archive))
        self._read = 0
        self._digest = hashlib.sha256()

    def next(self) -> Any:  # noqa: ANN401 - any JSON value
        line = self._unpacked(self._packed.readline, MOST_ROW + 1)
        self._read += len(line)
        if self._read > MOST_BYTES or len(line) > MOST_ROW:
            raise _bad("it unpacks to more than a tenant may hold")
        if not line.endswith(b"\n"):
            raise _bad("it was cut off")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise _bad("a line is no JSON") from None
        if isinstance(value, dict) and set(value) == {"sha256"}:
            if value["sha256"] != self._digest.hexdigest():
                raise _bad("it was changed since it was made")
            if self._unpacked(self._packed.read, 1):
                raise _bad("there is more in it than there should be")
            return None
        self._digest.update(line)
        return value

    @staticmethod
    def _unpacked(read: Callable[[int], bytes], most: int) -> bytes:
        try:
            return read(most)
        except (OSError, EOFError, zlib.error) as error:
            raise _bad(f"it cannot be unpacked: {error}") from None


def _head(lines: _Lines, tenant_id: str, schema: str | None) -> list[Any]:
    head = lines.next()
    if not isinstance(head, dict) or head.get(MARK) != FORMAT or not isinstance(head.get("row"), list):
        raise _bad("it does not begin like one")
    if head.get("tenant") != tenant_id:
        raise InputError(
            "archive_of_other",
            f"this is the archive of tenant {head.get('tenant')!r}",
            why="a tenant keeps its id: its secrets are sealed under it",
            fix="bring it in under that id",
        )
    if head.get("schema") != schema:
        raise InputError(
            "archive_of_other_version",
            f"this archive was made at schema {head.get('schema')!r}, this ledger is at {schema!r}",
            fix="bring both to the same version of Lodger, and export again",
        )
    return list(head["row"])


class _Arrival:
    def __init__(self, books: Books, connection: Connection, tenant_id: str) -> None:
        self._books, self._connection, self._tenant = books, connection, tenant_id
        #: Ids of bound scripts of the platform: as they were there, and as they are here with their newest version.
        self._bound: dict[str, tuple[str, int]] = {}
        self._history = 0

    def through(self, head: list[Any], lines: _Lines, now_us: int) -> Tenant:
        self._tenant_row(head, now_us)
        for table, rows in _by_table(lines):
            for some in _pages(self._read(table, row) for row in rows):
                insert_many(self._connection, table, some)
        self._check_scripts()
        self._check_schedules()
        storage.grow(self._connection, {self._tenant: self._history})
        requires = select(s.actions.c.requires).where(s.actions.c.tenant_id == self._tenant, s.actions.c.requires != "")
        wanted = [(self._tenant, each) for each in self._connection.scalars(requires.distinct())]
        turns.widen(self._connection, wanted)
        turns.refresh(self._connection, [self._tenant])
        return tenants.get(self._connection, self._tenant)

    def _tenant_row(self, cells: list[Any], now_us: int) -> None:
        row = _typed(s.tenants, [column.name for column in s.tenants.c], cells)
        try:
            limits, grants = json.loads(row["limits"]), row["grants"] and json.loads(row["grants"])
            people, labels = row["people"] and json.loads(row["people"]), row["labels"].split()
        except (ValueError, RecursionError, AttributeError):
            raise _bad("the tenant's own row cannot be read") from None
        if not isinstance(limits, dict) or not isinstance(grants or [], list) or not isinstance(people or [], list):
            raise _bad("the tenant's own row cannot be read")
        tenants.create(
            self._books, self._connection, self._tenant, row["name"], limits, now_us, labels=labels,
            grants=encoded(grants) if grants is not None else None, people=row["people"],
        )  # fmt: skip
        tenants.suspend(self._books, self._connection, self._tenant, now_us)

    def _read(self, table: Table, row: dict[str, Any]) -> dict[str, Any]:
        row["tenant_id"] = self._tenant
        for name in _JSON & set(row):
            if isinstance(row[name], str):
                try:
                    json.loads(row[name])
                except (ValueError, RecursionError):
                    raise _bad(f"{table.name}.{name} is no JSON") from None
        if table is s.scripts:
            self._script(row)
        elif table is s.schedule_clock and row["state"] not in _CLOCKS:
            raise _bad(f"a clock is {row['state']!r} in it")
        elif table is s.actions:
            if row["state"] not in _STATES or (row["node_id"] is not None and row["state"] in _OPEN):
                raise _bad(f"an action is {row['state']!r} in it")
            row["node_key"] = ""
        self._rebind(table, row)
        self._history += storage.size(*(row[name] for name in _HISTORY.get(table.name, ())))
        return row

    def _script(self, row: dict[str, Any]) -> None:
        row["offered"] = 0
        if row["kind"] != "bound":
            if row["kind"] not in {"script", "ping"} or row["name"].startswith(OWNED):
                raise _bad(f"a script is a {row['kind']!r}")
            return
        c = s.scripts.c
        here = (c.tenant_id == PLATFORM, c.name == row["name"].removeprefix(OWNED), c.offered == 1, c.kind != "bound")
        found = self._connection.execute(select(c.id, c.version).where(*here)).first()
        if found is None:
            raise Conflict(
                "script_not_offered",
                f"the tenant has bound {row['name']!r}, which this platform does not offer",
                fix="store and offer a script of that name here first",
            )
        self._bound[row["id"]] = (found.id, found.version)
        row["id"], row["version"] = found.id, found.version

    def _rebind(self, table: Table, row: dict[str, Any]) -> None:
        """Let what names a script of the platform's name the one that is here."""
        here = self._bound.get(row.get("script_id", ""))
        if here is not None:
            row["script_id"] = here[0]
            if table is s.actions and row["state"] in _OPEN:
                row["script_version"] = here[1]
        if self._bound and isinstance(row.get("steps"), str):
            steps = json.loads(row["steps"])
            row["steps"] = json.dumps([self._step(each) for each in steps])

    def _step(self, step: Any) -> Any:  # noqa: ANN401 - a script and its version, or an object that names a script
        if isinstance(step, list) and step and step[0] in self._bound:
            return [*self._bound[step[0]]]
        if isinstance(step, dict) and step.get("script_id") in self._bound:
            return {name: value for name, value in step.items() if name != "version"} | {
                "script_id": self._bound[step["script_id"]][0]
            }
        return step

    def _check_scripts(self) -> None:
        """Read what a claim reads of a version, and find the version of everything that may start."""
        v, a = s.script_versions.c, s.actions.c
        known: set[tuple[str, int]] = set()
        for row in self._connection.execute(
            select(v.script_id, v.version, v.modules, v.grants, v.fields).where(v.tenant_id == self._tenant)
        ).all():
            modules, fields = json.loads(row.modules), row.fields and json.loads(row.fields)
            if not isinstance(modules, dict) or not all(isinstance(text, str) for text in modules.values()):
                raise _bad("a script is not made of files")
            try:
                read_fields(fields)
                encoded(json.loads(row.grants) if row.grants else None)
            except (TypeError, AttributeError, InputError) as error:
                raise _bad(f"what a script declares cannot be read: {error}") from None
            known.add((row.script_id, row.version))
        known |= set(self._bound.values())
        waits = (a.tenant_id == self._tenant, a.state.in_(_OPEN))
        for waiting in self._connection.execute(select(a.script_id, a.script_version, a.steps).where(*waits)).all():
            try:
                steps = json.loads(waiting.steps or "[]")
                named = [(waiting.script_id, waiting.script_version), *(tuple(each) for each in steps)]
                absent = set(named) - known
            except TypeError:
                raise _bad("the steps of an action cannot be read") from None
            if absent:
                raise _bad("an action waits for a version that is not in it")

    def _check_schedules(self) -> None:
        """Make every revision as the engine will, so that none of them is a surprise to a tick of all tenants."""
        r, k, a = s.schedule_revisions.c, s.schedule_clock.c, s.actions.c
        mine = self._connection.execute(select(r.schedule_id, r.revision).where(r.tenant_id == self._tenant)).all()
        keys = {(row.schedule_id, row.revision) for row in mine}
        needed = [
            *self._connection.execute(select(k.schedule_id, k.revision).where(k.tenant_id == self._tenant)).all(),
            *self._connection.execute(
                select(a.schedule_id, a.revision)
                .where(a.tenant_id == self._tenant, a.revision.is_not(None), a.state.in_(_OPEN))
                .distinct()
            ).all(),
        ]
        if {(row.schedule_id, row.revision) for row in needed} - keys:
            raise _bad("a schedule has a revision that is not in it")
        book = self._books.rulebook.fresh()
        for schedule, revision in sorted(keys):
            try:
                made = book.revision(self._connection, self._tenant, schedule, revision)
                self._books.sources.grants(made.grants)
                for step in range(max(1, len(made.steps))):
                    self._books.sources.limits("{}", made.limits_of(step))
            except Exception as error:
                raise _bad(f"a revision cannot be read: {error}") from error


def _by_table(lines: _Lines) -> Iterator[tuple[Table, Iterator[dict[str, Any]]]]:
    """Give the tables in their order, each with its rows."""
    line = lines.next()
    for table in TABLES.values():
        if not isinstance(line, dict) or line.get("table") != table.name:
            raise _bad(f"{table.name} is missing")
        columns = line.get("columns")
        if columns != [column.name for column in table.c]:
            raise _bad(f"{table.name} has other columns")
        rows: list[Any] = []

        def each(
            table: Table = table, columns: list[str] = columns, ends: list[Any] = rows
        ) -> Iterator[dict[str, Any]]:
            while isinstance(line := lines.next(), list):
                yield _typed(table, columns, line)
            ends.append(line)

        yield table, each()
        line = rows[0]
    if line is not None:
        raise _bad("there is more in it than there should be")


def _pages(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == PAGE:
            yield some
            some = []
    if some:
        yield some


def _typed(table: Table, columns: list[str], cells: list[Any]) -> dict[str, Any]:
    """Give a row by name, each value of its column's kind."""
    if len(cells) != len(columns):
        raise _bad(f"a row of {table.name} has {len(cells)} cells")
    return {name: _value(table, name, cell) for name, cell in zip(columns, cells, strict=True)}


def _value(table: Table, name: str, cell: Any) -> Any:  # noqa: ANN401 - any JSON value
    column = table.c[name]
    if cell is None:
        if not column.nullable:
            raise _bad(f"{table.name}.{name} is empty")
        return None
    kind = column.type
    if isinstance(kind, LargeBinary):
        try:
            return base64.b64decode(cell["b64"], validate=True)
        except (TypeError, KeyError, binascii.Error, ValueError):
            raise _bad(f"{table.name}.{name} is no bytes") from None
    if isinstance(kind, Integer):
        if not isinstance(cell, int) or isinstance(cell, bool) or not _LEAST <= cell < _MOST:
            raise _bad(f"{table.name}.{name} is no whole number")
        return cell
    if isinstance(kind, Numeric | Float):
        if not isinstance(cell, int | float) or isinstance(cell, bool):
            raise _bad(f"{table.name}.{name} is no number")
        return float(cell)
    assert isinstance(kind, String)
    if not isinstance(cell, str) or (kind.length is not None and len(cell) > kind.length):
        raise _bad(f"{table.name}.{name} is no text of its length")
    if "\0" in cell or any("\ud800" <= letter <= "\udfff" for letter in cell):
        raise _bad(f"{table.name}.{name} holds what no database keeps")
    return cell
