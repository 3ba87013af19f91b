"""A suspended tenant moves to another ledger with everything of its own."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.features.archive.archives import contents, counted_bytes, elsewhere, furnish, move
from tests.store.bench import Bench

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.ids import PLATFORM
from lodger.engine.features.archive.export import tables
from lodger.engine.store.schema.script_data import kv, sealed

__all__ = ["elsewhere"]


def test_everything_arrives_and_goes_on(bench: Bench, elsewhere: Bench, tmp_path: Path) -> None:
    furnish(bench)
    elsewhere.engine.scripts.put(PLATFORM, "report", "export default () => 2", offered=True)
    archive = move(bench, elsewhere)
    before, after = contents(bench.engine), contents(elsewhere.engine)
    assert {name for name in before if not before[name]} == {"lodger_followers"}, "all the others are tried"
    # The platform's script has another id here; what else differs would be lost or made up.
    ids = {
        engine: next(each.id for each in engine.scripts.list(PLATFORM) if each.name == "report")
        for engine in (bench.engine, elsewhere.engine)
    }
    there, here = ids[bench.engine], ids[elsewhere.engine]
    assert {name: {row.replace(there, here) for row in rows} for name, rows in before.items()} == after
    tenant = elsewhere.engine.tenants.get("acme")
    assert (tenant.state, tenant.limits, tenant.people) == ("suspended", {"concurrent_runs": 7}, ("a@example.com",))
    assert "fetch:example.com" in elsewhere.engine.grants.list("acme")
    assert elsewhere.engine.secrets.vault is not bench.engine.secrets.vault
    assert counted_bytes(bench.engine) is not None
    assert counted_bytes(elsewhere.engine) == counted_bytes(bench.engine)
    elsewhere.clock.us += 1_000_000_000
    elsewhere.engine.tenants.resume("acme")
    gaps = [action for action in elsewhere.actions() if action.reason == "tenant_suspended"]
    assert {action.slot_to is not None for action in gaps} == {True}
    assert elsewhere.run(), "what waited runs here"
    elsewhere.clock.us += 100_000_000
    assert elsewhere.tick()
    assert bench.claim() == [], "and no more there"
    assert len(archive) < 20_000


def test_only_what_stands_still_is_exported(bench: Bench) -> None:
    bench.tenant()
    with pytest.raises(Conflict) as refused:
        bench.engine.tenants.export("acme")
    assert refused.value.code == "tenant_active"
    bench.engine.tenants.suspend("acme")
    assert bench.engine.tenants.export("acme") == bench.engine.tenants.export("acme")
    with bench.engine.context.database.write() as connection:
        values = {"step": 0, "attempt": 1, "docket": "{}", "own": "{}", "ended": "{}", "sealed_us": 1, "next_us": 1}
        connection.execute(
            insert(sealed).values(tenant_id="acme", action_id=bench.engine.context.ids.new(), tries=0, **values)
        )
    with pytest.raises(Conflict) as refused:
        bench.engine.tenants.export("acme")
    assert refused.value.code == "tenant_unfinished"
    with pytest.raises(Conflict) as refused:
        bench.engine.tenants.export(PLATFORM)
    assert refused.value.code == "platform_stays"
    with pytest.raises(NotFound):
        bench.engine.tenants.export("nobody")


def test_a_long_history_is_whole(bench: Bench, elsewhere: Bench) -> None:
    """Longer than what is read at once, keys of several columns."""
    bench.tenant()
    with bench.engine.context.database.write() as connection:
        rows = [
            {"tenant_id": "acme", "scope": f"s{n % 3}", "key": f"{n:05}", "value": str(n), "updated_us": 1}
            for n in range(1234)
        ]
        connection.execute(insert(kv), rows)
    move(bench, elsewhere)
    assert contents(bench.engine)["lodger_kv"] == contents(elsewhere.engine)["lodger_kv"]


def test_what_is_there_already_stays(bench: Bench, elsewhere: Bench) -> None:
    bench.tenant()
    archive = move(bench, elsewhere)
    with pytest.raises(Conflict) as refused:
        elsewhere.engine.tenants.restore("acme", archive)
    assert refused.value.code == "tenant_exists"
    with pytest.raises(InputError) as other:
        elsewhere.engine.tenants.restore("other", archive)
    assert other.value.code == "archive_of_other"


def test_a_script_of_the_platform_must_be_offered_here(bench: Bench, elsewhere: Bench, tmp_path: Path) -> None:
    furnish(bench)
    bench.engine.tenants.suspend("acme")
    archive = bench.engine.tenants.export("acme")
    with pytest.raises(Conflict) as refused:
        elsewhere.engine.tenants.restore("acme", archive)
    assert refused.value.code == "script_not_offered"
    with pytest.raises(NotFound):
        elsewhere.engine.tenants.get("acme")


def test_what_nobody_could_take_is_not_given(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.tenant()
    bench.engine.tenants.suspend("acme")
    whole = len(gzip.decompress(bench.engine.tenants.export("acme")).rpartition(b'{"sha256"')[0])
    monkeypatch.setattr("lodger.engine.features.archive.export.MAX_BYTES", whole)
    bench.engine.tenants.export("acme")
    monkeypatch.setattr("lodger.engine.features.archive.export.MAX_BYTES", whole - 1)
    with pytest.raises(Conflict) as refused:
        bench.engine.tenants.export("acme")
    assert refused.value.code == "tenant_too_large"


def test_while_a_tenant_is_packed_all_others_are_written(
    bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long history that takes minutes, in which a node would lose its lease."""
    bench.tenant()
    bench.engine.tenants.suspend("acme")
    database, found = bench.engine.context.database, []

    def line(value: object) -> bytes:
        if kind == "sqlite":
            with closing(sqlite3.connect(str(database.url.database), timeout=0, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # raises if the database is locked
                other.execute("ROLLBACK")
            found.append(False)
        else:
            with database.write() as connection:
                connection.exec_driver_sql("SELECT * FROM lodger_turns FOR UPDATE NOWAIT")
            found.append(False)
        return json.dumps(value).encode() + b"\n"

    monkeypatch.setattr("lodger.engine.features.archive.export._line", line)
    bench.engine.tenants.export("acme")
    assert len(found) > len(tables())
    assert not any(found)
