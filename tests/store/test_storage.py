"""How many bytes a tenant takes: counted by the database itself, exact, refused beyond the limit; the oldest history goes first."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, text, update
from tests.store.bench import Bench
from tests.store.spending import Spender, mail, try_call

from lodger.engine.core.errors import Conflict
from lodger.engine.effects import budget_checks
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.store.lifecycle import retention
from lodger.engine.store.schema.script_data import documents, kv
from lodger.engine.store.usage import storage_usage
from lodger.engine.store.usage.storage_usage import StoredBytes
from lodger.sandbox.job import LogLine, Usage
from lodger.sandbox.outcome import Outcome

PARTS = {
    "kept": [
        ("lodger_kv", "key", "value"),
        ("lodger_documents", "id", "body"),
        ("lodger_sealed", "docket", "own"),
        ("lodger_script_versions", "modules", "wasm", "fields", "why"),
        ("lodger_script_shadows", "modules", "wasm", "why"),
        ("lodger_schedule_revisions", "rules", "sentence", "steps", "limits", "params", "why"),
    ],
    "history": [
        ("lodger_outbox", "payload"),
        ("lodger_actions", "result", "params"),
        ("lodger_attempts", "error", "effects"),
        ("lodger_attempt_logs", "lines"),
        ("lodger_attempt_records", "body"),
    ],
}


@pytest.fixture
def spender(bench: Bench) -> Spender:
    return Spender(bench)


def counted_bytes(bench: Bench, tenant: str = "acme") -> StoredBytes:
    """Return the stored bytes that the ledger counts for a tenant."""
    with bench.engine.context.database.read() as connection:
        return storage_usage.of_tenant(connection, tenant)


def recounted(bench: Bench, tenant: str = "acme") -> StoredBytes:
    """Count the stored bytes of a tenant anew, from the tables."""
    with bench.engine.context.database.read() as connection:
        found = {}
        for part, tables in PARTS.items():
            found[part] = 0
            for table, *columns in tables:
                where = f"FROM {table} WHERE tenant_id = :tenant"
                for row in connection.execute(
                    text(f"SELECT {', '.join(map(quoted, columns))} {where}"), {"tenant": tenant}
                ):
                    found[part] += sum(size(each) for each in row if each is not None)
        return StoredBytes(found["kept"], found["history"])


def quoted(column: str) -> str:
    return f'"{column}"'


def size(cell: str | bytes) -> int:
    return len(cell.encode() if isinstance(cell, str) else cell)


def delete_old(bench: Bench) -> int:
    """Delete the actions that are older than the policy keeps; return their number."""
    with bench.engine.context.database.write() as connection:
        rows = retention.find_old(bench.engine.context, connection, "acme", bench.clock.us)
        retention.delete_actions(connection, rows, bench.clock.us, bench.clock.elapsed_s)
    return len(rows)


def set_value(key: str, size: int) -> Callable[[Attempt], Any]:
    async def play(attempt: Attempt) -> None:
        await try_call(attempt, "kv.set", key=key, value="é" * size, line="main.js:2")

    return play


def test_whoever_writes_the_bytes_are_counted(bench: Bench) -> None:
    dice = random.Random(7)
    base = {"created_us": 1, "updated_us": 1}
    before = counted_bytes(bench)
    with bench.engine.context.database.write() as connection:
        for _ in range(300):
            tenant, key = dice.choice(["acme", "other"]), f"ключ {dice.randrange(12)}"
            value = dice.choice(["é", "x", "🌍"]) * dice.randrange(50)
            _change(connection, dice.randrange(6), tenant, key, value, base)
        rows = [
            {"tenant_id": "acme", "collection": "many", "id": str(number), "body": "b" * number, **base}
            for number in range(50)
        ]
        connection.execute(insert(documents), rows)
        connection.execute(update(documents).where(documents.c.collection == "many").values(body="äb"))
    for tenant in ("acme", "other"):
        assert counted_bytes(bench, tenant) == recounted(bench, tenant)
        assert counted_bytes(bench, tenant).kept > 0
    with bench.engine.context.database.write() as connection:
        connection.execute(delete(kv))
        connection.execute(delete(documents))
    assert counted_bytes(bench) == before
    assert counted_bytes(bench, "other") == StoredBytes(0, 0)


def test_the_source_of_a_shadow_is_counted_while_it_is_there(bench: Bench) -> None:
    engine = bench.engine
    bench.tenant()
    before, sizes = counted_bytes(bench).kept, []
    for source in ("é" * 1000, "x" * 3000):
        engine.scripts.put("acme", "job", f"export default () => '{source}'", force=True, shadow=5, why="ü")
        assert counted_bytes(bench) == recounted(bench)
        sizes.append(counted_bytes(bench).kept - before)
    assert 2000 < sizes[0] < 3000 < sizes[1] < 4000
    engine.tenants.edit("acme", limits={"storage_bytes": counted_bytes(bench).kept + 100})
    with pytest.raises(Conflict, match="no storage left"):
        engine.scripts.put("acme", "job", "export default () => '" + "y" * 5000 + "'", force=True, shadow=5)
    engine.scripts.drop("acme", "job")
    assert counted_bytes(bench).kept == before


def _change(connection: Connection, which: int, tenant: str, key: str, value: str, base: dict[str, int]) -> None:
    mine = (kv.c.tenant_id == tenant, kv.c.key == key)
    ours = (documents.c.tenant_id == tenant, documents.c.id == key)
    if which in (0, 1):
        connection.execute(delete(kv).where(*mine))
        connection.execute(insert(kv).values(tenant_id=tenant, scope="", key=key, value=value, updated_us=1))
    elif which == 2:
        connection.execute(update(kv).where(*mine).values(value=value))
    elif which == 3:
        connection.execute(delete(documents).where(*ours))
        connection.execute(insert(documents).values(tenant_id=tenant, collection="c", id=key, body=value, **base))
    elif which == 4:
        connection.execute(update(documents).where(*ours).values(body=value, id=key))
    else:
        connection.execute(delete(documents).where(*ours))


def test_history_is_counted_and_goes_with_its_actions(spender: Spender) -> None:
    bench = spender.bench
    spender.tenant(retention_days=1)
    defined = counted_bytes(bench).kept
    for number in range(3):
        (claim,) = spender.asked()
        ended = spender.run(claim, mail if number else set_value("k", 100))
        from dataclasses import replace

        spender.end((claim, replace(ended, logs=(LogLine("info", "ö" * 100, 1),), usage=Usage(1.0))))
    (claim,) = spender.asked()
    spender.through(claim, mail, Outcome.SCRIPT_ERROR)
    there = counted_bytes(bench)
    assert there == recounted(bench)
    assert there.kept == defined + 1 + 202
    assert there.history > 600
    rows = {each.budget: each for each in bench.engine.tenants.usage("acme").budgets}
    assert rows["storage_bytes"].used == there.total
    bench.clock.advance(3 * 86_400)
    assert delete_old(bench) == 2, "what waits to be sent keeps its action"
    assert counted_bytes(bench) == recounted(bench)
    with bench.engine.context.database.write() as connection:
        connection.exec_driver_sql("UPDATE lodger_outbox SET state = 'sent', next_at_us = NULL")
    assert delete_old(bench) == 2
    assert counted_bytes(bench) == recounted(bench) == StoredBytes(defined + 203, 0)
    assert bench.scalar("SELECT count(*) FROM lodger_outbox") == 0
    bench.engine.tenants.delete("acme")
    assert bench.scalar("SELECT count(*) FROM lodger_storage") == 0


@pytest.mark.parametrize("guarded", [True, False])
def test_what_would_not_fit_is_refused_and_what_removes_is_not(
    spender: Spender, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_checks, "MAX_ROW_BYTES", 64 * 1024 if guarded else 0)
    spender.tenant()
    limit = counted_bytes(spender.bench).kept + 2000
    spender.bench.engine.tenants.edit("acme", limits={"storage_bytes": limit})
    claims = spender.asked(5)
    plays = [set_value("a", 400), set_value("b", 400), set_value("c", 400), set_value("a", 1), set_value("c", 400)]
    spender.end(*((claim, spender.run(claim, play)) for claim, play in zip(claims, plays, strict=True)))
    states = [spender.bench.engine.actions.get(None, claim.action_id).state for claim in claims]
    if not guarded:
        assert states == ["done"] * 5
        assert counted_bytes(spender.bench).kept > 1600
        return
    assert states == ["done", "done", "failed", "done", "done"]
    error = spender.bench.engine.actions.get(None, claims[2].action_id).error
    assert error is not None
    assert f"budget storage_bytes is {limit} per tenant" in error.message
    assert "delete some data" in error.message
    assert (error.file, error.line) == ("main.js", 2)
    assert counted_bytes(spender.bench) == recounted(spender.bench)
    spender.bench.engine.tenants.edit("acme", limits={"storage_bytes": 0})
    remove, add = spender.asked(2)

    async def away(attempt: Attempt) -> None:
        await try_call(attempt, "kv.delete", key="a")

    spender.through(remove, away)
    spender.through(add, set_value("d", 1))
    assert [spender.bench.engine.actions.get(None, each.action_id).state for each in (remove, add)] == [
        "done",
        "failed",
    ]


def test_the_oldest_history_goes_before_what_scripts_keep(spender: Spender) -> None:
    bench = spender.bench
    spender.tenant(storage_bytes=1_000_000)
    bench.engine.schedules.create("acme", "s", script="job", rules="every 60s")
    from dataclasses import replace

    for number in range(8):
        bench.clock.advance(60)
        bench.tick()
        (claim,) = bench.claim()
        ended = spender.run(claim, set_value(str(number), 50))
        spender.end((claim, replace(ended, logs=(LogLine("info", "x" * 1000, 1),))))
    assert delete_old(bench) == 0
    limit = counted_bytes(bench).total - 2500
    bench.engine.tenants.edit("acme", limits={"storage_bytes": limit})
    oldest = [action.id for action in bench.actions()]
    assert delete_old(bench) == 3
    assert [action.id for action in bench.actions()] == oldest[3:]
    assert counted_bytes(bench).total <= limit
    assert counted_bytes(bench) == recounted(bench)
    assert delete_old(bench) == 0
    bench.engine.tenants.edit("acme", limits={"storage_bytes": 0})
    assert delete_old(bench) == 4, "the last one that was done tells the next what it returned"
    assert counted_bytes(bench).kept == recounted(bench).kept > 0


def test_definitions_are_counted_and_refused_beyond_the_limit(bench: Bench) -> None:
    bench.tenant()
    engine, source = bench.engine, "export default () => '" + "x" * 10_000 + "'"
    before = counted_bytes(bench).kept
    engine.scripts.put("acme", "large", source, force=True)
    made = bench.schedule("every 1h", params={"p": "ö" * 5_000})
    assert counted_bytes(bench) == recounted(bench)
    assert counted_bytes(bench).kept > before + 20_000
    engine.tenants.edit("acme", limits={"storage_bytes": counted_bytes(bench).total + 5_000})
    for grow in (
        lambda: engine.scripts.put("acme", "large", source.replace("x", "y"), force=True),
        lambda: engine.schedules.edit("acme", "s", params={"p": "a" * 10_000}),
        lambda: engine.actions.run_now("acme", "s", params={"p": "a" * 10_000}),
    ):
        kept = counted_bytes(bench)
        with pytest.raises(Conflict) as refused:
            grow()
        assert refused.value.code == "storage_full"
        assert counted_bytes(bench) == kept, "nothing of it is stored"
    engine.actions.run_now("acme", "s")
    engine.schedules.pause("acme", "s")
    engine.schedules.delete("acme", "s")
    assert counted_bytes(bench) == recounted(bench)
    engine.scripts.put("acme", "small", "export default () => 1", force=True)
    assert made.id


def test_what_an_editor_does_without_room_is_logged_in_brief(bench: Bench) -> None:
    bench.tenant()
    bench.schedule("every 1h", params={"p": "a" * 2_000})
    bench.engine.tenants.edit("acme", limits={"storage_bytes": 1})
    bytes_before = bench.scalar("SELECT audit_bytes FROM lodger_storage WHERE tenant_id = 'acme'")
    for _ in range(10):
        bench.engine.schedules.pause("acme", "s")
        bench.engine.schedules.resume("acme", "s")
    after = bench.scalar("SELECT audit_bytes FROM lodger_storage WHERE tenant_id = 'acme'")
    assert bytes_before + 20 * 100 < after < bytes_before + 20 * 400
    row = bench.engine.audit.list("acme")[0]
    assert row.verb == "schedules.resume"
    assert set(row.after) == {"bytes", "sha256"}
