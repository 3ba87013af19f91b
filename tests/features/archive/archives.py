"""A tenant with something of everything, its archive, and hands that bend it."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, literal, select
from tests.store.bench import OK, THROWN, Bench

from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.settings import Settings
from lodger.engine.features.archive.export import tables
from lodger.engine.store.actions import later_runs
from lodger.engine.store.actions.later_runs import BY_ACTION, LaterRun
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema.scheduling import attempt_records, attempts
from lodger.engine.store.schema.script_data import document_index, documents, fetches, kv, outbox, storage
from lodger.engine.store.usage import storage_usage
from lodger.engine.sync import Engine
from lodger.sandbox.job import LogLine

MAIL = '{"to":["a@example.com"],"subject":"s","text":"t","html":null,"replyTo":null}'
SAID = replace(OK, logs=(LogLine("info", "half way"),))


def ensure_key(engine: Engine) -> None:
    """Add a key for secrets, if there is none."""
    ring = engine.secrets.vault.keyring
    if not ring.path.exists():
        ring.add()


@pytest.fixture
def elsewhere(tmp_path: Path, bench: Bench) -> Iterator[Bench]:
    """Another ledger, on SQLite, with the clock of the first one."""
    clock = bench.clock
    settings = Settings(
        sqlite_synchronous="NORMAL", concurrent_runs=100, min_interval_s=1, secret_keys=tmp_path / "keys"
    )
    place = str(tmp_path / "elsewhere.db")
    with Engine.open(place, clock=clock, settings=settings) as engine:
        ensure_key(engine)
        yield Bench(engine, clock)


def furnish(bench: Bench) -> None:
    """Create something of every kind for the tenant, with a history."""
    engine = bench.engine
    ensure_key(engine)
    engine.scripts.put(PLATFORM, "report", "export default () => 1", offered=True)
    bench.tenant(concurrent_runs=7)
    engine.grants.give("acme", "fetch:example.com")
    engine.grants.people("acme", ["a@example.com"])
    engine.scripts.put("acme", "job", "export default () => 'zwei ü \U0001f600'")
    engine.scripts.put("acme", "two", {"main.js": "import './a.js'; export default 1", "a.js": "1"})
    engine.scripts.put_ping("acme", "knock", "https://example.com/")
    done = bench.schedule("every 60s", name="done", params={"n": [1, None]})
    engine.schedules.edit("acme", "done", rules="every 50s", why="sooner")
    failing = bench.schedule("every 70s", name="failing", retry={"attempts": 2, "backoff_s": 600})
    engine.schedules.create("acme", "steps", script=["job", "two", "@report"], rules="every 80s", labels="highmem")
    engine.schedules.create("acme", "paused", script="@report", rules="every 90s")
    engine.schedules.pause("acme", "paused", note="holidays")
    engine.collections.index("acme", "carts", "city")
    engine.secrets.put("acme", "KEY", "a value of some length", hosts=["example.com"])
    engine.webhooks.put("acme", "hook", "https://example.com/in")
    engine.connections.put("acme", "crm", "https://example.com/token", "me", "not told", hosts=["example.com"])
    engine.webhooks.renew("acme", "hook")
    engine.alerts.put("acme", "page", webhooks=["hook"], schedule="done", quiet=["22:00-07:00"])
    bench.clock.us += 100_000_000
    bench.tick()
    for claim in bench.claim():
        bench.commit(claim, finished=THROWN if claim.schedule_id == failing.id else SAID)
    engine.actions.run_now("acme", done.id, params={"asked": True})
    with engine.context.database.write() as connection:
        now = bench.clock.us
        row = {"tenant_id": "acme", "created_us": now, "updated_us": now}
        connection.execute(insert(documents).values(row | {"collection": "carts", "id": "1", "body": '{"city":"Ulm"}'}))
        connection.execute(
            insert(kv).values(tenant_id="acme", scope="", key="k", value='"v"', expires_us=None, updated_us=now)
        )
        entry = {"tenant_id": "acme", "collection": "carts", "path": "city", "id": "1", "rank": 3, "number": 0.5}
        connection.execute(insert(document_index).values(entry | {"words": "Ulm"}))
        answer = {"tenant_id": "acme", "action_id": bench.actions()[0].id, "step": 0, "key": "k"}
        reported = '[200,"OK","https://example.com/",[["a","b"]],false]'
        connection.execute(insert(fetches).values(answer | {"answer": reported, "body": zlib.compress(b"\xff\0")}))
        key = ("tenant_id", "action_id", "step", "n")
        body = zlib.compress(b"{}")
        tried = select(*(attempts.c[name] for name in key), literal(body)).limit(1)
        connection.execute(insert(attempt_records).from_select([*key, "body"], tried))
        storage_usage.add_history(connection, {"acme": len(body)})
        later = LaterRun("acme", engine.context.ids.new(), "@report", now + 10**9, "null", "daily", BY_ACTION + "x")
        later_runs.request(connection, later, now)
        ready_queue.refresh(connection, ["acme"])
        mail = {"tenant_id": "acme", "id": "m1", "action_id": bench.actions()[0].id, "step": 0, "n": 0, "kind": "mail"}
        more = {"message_id": "<1@x>", "payload": MAIL, "state": "queued", "attempts": 0, "next_at_us": now}
        connection.execute(insert(outbox).values(mail | more | {"created_us": now}))


def contents(engine: Engine) -> dict[str, set[str]]:
    """Everything that an archive holds, by table."""
    found = {}
    with engine.context.database.read() as connection:
        for table in tables().values():
            rows = connection.execute(select(table).where(table.c.tenant_id == "acme")).all()
            shown = [
                {key: bytes(value) if isinstance(value, memoryview) else value for key, value in row._asdict().items()}
                for row in rows
            ]
            found[table.name] = {repr(each) for each in shown}
    return found


def counted_bytes(engine: Engine) -> tuple[int, int] | None:
    """Return the stored bytes that the ledger counts for the tenant: kept ones and those of its history."""
    with engine.context.database.read() as connection:
        row = connection.execute(select(storage).where(storage.c.tenant_id == "acme")).first()
    return None if row is None else (row.kept_bytes, row.history_bytes)


def move(there: Bench, here: Bench) -> bytes:
    """Export the tenant from one ledger and restore it in the other; return the archive."""
    there.engine.tenants.suspend("acme")
    archive = there.engine.tenants.export("acme")
    here.engine.tenants.restore("acme", archive)
    return archive


def altered(archive: bytes, change: Callable[[list[Any]], None]) -> bytes:
    """Return an archive with changed lines, and a digest that fits them."""
    lines = [json.loads(line) for line in gzip.decompress(archive).splitlines()][:-1]
    change(lines)
    texts = [json.dumps(line).encode() + b"\n" for line in lines]
    texts.append(json.dumps({"sha256": hashlib.sha256(b"".join(texts)).hexdigest()}).encode() + b"\n")
    return gzip.compress(b"".join(texts))


def set_cell(
    table: str, column: str, value: object, *, of: Callable[[Any], bool] = bool
) -> Callable[[list[Any]], None]:
    """Return a change that sets a cell in the rows of a table."""

    def change(lines: list[Any]) -> None:
        start = next(at for at, line in enumerate(lines) if isinstance(line, dict) and line.get("table") == table)
        at = lines[start]["columns"].index(column)
        rows = [line for line in lines[start + 1 :] if isinstance(line, list)]
        names = lines[start]["columns"]
        rows = [row for row in rows[: _length(lines, start)] if of(dict(zip(names, row, strict=True)))]
        assert rows
        for row in rows:
            row[at] = value

    return change


def _length(lines: list[Any], start: int) -> int:
    """Return the number of rows of the table whose line is at ``start``."""
    length = 0
    while start + 1 + length < len(lines) and isinstance(lines[start + 1 + length], list):
        length += 1
    return length
