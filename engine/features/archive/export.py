"""Exports a suspended tenant as an archive: its rows in every table as lines of compressed JSON.

Rows that are specific to one ledger are left out: leases, locks, tokens, sessions, positions in change feeds, and
derived rows (ready queue, sizes). Secrets stay encrypted under their key. The last line is a digest of all previous
lines, which detects damaged files but not forged ones: only administrators may restore an archive.
"""

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from sqlalchemy import Connection, Table, literal, select, tuple_

from lodger.engine.core.errors import Conflict
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.progress import ProgressCounter
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.migrations.revision import current
from lodger.engine.store.schema import access, feeds, scheduling, script_data
from lodger.engine.store.schema.metadata import ARCHIVED, metadata
from lodger.engine.store.tenants import tenants as tenant_rows

MARK = "lodger-tenant-archive"
FORMAT = 1
#: Number of rows read in one query.
PAGE = 500
#: Maximum size of an uncompressed archive, and of one row.
MAX_BYTES = 2 * 1024**3
MAX_ROW_BYTES = 64 * 1024**2
_MAIN_LINE = (
        scheduling.scripts, scheduling.script_versions, scheduling.schedules, scheduling.schedule_revisions,
        scheduling.schedule_clock, scheduling.actions, scheduling.attempts, scheduling.attempt_logs, scheduling.attempt_records,
        scheduling.usage_days,
        script_data.documents, script_data.collection_indexes, script_data.document_index, script_data.kv,
        script_data.outbox, script_data.fetches, script_data.secrets, feeds.followers, access.audit,
)  # fmt: skip


@cache
def tables() -> dict[str, Table]:
    """Return the tables of an archive by name, in insertion order: the main line's, and those that wings mark as archived."""
    marked = [table for table in metadata.sorted_tables if ARCHIVED in table.info]
    return {table.name: table for table in (*_MAIN_LINE, *marked)}


def export(connection: Connection, tenant_id: str, now_us: int) -> bytes:
    """Return a suspended tenant as a gzip file.

    Raises:
        NotFound: tenant_unknown.
        Conflict: tenant_active, tenant_unfinished, tenant_too_large, platform_stays.
    """
    sealed = select(script_data.sealed.c.action_id).where(script_data.sealed.c.tenant_id == tenant_id).limit(1)
    tenant, unfinished, found, revision = read_together(
        partial(tenant_rows.get, connection, tenant_id),
        partial(connection.scalar, sealed),
        lambda: connection.execute(select(scheduling.tenants).where(scheduling.tenants.c.id == tenant_id)).all(),
        partial(current, connection),
        connection=connection,
    )
    if tenant_id == PLATFORM:
        raise Conflict("platform_stays.export")
    if tenant.state not in {"suspended", tenant_rows.MOVING}:
        raise Conflict("tenant_active", tenant=tenant_id, state=tenant.state)
    if unfinished:
        raise Conflict("tenant_unfinished", tenant=tenant_id)
    head = {MARK: FORMAT, "tenant": tenant_id, "schema": revision, "made_us": now_us, "row": cells(*found)}
    out, digest, progress, written = io.BytesIO(), hashlib.sha256(), ProgressCounter(), 0
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:
        for line in _lines(connection, tenant_id, head):
            written += len(line)
            if written > MAX_BYTES or len(line) > MAX_ROW_BYTES:
                raise Conflict("tenant_too_large", tenant=tenant_id, mib=MAX_BYTES >> 20, row_mib=MAX_ROW_BYTES >> 20)
            digest.update(line)
            packed.write(line)
            progress.add()
        packed.write(_line({"sha256": digest.hexdigest()}))
    return out.getvalue()


def _lines(connection: Connection, tenant_id: str, head: dict[str, Any]) -> Iterator[bytes]:
    """Yield the lines of an archive."""
    yield _line(head)
    for table in tables().values():
        yield _line({"table": table.name, "columns": [column.name for column in table.c]})
        for row in _rows(connection, table, tenant_id):
            yield _line(cells(row))


def _rows(connection: Connection, table: Table, tenant_id: str) -> Iterator[Any]:
    """Read a table page by page, by its key: a tenant's history may be larger than memory."""
    key = [column for column in table.primary_key.columns if column.name != "tenant_id"]
    place: list[Any] | None = None
    while True:
        statement = select(table).where(table.c.tenant_id == tenant_id)
        if place is not None:
            statement = statement.where(_behind(key, place))
        rows = connection.execute(statement.order_by(*key).limit(PAGE)).all()
        yield from rows
        if len(rows) < PAGE:
            return
        place = [getattr(rows[-1], column.name) for column in key]


def _behind(key: list[Any], place: list[Any]) -> Any:
    """Return the SQL condition that a row's key comes after a place, for reading page by page."""
    values = [literal(value, column.type) for column, value in zip(key, place, strict=True)]
    return tuple_(*key) > tuple_(*values)


def cells(row: Any) -> list[Any]:
    """Return the values of a row as JSON values: bytes as ``{"b64": …}``."""
    return [
        {"b64": base64.b64encode(bytes(each)).decode()} if isinstance(each, bytes | memoryview) else each
        for each in row
    ]


def _line(value: Any) -> bytes:
    """Return a value as a line of JSON, as bytes."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
