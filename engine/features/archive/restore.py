"""Restores a tenant from an archive, completely or not at all; see :mod:`lodger.engine.features.archive.export`.

Archives may be damaged or hostile. Every row gets this tenant's id, and must match the tables, columns and types of
this ledger; nothing runs, is leased or armed; columns that claims and ticks of all tenants read are decoded once before
they are stored.
"""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Select, Table, select
from sqlalchemy.exc import DataError, IntegrityError

from lodger.engine.core.access.grants import MIB
from lodger.engine.core.errors import Conflict, InputError
from lodger.engine.core.ids import PLATFORM, PLATFORM_PREFIX
from lodger.engine.core.progress import ProgressCounter
from lodger.engine.features.archive import validation
from lodger.engine.features.archive.export import FORMAT, MARK, MAX_BYTES, MAX_ROW_BYTES, tables
from lodger.engine.features.archive.renaming import Renaming
from lodger.engine.features.archive.validation import OPEN, bad
from lodger.engine.store.actions import later_runs
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.connection.savepoint import savepoint
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.migrations.revision import current
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.queue.placements import require_placement
from lodger.engine.store.records import Tenant
from lodger.engine.store.schedules.revisions import MAX_STEPS
from lodger.engine.store.schema import scheduling as s
from lodger.engine.store.schema.metadata import UNDER_WAY
from lodger.engine.store.schema.script_data import fetches
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import encode
from lodger.engine.store.usage import storage_usage
from lodger.engine.vault.vault import Vault

#: Maximum number of rows, and of characters, that are inserted at once.
PAGE, PAGE_BYTES = 500, 4 * 1024**2
#: States of an action without a lease.
_STATES = {"ready", "waiting_retry", "done", "failed", "cancelled", "skipped", "expired"}
_CLOCKS = {"suspended", "paused", "ended", "deleted"}
_HISTORY = {
    "lodger_actions": ("result", "params"),
    "lodger_attempts": ("error", "effects"),
    "lodger_attempt_logs": ("lines",),
    "lodger_attempt_records": ("body",),
}


def bring_in(
    context: StoreContext,
    connection: Connection,
    tenant_id: str,
    archive: bytes,
    now_us: int,
    *,
    of: str | None = None,
    vault: Vault | None = None,
) -> Tenant:
    """Restore a tenant from an archive, suspended.

    Args:
        of: the tenant's id in the archive; None for the same.
        vault: encrypts its secrets anew, if its id is another one.

    Raises:
        InputError: archive_invalid, archive_of_other, archive_of_other_version, limit_unknown, limit_out_of_range,
            grant_unknown.
        Conflict: tenant_exists, script_not_offered.
    """
    lines = _Lines(archive)
    head = _head(lines, of or tenant_id, current(connection))
    renaming = None
    if of not in (None, tenant_id) and vault is not None:
        renaming, again = Renaming(vault, str(of), tenant_id), _Lines(archive)
        _head(again, str(of), current(connection))
        for table, row in _rows(again):
            renaming.learn(table, row)
    try:
        with savepoint(connection):
            return TenantImport(context, connection, tenant_id, renaming).run(head, lines, now_us)
    except (IntegrityError, DataError) as error:
        raise bad(f"its rows violate a constraint: {str(error.orig).splitlines()[0]}") from error


class _Lines:
    """The lines of an archive, bounded in size; the digest is checked at the end."""

    def __init__(self, archive: bytes) -> None:
        self._packed = gzip.GzipFile(fileobj=io.BytesIO(archive))
        self._read = 0
        self._digest = hashlib.sha256()

    def next(self) -> Any:
        """Read the next line of the archive; return its JSON value."""
        line = self._unpacked(self._packed.readline, MAX_ROW_BYTES + 1)
        self._read += len(line)
        if self._read > MAX_BYTES or len(line) > MAX_ROW_BYTES:
            raise bad("it is larger than the maximum size after decompression")
        if not line.endswith(b"\n"):
            raise bad("it is incomplete")
        value = validation.parsed(line)
        if isinstance(value, dict) and set(value) == {"sha256"}:
            if value["sha256"] != self._digest.hexdigest():
                raise bad("its checksum does not match")
            if self._unpacked(self._packed.read, 1):
                raise bad("it has data after its end")
            return None
        self._digest.update(line)
        return value

    @staticmethod
    def _unpacked(read: Callable[[int], bytes], maximum: int) -> bytes:
        """Return decompressed bytes, up to a maximum."""
        try:
            return read(maximum)
        except (OSError, EOFError, zlib.error) as error:
            raise bad(f"it cannot be decompressed: {error}") from None


def _head(lines: _Lines, tenant_id: str, schema: str | None) -> list[Any]:
    """Read and check the first line of an archive: its version, tenant and schema."""
    head = lines.next()
    if not isinstance(head, dict) or head.get(MARK) != FORMAT or not isinstance(head.get("row"), list):
        raise bad("its header is missing or malformed")
    if head.get("tenant") != tenant_id:
        raise InputError("archive_of_other", tenant=head.get("tenant"))
    if head.get("schema") != schema:
        raise InputError("archive_of_other_version", revision=head.get("schema"), current=schema)
    return list(head["row"])


class TenantImport:
    """Restores one archive inside one transaction."""

    def __init__(
        self, context: StoreContext, connection: Connection, tenant_id: str, renaming: Renaming | None = None
    ) -> None:
        self._context, self._connection, self._tenant, self._renaming = context, connection, tenant_id, renaming
        #: Bound platform scripts: id in the archive, and id and newest version in this ledger.
        self._bound: dict[str, tuple[str, int]] = {}
        #: Script versions of the tenant, bound platform scripts included.
        self._known: set[tuple[str, int]] = set()
        self._history = 0

    def run(self, head: list[Any], lines: _Lines, now_us: int) -> Tenant:
        """Insert all rows, check their references, and return the tenant.

        Raises:
            InputError: archive_invalid.
        """
        self._tenant_row(head, now_us)
        progress = ProgressCounter()
        for table, rows in groupby(_rows(lines), lambda each: each[0]):
            for number, some in enumerate(in_chunks(self._read(table, row) for _table, row in rows)):
                if number:
                    prepared.flush(self._connection)  # an archive may be larger than memory
                insert_many(self._connection, table, some)
                progress.add(len(some))
        self._read_together(self._check_owners, self._check_scripts)
        self._check_schedules()
        self._context.forget(self._tenant)
        storage_usage.add_history(self._connection, {self._tenant: self._history})
        requires = select(s.actions.c.requires).where(s.actions.c.tenant_id == self._tenant, s.actions.c.requires != "")
        wanted = [(self._tenant, each) for each in self._connection.scalars(requires.distinct())]
        ready_queue.add_queues(self._connection, wanted)
        ready_queue.refresh(self._connection, [self._tenant])
        return tenants.get(self._connection, self._tenant)

    def _read_together(self, *works: Callable[[], Any]) -> list[Any]:
        """Return the results of functions that read by this import's connection, asked for together."""
        return read_together(*works, connection=self._connection)

    def _rows(self, *statements: Select[Any]) -> list[Any]:
        """Return the rows of each of these statements, asked for together."""
        found = self._read_together(*(partial(self._connection.execute, each) for each in statements))
        return [each.all() for each in found]

    def _tenant_row(self, cells: list[Any], now_us: int) -> None:
        """Insert the tenant's own row, suspended, once its limits, grants, people and labels are checked."""
        row = validation.read(s.tenants, cells)
        # A name that is the id by default follows it.
        name = None if self._renaming is not None and row["name"] == row["id"] else row["name"]
        grants = None if row["grants"] is None else encode(json.loads(row["grants"]))
        tenants.create(
            self._context, self._connection, self._tenant, name, json.loads(row["limits"]), now_us,
            labels=row["labels"].split(), grants=grants, people=row["people"], plan=row["plan"], tz=row["tz"],
        )  # fmt: skip
        tenants.suspend(self._context, self._connection, self._tenant, now_us)

    def _read(self, table: Table, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of the archive with ids of this ledger, checked."""
        if self._renaming is not None:
            row = self._renaming.row(table, row)
        row["tenant_id"] = self._tenant
        row.update(dict.fromkeys(table.info.get(UNDER_WAY, ())))
        if table is s.scripts:
            self._script(row)
        elif table is s.script_versions and row["script_id"] in self._bound:
            raise bad("it has a version of one of the platform's scripts")
        elif table is s.schedule_clock and row["state"] not in _CLOCKS:
            raise bad(f"a schedule has the unknown state {row['state']!r}")
        elif table is s.actions:
            if row["state"] not in _STATES or (row["node_id"] is not None and row["state"] in OPEN):
                raise bad(f"an action has the state {row['state']!r}, or a node")
            row["node_key"] = ""
        elif table is fetches:
            validation.check_response_size(row["body"], self._context.settings.egress_max_mib * MIB)
        self._rebind(table, row)
        self._history += storage_usage.size(*(row[name] for name in _HISTORY.get(table.name, ())))
        return row

    def _script(self, row: dict[str, Any]) -> None:
        """Change the row of a bound script so that it refers to the platform's script of this ledger."""
        row["offered"] = 0
        if row["kind"] != "bound":
            if row["kind"] not in {"script", "ping"} or row["name"].startswith(PLATFORM_PREFIX):
                raise bad(f"a script has the kind {row['kind']!r}")
            return
        c = s.scripts.c
        here = (
            c.tenant_id == PLATFORM,
            c.name == row["name"].removeprefix(PLATFORM_PREFIX),
            c.offered == 1,
            c.kind != "bound",
        )
        found = self._connection.execute(select(c.id, c.version).where(*here)).first()
        if found is None:
            raise Conflict("script_not_offered", script=row["name"])
        self._bound[row["id"]] = (found.id, found.version)
        # Only the platform suspends its own scripts.
        row["id"], row["version"], row["suspended_us"] = found.id, found.version, None

    def _rebind(self, table: Table, row: dict[str, Any]) -> None:
        """Replace references to platform scripts by those of this ledger."""
        before = row.get("script_id", "")
        here = self._bound.get(before)
        if here is not None:
            row["script_id"] = here[0]
            if table is s.actions and row["state"] in OPEN:
                row["script_version"] = here[1]
                row["request_key"] = later_runs.rebound_key(row["request_key"], before, here[0])
        if self._bound and isinstance(row.get("steps"), str):
            steps = json.loads(row["steps"])
            row["steps"] = json.dumps([self._step(each) for each in steps])

    def _step(self, step: Any) -> Any:
        """Return a step of an action or revision with script ids of this ledger."""
        if isinstance(step, list) and step and step[0] in self._bound:
            return [*self._bound[step[0]]]
        if isinstance(step, dict) and str(step.get("script_id")) in self._bound:
            return {name: value for name, value in step.items() if name != "version"} | {
                "script_id": self._bound[step["script_id"]][0]
            }
        return step

    def _check_owners(self) -> None:
        """Check that no id belongs to another tenant: some lookups use the id of a schedule or action alone."""
        mine = {
            table: select(table.c.id).where(table.c.tenant_id == self._tenant)
            for table in (s.scripts, s.schedules, s.actions)
        }
        own = mine[s.scripts].where(s.scripts.c.kind != "bound")
        schedules, waiting = mine[s.schedules], mine[s.actions].where(s.actions.c.state.in_(OPEN))
        a = s.actions.c
        strange, *others = self._rows(
            select(a.id)
            .where(a.tenant_id == self._tenant, a.schedule_id.is_not(None), a.schedule_id.not_in(schedules))
            .limit(1),
            *(
                select(key).where(key.table.c.tenant_id != self._tenant, key.in_(ids)).limit(1)
                for key, ids in ((s.scripts.c.id, own), (s.schedule_clock.c.schedule_id, schedules), (a.id, waiting))
            ),
        )
        if any(others):
            raise bad("it has an id that belongs to another tenant")
        if strange:
            raise bad("an action refers to a schedule that it does not have")

    def _check_scripts(self) -> None:
        """Check that the version of every script and every waiting action exists."""
        c, v, a = s.scripts.c, s.script_versions.c, s.actions.c
        versions, newest, open_actions = self._rows(
            select(v.script_id, v.version).where(v.tenant_id == self._tenant),
            select(c.id, c.version).where(c.tenant_id == self._tenant),
            select(a.script_id, a.script_version, a.steps).where(a.tenant_id == self._tenant, a.state.in_(OPEN)),
        )
        self._known |= {tuple(row) for row in versions} | set(self._bound.values())
        if {tuple(row) for row in newest} - self._known:
            raise bad("a script refers to a version that it does not have")
        for waiting in open_actions:
            steps = [tuple(each) for each in json.loads(waiting.steps or "[]")]
            if {(waiting.script_id, waiting.script_version), *steps} - self._known:
                raise bad("an action refers to a version that it does not have")

    def _check_schedules(self) -> None:
        """Decode every revision as the engine does, so that none of them fails in a tick of all tenants."""
        r, k, a = s.schedule_revisions.c, s.schedule_clock.c, s.actions.c
        # Rules are not compiled: it takes long, and rules that do not compile stop their own schedule only.
        keys = set()
        scripts = {script for script, _version in self._known}
        revisions, *needed = self._rows(
            select(s.schedule_revisions).where(r.tenant_id == self._tenant),
            select(k.schedule_id, k.revision).where(k.tenant_id == self._tenant),
            select(s.schedules.c.id, s.schedules.c.revision).where(s.schedules.c.tenant_id == self._tenant),
            select(a.schedule_id, a.revision)
            .where(a.tenant_id == self._tenant, a.revision.is_not(None), a.state.in_(OPEN))
            .distinct(),
        )
        for row in revisions:
            try:
                made = self._context.revision_cache.read(row, compiled=False)
                require_placement(made.conduct, self._tenant)
                self._context.content_cache.grants(made.grants)
                for step in range(max(1, len(made.steps))):
                    self._context.content_cache.limits("{}", made.limits_of(step))
                named = {row.script_id, *(each["script_id"] for each in made.steps)}
                pinned = {(each["script_id"], each["version"]) for each in made.steps if "version" in each}
            except Exception as error:
                raise bad(f"a revision cannot be read: {error}") from error
            if named - scripts or pinned - self._known or len(made.steps) > MAX_STEPS:
                raise bad("a revision refers to a script or a version that it does not have, or has too many")
            keys.add((row.schedule_id, row.revision))
        if {tuple(row) for each in needed for row in each} - keys:
            raise bad("a schedule refers to a revision that it does not have")


def _rows(lines: _Lines) -> Iterator[tuple[Table, validation.Row]]:
    """Yield the rows of an archive, each with its table; the tables are in order."""
    table, others = None, iter(tables().values())
    while (line := lines.next()) is not None:
        if isinstance(line, list) and table is not None:
            yield table, validation.read(table, line)
            continue
        table = next(others, None)
        if table is None:
            raise bad("it has data after its end")
        if not isinstance(line, dict) or line.get("table") != table.name:
            raise bad(f"table {table.name} is missing")
        if line.get("columns") != [column.name for column in table.c]:
            raise bad(f"table {table.name} has different columns")
    if (table := next(others, None)) is not None:
        raise bad(f"table {table.name} is missing")


#: Types of long values.
_LONG = (str, bytes)


def in_chunks(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Group rows into lists of at most ``PAGE`` rows; a list ends when its texts exceed ``PAGE_BYTES``."""
    some: list[dict[str, Any]] = []
    held = 0
    for row in rows:
        some.append(row)
        held += sum([len(each) for each in row.values() if each.__class__ in _LONG])
        if len(some) == PAGE or held > PAGE_BYTES:
            yield some
            some, held = [], 0
    if some:
        yield some
