"""Batches: tenants, scripts and schedules in one transaction, all of them or none. On both databases."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dateutil.rrule import DAILY, rrule
from sqlalchemy import event
from tests.e2e.command import inside
from tests.store.bench import Bench

from lodger.engine.core.errors import InputError
from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

SOURCE = "export default () => 1"
DAILY_AT_9 = "every day at 09:00"


def batch(number: int, prefix: str = "t", **more: Any) -> dict[str, Any]:
    ids = [f"{prefix}{n}" for n in range(number)]
    return {
        "tenants": [{"tenant_id": each, "plan": "free", "tz": "Asia/Tokyo"} for each in ids],
        "scripts": [
            {"tenant_id": each, "name": "s", "source": SOURCE, "params": {"n": {"type": "number"}}} for each in ids
        ],
        "schedules": [
            {"tenant_id": each, "name": "d", "script": "s", "rules": DAILY_AT_9, "params": {"n": 1}} for each in ids
        ],
        **more,
    }


@contextmanager
def statements(bench: Bench) -> Iterator[list[str]]:
    """Collect the statements that the ledger's connections send."""
    seen: list[str] = []
    engine = bench.engine.context.database.engine

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def codes(refused: InputError) -> list[tuple[str, int, str]]:
    return [(each["kind"], each["position"], each["code"]) for each in refused.details["refused"]]


def test_a_batch_creates_the_same_as_single_calls_with_few_statements_an_object(bench: Bench) -> None:
    engine = bench.engine
    engine.plans.put("free", {"schedules": 2})
    engine.batches.create(**batch(1, "warm"))  # a connection's first statements
    made = engine.batches.create(**batch(40, "b"))
    assert (made.tenants, made.scripts, made.schedules, made.kept) == (40, 40, 40, 0)
    for kind, most in (("tenants", 5), ("scripts", 10), ("schedules", 11)):
        counts = []
        for number in (2, 12):
            with statements(bench) as seen:
                engine.batches.create(**{kind: batch(number, f"a{number}")[kind]})
            counts.append(len(seen))
        assert counts[1] - counts[0] <= 10 * most, kind
    engine.tenants.create("single", plan="free", tz="Asia/Tokyo")
    engine.scripts.put("single", "s", SOURCE, params={"n": {"type": "number"}})
    engine.schedules.create("single", "d", script="s", rules=DAILY_AT_9, params={"n": 1})
    for tenant in ("b0", "b39"):
        one, many = engine.schedules.get("single", "d"), engine.schedules.get(tenant, "d")
        assert (many.rules, many.next_at, many.params, many.conduct, many.state) == (
            one.rules, one.next_at, one.params, one.conduct, one.state,
        )  # fmt: skip
        assert engine.scripts.get(tenant, "s").digest == engine.scripts.get("single", "s").digest
        assert engine.scripts.get(tenant, "s").fields == engine.scripts.get("single", "s").fields
        assert engine.tenants.get(tenant).limits_in_effect == {"schedules": 2}
        verbs = {each.verb for each in engine.audit.list(tenant)}
        assert verbs == {"tenants.create", "scripts.put", "schedules.create"}
    bench.clock.advance(86_400)
    bench.tick()
    assert len(bench.actions(tenant_id="b7")) == 1
    assert len(bench.claim(100)) == 56, "they run"


def test_one_refused_object_refuses_all_and_each_is_named(bench: Bench) -> None:
    engine = bench.engine
    engine.tenants.create("old")
    engine.tenants.create("asleep")
    engine.scripts.put("asleep", "s", SOURCE)
    engine.tenants.suspend("asleep")
    engine.plans.put("free", {})
    odd: list[Any] = [
        {"tenant_id": "t0", "name": "x", "script": "gone", "rules": DAILY_AT_9},
        {"tenant_id": "nobody", "name": "x", "script": "s", "rules": DAILY_AT_9},
        {"tenant_id": "t1", "name": "d", "script": "s", "rules": "evry day"},
        {"tenant_id": "asleep", "name": "x", "script": "s", "rules": DAILY_AT_9},
        {"tenant_id": "t1", "name": "x", "script": "s", "rules": DAILY_AT_9, "params": {"n": "one"}},
        {"tenant_id": "t1", "name": "y", "script": "s", "rulez": DAILY_AT_9},
        {"tenant_id": "t1", "name": "z", "script": "s"},
        {"tenant_id": "t1", "name": "w", "script": "s", "rules": DAILY_AT_9, "start": "yesterday"},
        "nonsense",
        {"tenant_id": 7, "name": "v", "script": "s", "rules": DAILY_AT_9},
    ]
    unreadable = batch(2, scripts=[*batch(2)["scripts"], {"tenant_id": "t0", "name": "bad", "source": "0\0"}])
    with pytest.raises(InputError) as refused:
        engine.batches.create(**(unreadable | {"schedules": odd}))
    assert refused.value.code == "batch_refused"
    assert "there is no field 'rulez'; did you mean rules?" in str(refused.value)
    assert codes(refused.value) == [
        ("schedules", 5, "batch_item_invalid"),
        ("schedules", 6, "batch_item_invalid"),
        ("schedules", 7, "batch_item_invalid"),
        ("schedules", 8, "batch_item_invalid"),
        ("schedules", 9, "batch_item_invalid"),
        ("scripts", 2, "source_not_text"),
        ("schedules", 2, "english_unclear"),
        ("schedules", 0, "script_unknown"),
        ("schedules", 1, "tenant_unknown"),
        ("schedules", 3, "tenant_suspended"),
        ("schedules", 4, "params_invalid"),
    ]
    assert refused.value.details["count"] == 11
    with pytest.raises(InputError) as twice:
        engine.batches.create(tenants=[{"tenant_id": "n"}, {"tenant_id": "old"}, {"tenant_id": "n"}])
    assert codes(twice.value) == [("tenants", 2, "batch_item_invalid"), ("tenants", 1, "tenant_exists")]
    with pytest.raises(InputError) as tenants:
        engine.batches.create(
            tenants=[{"tenant_id": "a/b"}, {"tenant_id": "p", "plan": "gone"}, {"tenant_id": "q", "tz": "Mars"}],
            scripts=[{"tenant_id": "a/b", "name": "s", "source": SOURCE}],
        )
    assert [code for _kind, _at, code in codes(tenants.value)] == ["tenant_id_invalid", "plan_unknown", "zone_unknown"]
    with pytest.raises(InputError) as large:
        engine.batches.create(tenants=[{"tenant_id": f"t{n}"} for n in range(2001)])
    assert large.value.code == "batch_too_large"
    assert {each.id for each in engine.tenants.list()} == {"old", "asleep"}, "nothing of any of them"


def test_a_batch_can_be_repeated_and_limits_of_tenants_hold(bench: Bench) -> None:
    engine = bench.engine
    engine.plans.put("free", {"schedules": 1, "scripts": 1})
    engine.batches.create(**batch(3))
    with pytest.raises(InputError) as exists:
        engine.batches.create(**batch(3))
    assert {code for _kind, _at, code in codes(exists.value)} == {"tenant_exists"}
    again = engine.batches.create(**batch(4), keep=True)
    assert (again.tenants, again.scripts, again.schedules, again.kept) == (1, 1, 1, 9)
    same = engine.batches.create(**batch(4), keep=True)
    assert (same.tenants, same.scripts, same.schedules, same.kept) == (0, 0, 0, 12)
    assert len([each for each in engine.audit.list() if each.verb == "batches.create"]) == 2
    with pytest.raises(InputError) as full:
        engine.batches.create(
            scripts=[{"tenant_id": "t0", "name": "more", "source": SOURCE}],
            schedules=[{"tenant_id": "t1", "name": "more", "script": "s", "rules": DAILY_AT_9}],
        )
    assert codes(full.value) == [("scripts", 0, "scripts_full"), ("schedules", 0, "schedules_full")]
    engine.tenants.delete("t0")
    engine.batches.create(
        tenants=[{"tenant_id": "t0"}],
        scripts=[{"tenant_id": "t0", "name": "s", "source": SOURCE}],
        schedules=[
            {"tenant_id": "t0", "name": "d", "script": [{"script": "s", "version": 1}], "rules": rrule(DAILY, byhour=9)}
        ],
    )
    assert engine.tenants.get("t0").generation > 1
    assert engine.schedules.get("t0", "d").steps == ({"script": "s", "version": 1},)


def test_scripts_of_a_batch_are_parsed_in_the_sandbox(tmp_path: Path) -> None:
    good: list[Any] = [{"tenant_id": "a", "name": f"s{n}", "source": f"export default () => {n % 2}"} for n in range(6)]
    bad: Any = {"tenant_id": "a", "name": "bad", "source": "export default ("}
    with Engine.open(str(tmp_path / "ledger.db"), settings=Settings(check_scripts=True)) as engine:
        engine.tenants.create("a")
        with pytest.raises(InputError) as refused:
            engine.batches.create(scripts=[*good, bad, bad | {"name": "forced", "force": True}])
        assert codes(refused.value) == [("scripts", 6, "source_refused")]
        assert refused.value.details["refused"][0]["line"] == 1
        assert list(engine.scripts.list("a")) == []
        made = engine.batches.create(scripts=[*good, bad | {"force": True}])
        assert (made.scripts, made.unchecked) == (7, 1)


def test_a_file_that_is_no_batch_creates_nothing(tmp_path: Path) -> None:
    ledger, file = str(tmp_path / "ledger.db"), tmp_path / "file.json"
    # An object with a name twice has lost what stood under the first one.
    for content in ("[" * 100_000, '{"tenants": [{"tenant_id": "a"}], "tenants": []}', '{"tenants": NaN}', "[]", ""):
        file.write_text(content)
        said = inside("batch", "import", file, "--db", ledger, "--json")
        assert (said.code, said.json["error"]["code"]) == (1, "batch_file_invalid")
    file.write_text('{"tenants": [{"tenant_id": "a"}]}', encoding="utf-8-sig")
    assert inside("batch", "import", file, "--db", ledger, "--json").json["tenants"] == 1


def test_a_refusal_in_a_later_part_of_a_file_names_the_position_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    tenants: list[Any] = [{"tenant_id": f"t{n}"} for n in range(2005)]
    tenants[2002] |= {"tz": "Mars/Base"}
    tenants[2004] |= {"zone": "UTC"}
    file.write_text(json.dumps({"tenants": tenants}))
    said = inside("batch", "import", file, "--db", str(tmp_path / "ledger.db"), "--json").json["error"]
    assert said["code"] == "batch_refused"
    assert "after its first 2000 were stored" in said["message"]
    assert sorted(each["position"] for each in said["refused"]) == [2002, 2004]
    assert any("tenants[2004] of the file" in each["message"] for each in said["refused"])
