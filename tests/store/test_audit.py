"""Every change writes its row, in its own transaction; nothing changes or removes a row afterwards."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from tests.store.bench import Bench, node_id
from tests.store.verbs import every_verb
from tests.store.virtual_clock import EPOCH

from lodger.engine import Engine as AsyncEngine
from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.errors import InputError
from lodger.engine.store import audit
from lodger.engine.store.lifecycle import leases
from lodger.engine.sync import Engine


@pytest.fixture
def engine(bench: Bench) -> Engine:
    bench.tenant()
    bench.schedule()
    bench.engine.secrets.vault.keyring.add()
    return bench.engine


def register_node(engine: Engine) -> str:
    """Register a node; return its name."""
    with engine.context.database.write() as connection:
        leases.register(engine.context, connection, node_id("n1"), "n1", engine.context.clock.now_us())
    return "n1"


def create_alert_rule(engine: Engine) -> object:
    """Create an alert rule."""
    engine.grants.people("acme", ["a@acme.example"])
    return engine.alerts.put("acme", "page", mail=["a@acme.example"])


def fail_action(engine: Engine) -> str:
    """Run a schedule's script and let the action fail; return its id."""
    asked = engine.actions.run_now("acme", "s")
    with engine.context.database.write() as connection:
        connection.exec_driver_sql("UPDATE lodger_actions SET state = 'failed'")
    return asked.id


def store_connection(engine: Engine) -> None:
    """Store a connection that needs a consent."""
    engine.connections.put(
        "acme", "crm", "https://id.example.com/token", "me", "not told", hosts=["api.example.com"],
        authorize_url="https://id.example.com/authorize", redirect_uri="https://lodger.example.com/oauth/callback",
    )  # fmt: skip


#: How each verb that changes something is called, on a ledger where tenant acme has script job and schedule s.
CHANGES: dict[str, Callable[[Engine], object]] = {
    "tenants.create": lambda engine: engine.tenants.create("new"),
    "tenants.edit": lambda engine: engine.tenants.edit("acme", name="Acme"),
    "tenants.suspend": lambda engine: engine.tenants.suspend("acme"),
    "tenants.resume": lambda engine: (engine.tenants.suspend("acme"), engine.tenants.resume("acme")),
    "tenants.restore": lambda engine: (
        engine.tenants.suspend("acme"),
        archived := engine.tenants.export("acme"),
        engine.tenants.delete("acme"),
        engine.tenants.restore("acme", archived),
    ),
    "tenants.delete": lambda engine: engine.tenants.delete("acme"),
    "grants.give": lambda engine: engine.grants.give("acme", "fetch:example.com"),
    "grants.take": lambda engine: engine.grants.take("acme", "kv"),
    "grants.keep": lambda engine: engine.grants.keep("acme", ["kv"]),
    "grants.people": lambda engine: engine.grants.people("acme", ["a@example.com"]),
    "scripts.put": lambda engine: engine.scripts.put("acme", "job", "export default () => 2"),
    "scripts.put_ping": lambda engine: engine.scripts.put_ping("acme", "knock", "https://example.com/in"),
    "scripts.put_handler": lambda engine: engine.handler("rebuild-index")(print),
    "scripts.rollback": lambda engine: (
        engine.scripts.put("acme", "job", "export default () => 2"),
        engine.scripts.rollback("acme", "job", 1),
    ),
    "scripts.promote": lambda engine: (
        engine.scripts.put("acme", "job", "export default () => 2", shadow=1),
        engine.scripts.promote("acme", "job"),
    ),
    "scripts.drop": lambda engine: (
        engine.scripts.put("acme", "job", "export default () => 2", shadow=1),
        engine.scripts.drop("acme", "job"),
    ),
    "scripts.record": lambda engine: engine.scripts.record("acme", "job", "all"),
    "scripts.suspend": lambda engine: engine.scripts.suspend("acme", "job"),
    "scripts.resume": lambda engine: (engine.scripts.suspend("acme", "job"), engine.scripts.resume("acme", "job")),
    "nodes.pause": lambda engine: engine.nodes.pause(register_node(engine)),
    "nodes.resume": lambda engine: (engine.nodes.pause(register_node(engine)), engine.nodes.resume("n1")),
    "schedules.create": lambda engine: engine.schedules.create("acme", "t", script="job", rules="every 60s"),
    "schedules.edit": lambda engine: engine.schedules.edit("acme", "s", rules="every 120s"),
    "schedules.rollback": lambda engine: (
        engine.schedules.edit("acme", "s", rules="every 120s"),
        engine.schedules.rollback("acme", "s", 1),
    ),
    "schedules.pause": lambda engine: engine.schedules.pause("acme", "s"),
    "schedules.resume": lambda engine: (engine.schedules.pause("acme", "s"), engine.schedules.resume("acme", "s")),
    "schedules.delete": lambda engine: engine.schedules.delete("acme", "s"),
    "actions.run_at": lambda engine: engine.run_at("acme", "job", EPOCH),
    "actions.run_in": lambda engine: engine.run_in("acme", "job", "90s"),
    "actions.run_now": lambda engine: engine.actions.run_now("acme", "s"),
    "actions.backfill": lambda engine: engine.actions.backfill(
        "acme", "s", start=EPOCH - timedelta(hours=1), end=EPOCH
    ),
    "actions.replay": lambda engine: engine.actions.replay(
        "acme", engine.actions.cancel("acme", engine.actions.run_now("acme", "s").id).id
    ),
    "actions.retry": lambda engine: engine.actions.retry(None, fail_action(engine)),
    "actions.bulk": lambda engine: (
        engine.actions.run_now("acme", "s"),
        engine.actions.bulk("acme", "cancel", filter="state:ready"),
    ),
    "schedules.bulk": lambda engine: engine.schedules.bulk("acme", "pause", filter="name:s"),
    "actions.cancel": lambda engine: engine.actions.cancel("acme", engine.actions.run_now("acme", "s").id),
    "documents.put": lambda engine: engine.documents.put("acme", "carts", "a", {"n": 1}),
    "documents.delete": lambda engine: (
        engine.documents.put("acme", "carts", "a", {"n": 1}),
        engine.documents.delete("acme", "carts", "a"),
    ),
    "collections.index": lambda engine: engine.collections.index("acme", "carts", "city"),
    "collections.drop_index": lambda engine: (
        engine.collections.index("acme", "carts", "city"),
        engine.collections.drop_index("acme", "carts", "city"),
    ),
    "urls.create": lambda engine: engine.urls.create("acme", "in", "job"),
    "urls.revoke": lambda engine: (engine.urls.create("acme", "in", "job"), engine.urls.revoke("acme", "in")),
    "webhooks.put": lambda engine: engine.webhooks.put("acme", "hook", "https://example.com/in"),
    "webhooks.renew": lambda engine: (
        engine.webhooks.put("acme", "hook", "https://example.com/in"),
        engine.webhooks.renew("acme", "hook"),
    ),
    "webhooks.delete": lambda engine: (
        engine.webhooks.put("acme", "hook", "https://example.com/in"),
        engine.webhooks.delete("acme", "hook"),
    ),
    "alerts.put": create_alert_rule,
    "alerts.test": lambda engine: (create_alert_rule(engine), engine.alerts.test("acme", "page")),
    "alerts.delete": lambda engine: (create_alert_rule(engine), engine.alerts.delete("acme", "page")),
    "secrets.put": lambda engine: engine.secrets.put("acme", "KEY", "a value of some length", hosts=["example.com"]),
    "secrets.delete": lambda engine: (
        engine.secrets.put("acme", "KEY", "a value of some length"),
        engine.secrets.delete("acme", "KEY"),
    ),
    "secrets.rotate": lambda engine: engine.secrets.rotate(new_key=True),
    "connections.put": lambda engine: store_connection(engine),
    "connections.consent": lambda engine: (store_connection(engine), engine.connections.consent("acme", "crm")),
    "connections.delete": lambda engine: (store_connection(engine), engine.connections.delete("acme", "crm")),
    "batches.create": lambda engine: engine.batches.create(tenants=[{"tenant_id": "batched"}]),
    "plans.put": lambda engine: engine.plans.put("free", {}),
    "plans.delete": lambda engine: (engine.plans.put("free", {}), engine.plans.delete("free")),
    "tokens.create": lambda engine: engine.tokens.create("billing", "admin"),
    "tokens.first": lambda engine: engine.tokens.first("administrator"),
    "tokens.sign_in_code": lambda engine: (engine.tokens.create("billing", "admin"), engine.tokens.sign_in_code()),
    "tokens.sign_in_link": lambda engine: engine.tokens.sign_in_link("acme", "ann", "viewer"),
    "tokens.revoke": lambda engine: engine.tokens.revoke(engine.tokens.create("billing", "admin").token.id),
}
#: What the log calls those that are a way of doing another.
LOGGED = {"tokens.first": "tokens.create"}
#: What changes hands by the minute, between processes of the platform's, is left out of the log.
UNLOGGED = {"locks.free", "locks.take"}
#: A tenant moves between several ledgers only.
OF_LEDGERS = {"tenants.move"}
#: Verbs that only read.
READS = {
    "ledgers.list",
    "tenants.place",
    "connections.get",
    "connections.list",
    "plans.get",
    "plans.list",
    "actions.activity",
    "actions.attempts",
    "actions.backfill_preview",
    "actions.compared",
    "actions.count",
    "actions.deliveries",
    "actions.errors",
    "actions.get",
    "actions.limits",
    "actions.list",
    "actions.logs",
    "actions.outbox",
    "actions.overdue",
    "actions.record",
    "actions.running",
    "alerts.get",
    "alerts.list",
    "alerts.raised",
    "audit.export",
    "audit.count",
    "audit.list",
    "collections.list",
    "documents.get",
    "documents.list",
    "grants.list",
    "locks.list",
    "metrics.blocked",
    "metrics.read",
    "metrics.text",
    "nodes.list",
    "schedules.calendar",
    "schedules.count",
    "schedules.counters",
    "schedules.diff",
    "schedules.durations",
    "schedules.get",
    "schedules.last_run",
    "schedules.list",
    "schedules.preview",
    "schedules.recent",
    "schedules.revisions",
    "schedules.what_if",
    "scripts.check",
    "scripts.count",
    "scripts.diff",
    "scripts.dry_run",
    "scripts.get",
    "scripts.list",
    "scripts.module",
    "scripts.offered",
    "scripts.sets",
    "scripts.functions",
    "scripts.shadow",
    "scripts.versions",
    "secrets.list",
    "tenants.activity",
    "tenants.count",
    "tenants.export",
    "tenants.get",
    "tenants.list",
    "tenants.usage",
    "tokens.any_administrator",
    "tokens.get",
    "tokens.list",
    "urls.list",
    "webhooks.get",
    "webhooks.list",
}


def test_every_verb_is_known_to_change_or_to_read(engine: Engine) -> None:
    """A new verb goes into one of the two tables above: what changes something is audited, or this file fails."""
    assert every_verb(engine) == set(CHANGES) | READS | UNLOGGED | OF_LEDGERS


@pytest.mark.parametrize("verb", sorted(CHANGES))
def test_a_change_writes_its_row_with_its_transaction(
    engine: Engine, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {row.id for row in engine.audit.list(limit=None)}
    with audit_as("alice", via="cli", why="ticket 4711"):
        CHANGES[verb](engine)
    row = engine.audit.list(limit=None)[0]
    assert row.id not in before
    assert (row.verb, row.actor, row.via, row.why) == (LOGGED.get(verb, verb), "alice", "cli", "ticket 4711")
    assert row.before != row.after
    assert row.tenant_id == (
        None
        if verb
        in {
            "tenants.delete",
            "tenants.restore",
            "secrets.rotate",
            "tokens.create",
            "tokens.first",
            "tokens.sign_in_code",
            "tokens.revoke",
        }
        else row.tenant_id
    )

    def broken(*_args: object, **_more: object) -> None:
        raise RuntimeError("the log cannot be written")

    if verb == "tenants.create":
        monkeypatch.setattr(audit, "write", broken)
        with pytest.raises(RuntimeError):
            engine.tenants.create("third")
        monkeypatch.undo()
        assert [tenant.id for tenant in engine.tenants.list()] == ["acme", "new"], "no row, no change"


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


def test_the_log_is_paged_filtered_and_exported(engine: Engine) -> None:
    for number in range(7):
        with audit_as(f"user {number % 2}"):
            engine.schedules.edit("acme", "s", params=number)
    page = engine.audit.list("acme", verb="schedules.edit", limit=3)
    seen = list(page)
    while page.next:
        page = engine.audit.list("acme", verb="schedules.edit", limit=3, cursor=page.next)
        seen += page
    assert [row.after["params"] for row in seen] == [6, 5, 4, 3, 2, 1, 0]
    assert len(engine.audit.list("acme", verb="schedules.", actor="user 1")) == 3
    assert engine.audit.list("acme", since=EPOCH + timedelta(seconds=1)) == []
    exported = list(engine.audit.export("acme"))
    assert exported == engine.audit.list("acme", limit=None)[::-1]
    assert [row.verb for row in engine.audit.export()] == [row.verb for row in reversed(engine.audit.list(limit=None))]


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
    import asyncio

    assert asyncio.run(audited(bench)) == [("bob", "http")]


def test_what_the_engine_does_by_itself_is_its_own_act(bench: Bench) -> None:
    from tests.store.bench import THROWN

    bench.tenant()
    bench.schedule(pause_after=1)
    bench.clock.advance(60)
    bench.tick()
    bench.run(THROWN)
    row = bench.engine.audit.list("acme", verb="schedules.pause")[0]
    assert (row.via, row.after["state"]) == ("node", "paused")
    assert "failed" in row.why
