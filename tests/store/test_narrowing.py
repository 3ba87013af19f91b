"""What narrows a list narrows it, and a rollback brings back every word: each was left out on purpose, and no test had failed."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.store.bench import Bench
from tests.store.virtual_clock import EPOCH

from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import PLATFORM

ONE, TWO = "export default () => 1", "export default () => 2"


def test_what_was_said_in_another_order_or_kind_is_told_so(bench: Bench) -> None:
    bench.tenant()
    with pytest.raises(NotFound) as swapped:
        bench.engine.actions.get(bench.engine.run_in("acme", "job", 5).id, "acme")
    assert swapped.value.why == "an action's id is a UUID; its tenant is a separate argument"
    for ask in (
        lambda: bench.engine.run_at("acme", "job", "2027-01-01"),  # type: ignore[arg-type]  # what a newcomer tries
        lambda: bench.engine.actions.list("acme", since="2027-01-01"),  # type: ignore[arg-type]  # the same
        lambda: bench.engine.schedules.pause("acme", "s", until=5),  # type: ignore[arg-type]  # the same
    ):
        with pytest.raises(InputError) as refused:
            ask()
        assert refused.value.code == "instant_invalid"


def test_what_belongs_to_one_tenant_is_listed_for_it_alone(bench: Bench, tmp_path: Path) -> None:
    engine = bench.engine
    engine.secrets.vault.keyring.add()
    for tenant in ("acme", "other"):
        bench.tenant(tenant)
        engine.secrets.put(tenant, f"KEY_{tenant}", "a value of some length")
        engine.webhooks.put(tenant, f"hook-{tenant}", "https://example.com/in")
        engine.collections.index(tenant, f"of_{tenant}", "city")
        engine.tokens.create(tenant, "viewer", tenant_id=tenant)
        bench.schedule(tenant_id=tenant, name=f"s-{tenant}")
    bench.clock.advance(120)
    bench.tick()
    bench.clock.advance(30)
    assert [each.name for each in engine.secrets.list("acme")] == ["KEY_acme"]
    assert [each.name for each in engine.webhooks.list("acme")] == ["hook-acme"]
    changed = engine.webhooks.put("acme", "hook-acme", "https://example.com/else", events=["order.*"])
    assert not hasattr(changed, "secret"), "it is not new"
    assert (changed.url, list(changed.events)) == ("https://example.com/else", ["order.*"])
    assert [each.name for each in engine.collections.list("acme")] == ["of_acme"]
    assert [each.name for each in engine.tokens.list("acme")] == ["acme"]
    assert {each.tenant_id for each in engine.actions.overdue("acme")} == {"acme"}
    assert {each.tenant_id for each in engine.actions.overdue()} == {"acme", "other"}
    bench.claim()
    assert {each.tenant_id for each in engine.actions.running("other")} == {"other"}


def test_a_schedules_rollback_brings_every_term_back(bench: Bench) -> None:
    bench.tenant()
    bench.engine.grants.give("acme", "fetch:example.com")
    bench.schedule()
    bench.engine.scripts.put("acme", "second", TWO)
    verbs = bench.engine.schedules
    one = {
        "script": ["job", "second"], "rules": "every 120s", "params": {"a": 1}, "limits": {"cpu_ms": 500}, "retry": 3, "missed": "all",
        "overlap": "allow", "grants": ["kv"], "jitter_s": 5, "expires_s": 50, "priority": "high", "pause_after": 4,
    }  # fmt: skip
    two = {
        "script": "job", "rules": "every 180s", "params": {"b": 2}, "limits": {"cpu_ms": 700}, "retry": 5, "missed": "skip",
        "overlap": "skip", "grants": ["fetch:example.com"], "jitter_s": 7, "expires_s": 70, "priority": "low", "pause_after": 6,
    }  # fmt: skip
    was = verbs.edit("acme", "s", **one)  # type: ignore[arg-type]  # forwarded
    verbs.edit("acme", "s", **two)  # type: ignore[arg-type]  # forwarded
    changed = {each.field for each in verbs.diff("acme", "s", 2, 3).changes}
    assert changed == {
        "text",
        "rules",
        "steps",
        "params",
        "limits",
        "retry",
        "missed",
        "overlap",
        "grants",
        "conduct",
    }
    back = verbs.rollback("acme", "s", 2)
    assert verbs.diff("acme", "s", 2).changes == ()
    for term in changed - {"text"}:
        assert getattr(back, term) == getattr(was, term), term
    # Between two that are named, not between one and the present.
    assert verbs.diff("acme", "s", 2, 3).newer == 3


def test_a_scripts_rollback_brings_grants_params_and_offer_back(bench: Bench) -> None:
    bench.tenant()
    bench.tenant("other")
    bench.engine.grants.give(PLATFORM, "fetch:example.com")
    put = bench.engine.scripts.put
    fields = {"days": {"type": "integer", "min": 1, "default": 7}}
    put(PLATFORM, "tool", ONE, grants=["kv"], params=fields, offered=True)
    put(PLATFORM, "tool", TWO, grants=["fetch:example.com"], params=None, offered=True)
    back = bench.engine.scripts.rollback(PLATFORM, "tool", 1)
    was = bench.engine.scripts.get(PLATFORM, "tool", 1)
    assert (back.version, back.modules, back.grants, back.fields) == (3, was.modules, ("kv",), was.fields)
    assert was.fields
    assert [each.name for each in bench.engine.scripts.offered()] == ["tool"]
    assert bench.engine.scripts.diff(PLATFORM, "tool", 1, 2).newer == 2
    put("acme", "own", ONE)
    assert [each.name for each in bench.engine.scripts.list("acme")] == ["job", "own"]
    assert [each.name for each in bench.engine.scripts.list("other")] == ["job"]


def test_the_audit_log_is_asked_for_one_target_and_between_two_instants(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    bench.clock.advance(60)
    with audit_as("alice"):
        bench.engine.schedules.edit("acme", "s", params=1)
    bench.clock.advance(60)
    bench.engine.tenants.edit("acme", name="Acme")
    log, at = bench.engine.audit, EPOCH + timedelta(seconds=60)
    assert {each.verb for each in log.list("acme", target=schedule.id)} == {"schedules.create", "schedules.edit"}
    assert [each.at for each in log.list("acme", verb="schedules.edit")] == [at]
    assert [each.verb for each in log.list("acme", actor="alice")] == ["schedules.edit"]
    assert list(log.export("acme")) == log.list("acme", limit=None)[::-1]
    for between in (log.list, log.export):
        reported = [each.verb for each in between("acme", since=at, until=at + timedelta(seconds=1))]
        assert reported == ["schedules.edit"]
        assert "tenants.edit" not in [each.verb for each in between("acme", until=at + timedelta(seconds=60))]
        assert "tenants.create" not in [each.verb for each in between("acme", since=at)]
