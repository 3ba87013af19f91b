"""Every verb that HTTP has, carried out one after the other: on an engine, or on a client of one."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.api.running_api import ONE
from tests.escape.commands import HELLO
from tests.store.virtual_clock import EPOCH

from lodger.engine.core.errors import NotFound
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.records import Schedule
from lodger.engine.sync import Engine

TWO = "export default () => 2"


def carry_out_every_verb(engine: Any, ledger: Engine, said: Callable[[str, object], Any], node: str = "n1") -> None:
    """Carry out every verb that HTTP has; ``engine`` is an engine or a client of ``ledger``'s, ``said`` is called with every answer."""

    def sql(statement: str) -> None:
        with ledger.context.database.write() as connection:
            connection.exec_driver_sql(statement)

    tenants, scripts, schedules, actions = engine.tenants, engine.scripts, engine.schedules, engine.actions
    said("tenants.create", tenants.create("acme", "Acme", {"cpu_ms": 500}, people=["a@example.com"]))
    said("tenants.usage", tenants.usage("acme"))
    said("tenants.edit", tenants.edit("acme", limits={"concurrent_runs": 3}))
    said("tenants.suspend", tenants.suspend("acme"))
    said("tenants.resume", tenants.resume("acme"))
    said("tenants.get", tenants.get("acme"))
    said("tenants.list", tenants.list(filter="state:active"))
    said("tenants.count", tenants.count())
    said("tenants.activity", tenants.activity(filter="sort:-failures"))
    said("grants.give", engine.grants.give("acme", "fetch:example.com", "secret:KEY"))
    said("grants.take", engine.grants.take("acme", "secret:KEY"))
    said("grants.list", engine.grants.list("acme"))
    said("grants.keep", engine.grants.keep("acme", None))
    said("grants.people", engine.grants.people("acme", ["b@example.com"]))
    said("secrets.put", engine.secrets.put("acme", "KEY", "a value of some length", hosts=["example.com"]))
    said("secrets.list", engine.secrets.list("acme"))
    said("secrets.delete", engine.secrets.delete("acme", "KEY"))
    said("secrets.rotate", engine.secrets.rotate())
    said("audit.count", engine.audit.count("acme", verb="tenants."))
    said("collections.index", engine.collections.index("acme", "carts", "address.city"))
    said("collections.list", engine.collections.list("acme"))
    said("collections.drop_index", engine.collections.drop_index("acme", "carts", "address.city"))
    documents = engine.documents
    said("documents.put", documents.put("acme", "carts", "a/b", {"city": "Bonn"}))
    assert said("documents.get", documents.get("acme", "carts", "a/b")).document == "a/b"
    said("documents.list", documents.list("acme", "carts", filter='{"city": "Bonn"}'))
    said("documents.delete", documents.delete("acme", "carts", "a/b"))
    webhooks = engine.webhooks
    made = said("webhooks.put", webhooks.put("acme", "hook", "https://example.com/in", events=["order.*"]))
    assert made.secret
    said("webhooks.put", webhooks.put("acme", "hook", "https://example.com/other"))
    said("webhooks.renew", webhooks.renew("acme", "hook"))
    said("webhooks.get", webhooks.get("acme", "hook"))
    said("webhooks.list", webhooks.list("acme"))
    alerts = engine.alerts
    said("alerts.put", alerts.put("acme", "page", kinds=["failed"], webhooks=["hook"]))
    said("alerts.get", alerts.get("acme", "page"))
    said("alerts.list", alerts.list("acme"))
    said("alerts.test", alerts.test("acme", "page"))
    said("alerts.raised", alerts.raised("acme"))
    said("alerts.delete", alerts.delete("acme", "page"))
    said("webhooks.delete", webhooks.delete("acme", "hook"))
    said("scripts.put", scripts.put("acme", "job", ONE, why="first"))
    said("scripts.put", scripts.put("acme", "job", {"main.js": TWO, "a.js": "1"}, grants=["kv"], after_version=1))
    said("scripts.put", scripts.put("acme", "wasm", HELLO, why="as bytes"))
    assert said("urls.create", engine.urls.create("acme", "in", "job", headers=["x-kind"])).path
    said("urls.list", engine.urls.list("acme"))
    said("urls.revoke", engine.urls.revoke("acme", "in"))
    said("scripts.put_ping", scripts.put_ping("acme", "knock", "https://example.com/in", method="POST", body={"a": 1}))
    said("scripts.module", scripts.module("acme", "wasm"))
    said("scripts.get", scripts.get("acme", "job", 1))
    said("scripts.versions", scripts.versions("acme", "job"))
    said("scripts.diff", scripts.diff("acme", "job", 1))
    said("scripts.rollback", scripts.rollback("acme", "job", 1))
    said("scripts.record", scripts.record("acme", "job", "all"))
    said("scripts.put", scripts.put("acme", "job", "export default () => 7", shadow=3, why="in the shadow"))
    said("scripts.shadow", scripts.shadow("acme", "job"))
    said("scripts.promote", scripts.promote("acme", "job", why="it agrees"))
    said("scripts.drop", scripts.drop("acme", "job"))
    said("scripts.suspend", scripts.suspend("acme", "job"))
    said("scripts.list", scripts.list("acme"))
    said("scripts.count", scripts.count("acme", filter="name:j*"))
    said("scripts.resume", scripts.resume("acme", "job"))
    said("scripts.offered", scripts.offered())
    said("scripts.sets", scripts.sets("acme"))
    said("scripts.functions", scripts.functions("acme"))
    said("scripts.check", scripts.check("acme", "return 1 +"))
    said(
        "scripts.dry_run",
        scripts.dry_run("acme", "job", source="export default ({ action }) => action.input", params=[1]),
    )
    pretended = scripts.dry_run("acme", "job", source="export default ({ now }) => String(now)", now=EPOCH)
    assert pretended.result == "2026-01-01T00:00:00Z"
    said("scripts.dry_run", pretended)
    made = schedules.create(
        "acme", "s", script="job", rules=["every 60s", "every 60s"], version=1, retry=2, expires_s=5.5, params={"a": None},
        first_after=EPOCH - timedelta(hours=1), missed="all", why="because",
    )  # fmt: skip
    assert isinstance(said("schedules.create", made), Schedule)
    said("schedules.edit", schedules.edit("acme", "s", params=None, end=EPOCH + timedelta(days=1), revision=1))
    said("schedules.diff", schedules.diff("acme", "s", 1))
    said("schedules.rollback", schedules.rollback("acme", "s", 1, why="back"))
    said("schedules.revisions", schedules.revisions("acme", "s"))
    said("schedules.pause", schedules.pause("acme", "s", note="a while", until=EPOCH + timedelta(hours=2)))
    said("schedules.resume", schedules.resume("acme", "s"))
    said("schedules.get", schedules.get("acme", "s"))
    said("schedules.list", schedules.list("acme", state="armed"))
    said("schedules.count", schedules.count("acme", filter="state:armed"))
    said("schedules.bulk", schedules.bulk("acme", "resume", filter="state:paused", why="over"))
    said("schedules.list", schedules.list(limit=1))
    said("schedules.counters", schedules.counters("acme", "s"))
    said("schedules.last_run", schedules.last_run("acme", "s"))
    said(
        "schedules.what_if",
        schedules.what_if("acme", "s", rules="every 90s", since=EPOCH, until=EPOCH + timedelta(minutes=9)),
    )
    said("schedules.preview", schedules.preview("every 90s", n=3, after=EPOCH))
    asked = said(
        "actions.run_now", actions.run_now("acme", schedules.get("acme", "s").id, params=[1], request_key="once")
    )
    said("actions.run_now", actions.run_now("acme", "s", request_key="once"))
    said("actions.get", actions.get(None, asked.id))
    said("actions.get", actions.get("acme", asked.id))
    said("actions.attempts", actions.attempts(None, asked.id))
    try:
        said("actions.record", actions.record("acme", asked.id))
    except NotFound as missing:
        said("actions.record", missing.code)
    said("actions.logs", actions.logs("acme", asked.id))
    said("actions.deliveries", actions.deliveries(None, asked.id))
    said("actions.cancel", actions.cancel(None, asked.id))
    sql(f"update lodger_actions set state = 'failed' where id = '{asked.id}'")
    said("actions.retry", actions.retry(None, asked.id))
    said("actions.compared", actions.compared(None, asked.id))
    said("actions.running", actions.running("acme"))
    said("actions.outbox", actions.outbox("acme", failed=True))
    said("actions.overdue", actions.overdue("acme", grace_s=0.5, limit=5))
    said("actions.overdue", actions.overdue())
    said("actions.activity", actions.activity())
    said("actions.activity", actions.activity("acme"))
    said("actions.limits", actions.limits(None, asked.id))
    said("schedules.durations", schedules.durations())
    said("schedules.durations", schedules.durations("acme", limit=5))
    with ledger.context.database.write() as connection:
        leases.register(ledger.context, connection, ledger.context.ids.new(), node, ledger.context.clock.now_us())
    said("nodes.pause", engine.nodes.pause(node))
    said("nodes.list", engine.nodes.list(gone=True))
    said("nodes.resume", engine.nodes.resume(node))
    connections = engine.connections
    server = "https://id.example.com"
    back = {"authorize_url": server + "/authorize", "redirect_uri": "https://lodger.example.com/oauth/callback"}
    connected = connections.put("acme", "crm", server + "/token", "me", "not told", hosts=["api.example.com"], **back)
    said("connections.put", connected)
    said("connections.get", connections.get("acme", "crm"))
    said("connections.list", connections.list("acme"))
    said("connections.consent", connections.consent("acme", "crm"))
    said("connections.delete", connections.delete("acme", "crm"))
    said("batches.create", engine.batches.create(tenants=[{"tenant_id": "batched"}]))
    tenants.delete("batched")
    said("plans.put", engine.plans.put("free", {"runs_per_day": 10}))
    said("plans.get", engine.plans.get("free"))
    said("plans.list", engine.plans.list())
    said("plans.delete", engine.plans.delete("free"))
    said("locks.take", engine.locks.take("rebuild", "me", "2m", slot=EPOCH))
    said("locks.take", engine.locks.take("rebuild", "you", 5000))
    said("locks.list", engine.locks.list())
    said("locks.free", engine.locks.free("rebuild", "me"))
    said("metrics.read", [metric.name for metric in engine.metrics.read()])
    said("metrics.blocked", engine.metrics.blocked())
    said("actions.cancel", actions.cancel(None, asked.id))
    said("actions.replay", actions.replay(None, asked.id, newest=True))
    said(
        "actions.backfill_preview",
        actions.backfill_preview("acme", "s", start=EPOCH - timedelta(hours=3), end=EPOCH),
    )
    said("actions.backfill", actions.backfill("acme", "s", start=EPOCH - timedelta(hours=3), end=EPOCH))
    said("actions.run_at", actions.run_at("acme", "job", EPOCH + timedelta(days=1)))
    said("actions.run_in", engine.run_in("acme", "job", timedelta(seconds=90)))
    said("actions.run_in", engine.run_in("acme", "job", "2h"))
    said("schedules.recent", schedules.recent("acme", schedule_ids=[made.id], runs=3))
    said("schedules.recent", schedules.recent(schedule_ids=[made.id]))
    said("schedules.calendar", schedules.calendar("acme", "s", back=2, ahead=2))
    said("actions.list", actions.list("acme", made.id, origin="run_now", since=EPOCH))
    said("actions.errors", actions.errors("acme"))
    said("actions.count", actions.count("acme", filter="state:failed"))
    said("actions.bulk", actions.bulk("acme", "retry", filter="state:failed", why="mended"))
    said("actions.list", actions.list(state="cancelled", limit=1))
    token = said(
        "tokens.create", engine.tokens.create("x", "editor", tenant_id="acme", expires_at=EPOCH + timedelta(days=9))
    )
    said("tokens.get", engine.tokens.get(token.token.prefix))
    said("tokens.revoke", engine.tokens.revoke(token.token.id))
    said("tokens.list", engine.tokens.list("acme"))
    said("tokens.sign_in_link", engine.tokens.sign_in_link("acme", "ann", "viewer"))
    said("audit.list", engine.audit.list("acme", verb="schedules."))
    said("audit.export", list(engine.audit.export("acme", since=EPOCH)))
    said("schedules.delete", schedules.delete("acme", "s"))
    tenants.suspend("acme")
    archive = tenants.export("acme")
    said("tenants.export", archive[:2])
    tenants.delete("acme")
    assert said("tenants.restore", tenants.restore("acme", archive)).state == "suspended"
    said("tenants.delete", tenants.delete("acme"))


def without_varying_parts(value: object) -> str:
    """Return a value without the parts that differ between two ledgers: ids, tokens, keys, actors, channels, durations."""
    text = repr(value).replace("TzInfo(0)", "datetime.timezone.utc")
    for pattern, instead in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
        (r"lodger_[a-z2-7]{10}(_[\w-]{43})?", "TOKEN"),
        (r"(key_id|actor|created_by|via|request_id)(=|': )('[^']*'|None)", r"\1"),
        (r"usage=Usage\([^)]*\)", "usage"),
        (r"secret='[^']*'", "secret"),
        (r"next='[^']*'", "next"),
    ):
        text = re.sub(pattern, instead, text)
    return f"{type(value).__name__} {text}"


def assert_same_answers(theirs: list[tuple[str, str]], ours: list[tuple[str, str]]) -> None:
    """Assert that two lists of verbs with their answers are equal, one after the other."""
    for there, here in zip(theirs, ours, strict=True):
        assert there == here


def answers(engine: Any, ledger: Engine) -> list[tuple[str, str]]:
    """Return the answers of every verb, in order: verb and answer as text."""
    reported: list[tuple[str, str]] = []

    def said(verb: str, answer: Any) -> Any:
        reported.append((verb, without_varying_parts(answer)))
        return answer

    carry_out_every_verb(engine, ledger, said)
    return reported
