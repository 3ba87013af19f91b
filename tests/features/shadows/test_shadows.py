"""Shadows: another version runs dry beside the live one, is compared with it, and changes nothing whatever it tries."""

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.escape.commands import command
from tests.leaks import no_leaks
from tests.node.source_maps import Segments, source_map

from lodger.engine.cli import entry
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.features.replays.agreement import compare
from lodger.engine.features.replays.attempt_record import AttemptRecord
from lodger.engine.features.replays.recorded_host import MadeCall, RecordedHost
from lodger.engine.features.shadows.shadows import Shadow
from lodger.engine.store.usage import usage
from lodger.engine.testing import Stage
from lodger.engine.vault.keyring import Keyring

__all__ = ["no_leaks"]

SECRET = "s3cret-value-of-the-tenant"
LIVE = """
export default async ({ db, kv, mail, action, schedule }) => {
  const count = await db.notes.count({});
  const n = (await kv.get("n")) ?? 0;
  await kv.set("at", 1);
  await kv.set("n", n + 1);
  await db.notes.insert({ text: "note " + n });
  Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO("Asia/Tokyo").toPlainDate();
  if (action.input === "fail") throw new Error("no notes");
  return { n, luck: Math.random() };
};
"""
#: How the live version is edited, on which input, and what is to be said of it.
EDITS: dict[str, tuple[tuple[str, str], Any, str, str]] = {
    "agrees": (("const n =", "/* tidier */ const n ="), None, "agrees", ""),
    "agrees with keys in another order": (("{ n, luck: Math.random() }", "{ luck: Math.random(), n }"), None, "agrees", ""),
    "fewer questions": (("const count = await db.notes.count({});", ""), None, "agrees", ""),
    "result": (("return { n", "return { m: 1, n"), None, "differs", "result was {"),
    "effect": (('"note "', '"Note "'), None, "differs", "called db.insert("),
    "effect left out": (('await kv.set("n", n + 1);', ""), None, "differs", "called kv.set("),
    "further effect": (("return {", 'await kv.set("m", 1); return {'), None, "differs", "calls kv.set("),
    "mail": (("return {", 'await mail.send({ to: "a@acme.example", subject: "s", text: "t" }); return {'), None,
             "differs", "calls mail.send("),
    "request": (("return {", 'await fetch("http://127.0.0.1:PORT/", { method: "POST" }); return {'), None, "differs",
                "calls http.fetch("),
    "later run": (("return {", 'await schedule.runIn("1h"); return {'), None, "differs", "calls schedule.runAt("),
    "throws": (("return {", "null.x; return {"), None, "differs", "outcome was ok, is script_error (TypeError"),
    "throws half a character": (("return {", 'throw new Error("\\ud800"); return {'), None, "differs",
                               "outcome was ok, is script_error (Error: "),
    "endless": (("return {", "for (;;); return {"), None, "differs", "outcome was ok, is "),
    "another question": (("return {", "await db.notes.find({}); return {"), None, "undecided",
                         "it asks what the recorded run did not ask: db.find("),
    "computed no more": (('.toZonedDateTimeISO("Asia/Tokyo").toPlainDate()', ""), None, "agrees", ""),
    "computed anew": (("return {", 'Temporal.Now.plainDateISO("Asia/Seoul"); return {'), None, "undecided",
                      "it asks what the recorded run did not ask: time.zone("),
    "a question behind a change": (('const n = (await kv.get("n")) ?? 0;\n  await kv.set("at", 1);',
                                    'await kv.set("at", 1); const n = (await kv.get("n")) ?? 0;'), None, "undecided",
                                   "it reads data at another place"),
    "repaired": (('if (action.input === "fail") throw new Error("no notes");', ""), "fail", "differs",
                 "outcome was script_error (Error: no notes), is ok"),
    "fails likewise": (("const n =", "\n\nconst n ="), "fail", "agrees", ""),
    "another error": (('"no notes"', '"none"'), "fail", "differs", "error was Error: no notes, is Error: none"),
}  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One stage for all tests, each with scripts of its own."""
    folder = tmp_path_factory.mktemp("stage")
    Keyring(folder / "keys").add()
    with Stage(database=str(folder / "ledger.db"), secret_keys=folder / "keys") as stage:
        stage.engine.tenants.create("acme", limits={"wall_ms": 60_000, "cpu_ms": 200})
        stage.engine.tenants.create("other")
        stage.engine.grants.give("acme", "secret:KEY:plain", "mail:*", "fetch:127.0.0.1")
        stage.engine.secrets.put("acme", "KEY", SECRET)
        yield stage


def begin(stage: Stage, name: str, shadow: str, live: str = LIVE, slots: int = 1, **more: Any) -> None:
    """Put a script with a version in its shadow, and let three seconds pass."""
    stage.engine.scripts.put("acme", name, live, force=True)
    stage.engine.scripts.put("acme", name, shadow, force=True, shadow=slots, **more)
    stage.advance("3s")


def run_script(stage: Stage, name: str, params: Any = None) -> Shadow:
    """Return the shadow after a further run of its script."""
    stage.engine.run_in("acme", name, 0, params)
    stage.settle()
    found: Shadow = stage.engine.scripts.shadow("acme", name)
    return found


def stored_changes(stage: Stage) -> list[tuple[Any, ...]]:
    """Return what runs of the tenant have changed."""
    with stage.engine.context.database.read() as connection:
        return [
            tuple(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalars())
            for table in ("lodger_documents", "lodger_kv", "lodger_outbox", "lodger_actions", "lodger_attempts")
        ]


def test_each_kind_of_difference_is_told_and_nothing_of_a_shadow_is_applied(
    stage: Stage, subtests: pytest.Subtests
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port = str(listener.getsockname()[1])
    for number, (what, (edit, params, verdict, words)) in enumerate(EDITS.items()):
        with subtests.test(what):
            name = f"edit{number}"
            assert edit[0] in LIVE
            stage.engine.scripts.put("acme", name, LIVE, force=True)
            stage.engine.run_in("acme", name, 0, params)
            stage.settle()
            before = stored_changes(stage)
            begin(stage, name, LIVE.replace(*edit).replace("PORT", port))
            found = run_script(stage, name, params)
            assert (found.state, found.live_version, found.version, len(found.runs)) == ("finished", 1, 2, 1)
            run = found.runs[0]
            assert run.verdict == verdict, run
            assert run.difference.startswith(words), run
            run.difference.encode()
            assert bool(run.difference) == (verdict != "agrees")
            # One further run of the live version, and no more.
            applied = [after[0] - one[0] for one, after in zip(before, stored_changes(stage), strict=True)]
            assert applied == ([0, 0, 0, 1, 1] if params else [1, 0, 0, 1, 1]), applied
            assert stage.engine.scripts.get("acme", name).version == 1
    with listener, pytest.raises(BlockingIOError):
        listener.accept()


def test_a_shadow_is_promoted_or_dropped_by_one_verb(stage: Stage) -> None:
    begin(stage, "verbs", LIVE + "// 2", slots=2, why="tidy")
    ended: list[dict[str, Any]] = []
    stage.engine.on_event(lambda event: event.kind == "shadow" and ended.append(event.details))
    assert run_script(stage, "verbs").state == "running"
    assert ended == []
    found = run_script(stage, "verbs")
    assert ended == [found.summary()]
    assert (found.state, found.agreed, found.differed, found.undecided, found.missed) == ("finished", 2, 0, 0, 0)
    assert len(run_script(stage, "verbs").runs) == 2
    promoted = stage.engine.scripts.promote("acme", "verbs")
    assert (promoted.version, promoted.modules["main.js"]) == (2, LIVE + "// 2")
    assert stage.engine.scripts.shadow("acme", "verbs").state == "promoted"
    with pytest.raises(NotFound) as unknown:
        stage.engine.scripts.promote("acme", "verbs")
    assert unknown.value.code == "shadow_unknown"
    # A further one replaces it; one that another version has overtaken cannot undo that version.
    stage.engine.scripts.put("acme", "verbs", LIVE + "// 3", shadow=5)
    stage.engine.scripts.put("acme", "verbs", LIVE + "// 4", shadow=5)
    stage.engine.scripts.put("acme", "verbs", LIVE + "// 5")
    stage.advance("3s")
    assert (run_script(stage, "verbs").state, stage.engine.scripts.shadow("acme", "verbs").runs) == ("outdated", ())
    with pytest.raises(Conflict, match="version 3 of 'verbs' is live"):
        stage.engine.scripts.promote("acme", "verbs")
    assert stage.engine.scripts.drop("acme", "verbs").wanted == 5
    with pytest.raises(NotFound):
        stage.engine.scripts.shadow("acme", "verbs")
    assert stage.engine.scripts.get("acme", "verbs").version == 3
    verbs = [each.verb for each in stage.engine.audit.list("acme", target="verbs")]
    assert verbs == ["scripts.drop", *["scripts.put"] * 3, "scripts.promote", *["scripts.put"] * 2]


def test_a_shadow_is_promoted_by_itself_when_all_agree_and_only_then(stage: Stage) -> None:
    begin(stage, "auto", LIVE + "// 2", slots=2, promote_when_agreed=True)
    assert [run_script(stage, "auto").state for _ in "12"] == ["running", "promoted"]
    assert stage.engine.scripts.get("acme", "auto").version == 2
    row = stage.engine.audit.list("acme", verb="scripts.promote", limit=1)[0]
    assert (row.actor, row.named, row.why) == ("engine", "auto", "all 2 runs of the shadow agreed")
    for name, edit in (("unsure", ("return {", "await db.notes.find({}); return {")), ("not", ("{ n,", "{ m: n,"))):
        begin(stage, name, LIVE.replace(*edit), promote_when_agreed=True)
        assert run_script(stage, name).state == "finished"
        assert stage.engine.scripts.get("acme", name).version == 1


def test_secrets_and_budgets_and_tenants(stage: Stage) -> None:
    source = "export default async ({ secrets }) => { const key = await secrets.read('KEY'); return key.length; };"
    begin(stage, "secret", source + "// 2", live=source)
    run = run_script(stage, "secret").runs[0]
    assert run.verdict == "undecided", "a placeholder has another length: the record does not tell"
    assert "read secrets (KEY)" in run.difference
    quiet = source.replace("key.length", "key.length > 0")
    begin(stage, "quiet", quiet + "// 2", live=quiet)
    assert run_script(stage, "quiet").runs[0].verdict == "agrees"
    begin(stage, "thief", quiet.replace("key.length > 0", "key"), live=quiet)
    assert SECRET not in repr(run_script(stage, "thief"))
    for act in (stage.engine.scripts.shadow, stage.engine.scripts.promote, stage.engine.scripts.drop):
        with pytest.raises(NotFound):
            act("other", "quiet")
    # The live run uses up the tenant's CPU time of the day, so that its shadow may not run.
    busy = "let x = 0; for (let n = 0; n < 1e6; n++) x += n; export default () => x"
    begin(stage, "busy", busy + "// 2", live=busy, slots=5)
    stage.engine.tenants.edit("acme", limits={"wall_ms": 60_000, "cpu_ms": 1000, "cpu_s_per_day": 1})
    context = stage.engine.context
    left_ms = 1000 * (1 - stage.engine.tenants.usage("acme").days[-1].cpu_s)
    with context.database.write() as connection:
        usage.charge_trial(context, connection, "acme", left_ms - 5)
    found = run_script(stage, "busy")
    assert (found.state, found.missed, found.runs) == ("running", 1, ())
    stage.engine.tenants.edit("acme", limits={"wall_ms": 60_000, "cpu_ms": 200})


def test_what_cannot_be_a_shadow_is_refused(stage: Stage) -> None:
    put = stage.engine.scripts.put
    put("acme", "wrong", LIVE)
    for more in (
        {"shadow": 0}, {"shadow": 501}, {"shadow": -1}, {"shadow": 1, "grants": ["kv"]}, {"promote_when_agreed": True},
        {"shadow": 1, "source": LIVE}, {"shadow": 1, "source": {"index.js": "export const a = 1"}}, {"shadow": 1, "source": command("")},
        {"shadow": 1, "params": {"a": {"type": "integer"}}},
    ):  # fmt: skip
        with pytest.raises(InputError) as refused:
            put("acme", "wrong", **({"source": LIVE + "// 2"} | more))
        assert refused.value.code in {"shadow_invalid", "kind_fixed"}, more
    stage.engine.scripts.record("acme", "wrong", "none")
    with pytest.raises(InputError, match="cannot run as a shadow"):
        put("acme", "wrong", LIVE + "// 2", shadow=1)
    with pytest.raises(NotFound):
        put("acme", "nothing", LIVE, shadow=1)
    with pytest.raises(NotFound):
        stage.engine.scripts.shadow("acme", "wrong")


def test_a_shadow_has_its_own_libraries_and_source_map(stage: Stage) -> None:
    """What both import stays as it was stored, and a thrown error is one error, wherever the maps say that it is."""
    put = stage.engine.scripts.put
    put("acme", "money", {"index.js": "export const cents = (euro) => euro * 100;"})
    put("acme", "helper", {"main.js": "export const two = () => 2;\nexport default () => 1"})
    main = """import { cents } from "lib:money@1";
import { two } from "../helper/main.js";
export default ({ action }) => { if (action.input) throw new Error("wrong " + cents(two())); return cents(two()); };
"""
    places: list[Segments] = [[[], [], [(0, 1, line, 0)]] for line in (2, 40)]
    live = {"main.js": main, "main.js.map": source_map(places[0])}
    put("acme", "bundle", live)
    put("acme", "money", {"index.js": "export const cents = (euro) => Math.round(euro * 100) + 1;"})
    put("acme", "helper", {"main.js": "export const two = () => 3;\nexport default () => 1"})
    # The library's new version, a new version of the helper, and the same ones with another map.
    newer = {"main.js": main.replace("@1", "@2"), "main.js.map": source_map(places[1])}
    moved = {"main.js": "// moved\n" + main.replace("../helper/main.js", "./two.js"), "two.js": "export const two = () => 2;",
             "main.js.map": source_map([[], *places[1]])}  # fmt: skip
    for source, params, verdict, words in (
        (newer, None, "differs", "result was 200, is 301"),
        (newer, 1, "differs", "error was Error: wrong 200, is Error: wrong 301"),
        (moved, None, "agrees", ""),
        (moved, 1, "agrees", ""),
    ):
        put("acme", "bundle", source, shadow=1)
        stage.advance("3s")
        run = run_script(stage, "bundle", params).runs[0]
        assert (run.verdict, run.difference) == (verdict, words)
    promoted = stage.engine.scripts.promote("acme", "bundle")
    assert (promoted.modules, promoted.uses) == (moved, {"lib:money@1": 1})
    failed = stage.engine.run_in("acme", "bundle", 0, 1)
    stage.settle()
    error = stage.engine.actions.get("acme", failed.id).error
    assert error is not None
    assert (error.message, error.file, error.line) == ("wrong 200", "../src/main.ts", 41)


async def verdict_on_repeat(record: AttemptRecord) -> tuple[str, str]:
    """Return the verdict on a run that makes the calls of a record, and no more."""
    host = RecordedHost(record)
    host.made = [MadeCall(each.name, each.arguments) for each in record.calls]
    return compare(record, host, record.ended)


def test_the_recorded_past_is_rehearsed(stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage.engine.scripts.put("acme", "past", LIVE, force=True)
    stage.engine.run_in("acme", "past", 0, None)
    stage.settle()
    stage.engine.scripts.record("acme", "past", "all")
    stage.advance("3s")
    for params in (None, "fail"):
        stage.engine.run_in("acme", "past", 0, params)
        stage.settle()
    place = str(stage.engine.context.database.url)

    def rehearse(*more: str, tenant: str = "acme") -> tuple[int, str]:
        code = entry.run(["script", "rehearse", tenant, "past", "--last", "36500d", "--db", place, *more])
        return code, capsys.readouterr().out

    asks = tmp_path / "asks.js"
    asks.write_text(LIVE.replace("const n =", "await db.notes.count({}); const n ="))
    other = tmp_path / "other.js"
    other.write_text(LIVE.replace('"note "', '"Note "'))
    before = stored_changes(stage)
    code, out = rehearse("--file", str(other), "--json")
    assert (code, json.loads(out)["summary"]) == (1, {"agrees": 0, "differs": 1, "undecided": 1, "no_record": 1})
    code, out = rehearse("--file", str(asks), "--json")
    assert (code, [each["verdict"] for each in json.loads(out)["runs"]]) == (3, ["undecided", "undecided", "no record"])
    stage.engine.scripts.put("acme", "past", LIVE.replace("{ n,", "{ m: n,"), force=True)
    code, out = rehearse()
    assert (code, out.splitlines()[-1]) == (1, "1 agrees, 1 differs, 0 undecided, 1 no record")
    assert "result was {" in " ".join(out.split())
    code, out = rehearse("--version", "1", "--limit", "1")
    assert (code, out.splitlines()[-1]) == (0, "1 agrees, 0 differs, 0 undecided, 0 no record")
    assert stored_changes(stage) == before
    record = stage.engine.actions.record("acme", stage.engine.actions.list("acme", script="past", state="done")[0].id)
    assert asyncio.run(verdict_on_repeat(record)) == ("agrees", "")
    assert asyncio.run(verdict_on_repeat(replace(record, complete=False)))[0] == "undecided"
    for wrong in (
        ("--version", "9"), ("--version", "1", "--file", str(other)), ("--last", "yesterday"), ("--limit", "0"), ("--last", "9" * 40 + "d"),
    ):  # fmt: skip
        assert rehearse(*wrong)[0] in {1, 2}, wrong
    assert entry.run(["script", "rehearse", "acme", "past", "--last", "-7d", "--db", place]) == 2
    assert "--last 7d or --last 12h" in capsys.readouterr().err
    assert rehearse(tenant="other")[0] == 1


def test_runs_that_come_all_at_once_are_missed_and_a_neighbour_s_are_not(tmp_path: Path) -> None:
    with Stage(database=str(tmp_path / "ledger.db"), slots=12, concurrent_runs=12) as stage:
        for tenant in ("acme", "other"):
            stage.engine.tenants.create(tenant)
            stage.engine.scripts.put(tenant, "s", "export default () => 1", force=True)
            stage.engine.scripts.put(tenant, "s", "export default () => 1 + 0", force=True, shadow=50)
        stage.advance("3s")
        for _ in range(12):
            stage.engine.run_in("acme", "s", 0)
        stage.engine.run_in("other", "s", 0)
        stage.settle()
        acme, other = (stage.engine.scripts.shadow(each, "s") for each in ("acme", "other"))
        assert (len(acme.runs) + acme.missed, bool(acme.missed)) == (12, True)
        assert (len(other.runs), other.missed) == (1, 0)
        assert {each.verdict for each in (*acme.runs, *other.runs)} == {"agrees"}
