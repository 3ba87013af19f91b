"""Every change writes its row, in its own transaction; nothing changes or removes a row afterwards."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from tests.api.every_verb import carry_out_every_verb
from tests.store.bench import THROWN, Bench

from lodger.engine import Engine as AsyncEngine
from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.errors import InputError
from lodger.engine.service.operations.table import table_of
from lodger.engine.store import audit
from lodger.engine.sync import Engine


@pytest.fixture
def engine(bench: Bench) -> Engine:
    bench.tenant()
    bench.schedule()
    bench.engine.secrets.vault.keyring.add()
    return bench.engine


#: What the log calls those that are a way of doing another.
LOGGED = {"tokens.first": "tokens.create"}
#: What changes hands by the minute between processes of the platform's, and what needs several ledgers.
UNLOGGED = {"locks.free", "locks.take", "tenants.move"}
#: Verbs of a local engine are declared without a method that would say that they only read.
LOCAL_READS = {"audit.export", "metrics.text", "tokens.any_administrator"}


def local_verbs(engine: Engine, said: Callable[[str, object], object]) -> None:
    """Carry out the verbs that change something and that HTTP does not have."""
    said("scripts.put_handler", engine.handler("rebuild-index")(print))
    said("tokens.first", engine.tokens.first("administrator"))
    said("tokens.sign_in_code", engine.tokens.sign_in_code())


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # the row is written by the verb, whatever the database
def test_each_verb_that_changes_something_writes_its_row_and_one_that_reads_writes_none(bench: Bench) -> None:
    engine, seen, found = bench.engine, set[str](), dict[str, set[str]]()
    engine.secrets.vault.keyring.add()

    def said(verb: str, answer: Any) -> Any:
        rows = [row for row in engine.audit.list(limit=None) if row.id not in seen]
        seen.update(row.id for row in rows)
        found.setdefault(verb, set()).update(row.verb for row in rows if row.verb.startswith(verb.split(".")[0]))
        for row in rows:
            assert (row.actor, row.via) == ("alice", "cli")
            assert row.before != row.after
        return answer

    with audit_as("alice", via="cli"):
        carry_out_every_verb(engine, engine, said)
        local_verbs(engine, said)
    declared = {verb: operation.declared for verb, operation in table_of(Engine).operations.items()}
    suspended_before = {"tenants.export"}
    assert {verb for verb in found if not declared[verb].changes and found[verb]} == suspended_before
    changing = {verb for verb in declared if declared[verb].changes} - LOCAL_READS
    assert {verb for verb in changing if LOGGED.get(verb, verb) not in found.get(verb, ())} == UNLOGGED


def test_a_change_whose_row_cannot_be_written_does_not_happen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_more: object) -> None:
        raise RuntimeError("the log cannot be written")

    monkeypatch.setattr(audit, "write", broken)
    with pytest.raises(RuntimeError):
        bench.engine.tenants.create("third")
    monkeypatch.undo()
    assert bench.engine.tenants.list() == []


def test_what_changes_nothing_writes_nothing(engine: Engine) -> None:
    engine.run_in("acme", "job", 5, request_key="once")
    before = len(engine.audit.list(limit=None))
    engine.scripts.put("acme", "job", "export default () => 1")
    engine.schedules.resume("acme", "s")
    engine.run_in("acme", "job", 5, request_key="once")
    with pytest.raises(InputError):
        engine.schedules.edit("acme", "s", rules="every nonsense")
    assert len(engine.audit.list(limit=None)) == before


def test_before_and_after_say_what_changed_and_no_secret(engine: Engine) -> None:
    engine.schedules.edit("acme", "s", rules="every 120s", why="calmer")
    row = engine.audit.list("acme", verb="schedules.edit")[0]
    assert row.before["rules"]["rules"][0]["text"] == "every 60s"
    assert row.after["rules"]["rules"][0]["text"] == "every 120s"
    assert (row.named, row.why) == ("s", "calmer")
    made = engine.tokens.create("billing", "admin")
    logged = str(engine.audit.list(verb="tokens.create")[0])
    assert made.token.prefix in logged
    assert made.text not in logged
    assert made.text.split("_", 2)[2] not in logged
    assert made.text not in repr(made)


def test_long_values_are_told_by_their_digest(engine: Engine) -> None:
    engine.scripts.put("acme", "job", "export default () => '" + "x" * 100_000 + "'")
    assert engine.audit.list("acme", verb="scripts.put")[0].after["modules"] == {"main.js": 100_023}
    engine.schedules.edit("acme", "s", params={"text": "y" * 20_000})
    kept = engine.audit.list("acme", verb="schedules.edit")[0].after["params"]
    assert kept["bytes"] > 20_000
    assert len(kept["sha256"]) == 64


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lodger_audit SET actor = 'nobody'",
        "UPDATE lodger_audit SET at_us = 0 WHERE verb = 'tenants.create'",
        "DELETE FROM lodger_audit",
        "DELETE FROM lodger_audit WHERE tenant_id = 'acme'",
        "REPLACE",
        "TRUNCATE lodger_audit",
    ],
)
def test_no_statement_changes_or_removes_a_row(engine: Engine, statement: str) -> None:
    before = engine.audit.list(limit=None)
    sqlite = engine.context.database.driver.name == "sqlite"
    if statement == "REPLACE":
        columns = "tenant_id, id, at_us, actor, via, verb, target"
        values = f"SELECT tenant_id, id, 0, 'nobody', via, verb, target FROM lodger_audit WHERE id = '{before[0].id}'"
        how = "ON CONFLICT (tenant_id, id) DO UPDATE SET actor = 'nobody'"
        statement = (
            f"INSERT OR REPLACE INTO lodger_audit ({columns}) {values}"
            if sqlite
            else f"INSERT INTO lodger_audit ({columns}) {values} {how}"
        )
    elif statement.startswith("TRUNCATE") and sqlite:
        pytest.skip("SQLite has no TRUNCATE")
    with pytest.raises(DBAPIError, match="append-only"), engine.context.database.write() as connection:
        connection.execute(text(statement))
    assert engine.audit.list(limit=None) == before


def test_rows_go_with_their_tenant_and_the_platform_keeps_that_it_was_deleted(engine: Engine) -> None:
    engine.tenants.create("other")
    engine.tenants.delete("acme")
    assert engine.audit.list("acme", limit=None) == []
    assert [row.verb for row in engine.audit.list("other", limit=None)] == ["tenants.create"]
    reported = engine.audit.list(limit=None)[0]
    assert (reported.verb, reported.target, reported.tenant_id, reported.before["id"]) == (
        "tenants.delete",
        "acme",
        None,
        "acme",
    )
    engine.tenants.create("acme")
    with pytest.raises(DBAPIError, match="append-only"), engine.context.database.write() as connection:
        connection.execute(text("DELETE FROM lodger_audit WHERE tenant_id = 'acme'"))


def test_an_export_reads_page_by_page(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        engine.schedules.edit("acme", "s", params=number)
    monkeypatch.setattr(audit, "PAGE", 2)
    entries = engine.audit.export("acme")
    assert [next(entries).verb for _ in range(3)] == ["tenants.create", "scripts.put", "schedules.create"]
    assert len(list(entries)) == 9


async def audited(bench: Bench) -> list[tuple[str, str]]:
    """Create a tenant by the async engine; return the audit log's entries about it."""
    engine = AsyncEngine(bench.engine)
    with audit_as("bob", via="http"):
        await engine.tenants.create("beta")
    entries = [entry async for entry in engine.audit.export("beta")]
    engine.threads.pool.shutdown()
    return [(entry.actor, entry.via) for entry in entries]


def test_who_acts_is_known_in_the_threads_of_the_async_engine(bench: Bench) -> None:
    assert asyncio.run(audited(bench)) == [("bob", "http")]


def test_what_the_engine_does_by_itself_is_its_own_act(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(pause_after=1)
    bench.clock.advance(60)
    bench.tick()
    bench.run(THROWN)
    row = bench.engine.audit.list("acme", verb="schedules.pause")[0]
    assert (row.via, row.after["state"]) == ("node", "paused")
    assert "failed" in row.why
