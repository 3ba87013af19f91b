"""Versions of scripts and revisions of schedules: immutable, listed with actor, time and reason, compared, rolled back; actions
keep theirs."""

import unicodedata
from datetime import timedelta

import pytest
from sqlalchemy import text
from tests.store.bench import Bench

from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.store.scripts.differences import MAX_PAIRS, unified

ONE, TWO = "export default () => 1\n", "export default () => 2\n"


def put(bench: Bench, *sources: str, name: str = "job") -> None:
    for source in sources:
        bench.engine.scripts.put("acme", name, source)


def test_rolling_back_makes_a_new_version_of_the_old_source(bench: Bench) -> None:
    bench.tenant()
    put(bench, ONE, TWO)
    back = bench.engine.scripts.rollback("acme", "job", 2)
    assert (back.version, back.modules, back.why) == (4, {"main.js": ONE}, "rollback to version 2")
    assert bench.engine.scripts.get("acme", "job", 3).modules == {"main.js": TWO}
    with pytest.raises(NotFound):
        bench.engine.scripts.rollback("acme", "job", 9)


def test_somebody_elses_version_is_not_overwritten(bench: Bench) -> None:
    bench.tenant()
    bench.engine.scripts.put("acme", "job", ONE, after_version=1)
    with pytest.raises(Conflict) as refused:
        bench.engine.scripts.put("acme", "job", TWO, after_version=1)
    assert refused.value.code == "changed_meanwhile"
    bench.engine.scripts.put("acme", "fresh", ONE, after_version=0)
    with pytest.raises(Conflict):
        bench.engine.scripts.put("acme", "fresh", TWO, after_version=0)


def test_a_diff_of_files(bench: Bench) -> None:
    bench.tenant()
    bench.engine.scripts.put("acme", "job", {"main.js": "a\nb\nc\n", "old.js": "1\n"})
    bench.engine.scripts.put("acme", "job", {"main.js": "a\nB\nc\n", "new.js": "2\n"})
    diff = bench.engine.scripts.diff("acme", "job", 2)
    assert (diff.older, diff.newer) == (2, 3)
    assert {each.file: each.state for each in diff.files} == {
        "main.js": "changed",
        "old.js": "removed",
        "new.js": "added",
    }
    assert next(each for each in diff.files if each.file == "main.js").text.splitlines()[1:] == [
        " a",
        "-b",
        "+B",
        " c",
        " ",
    ]


def test_a_diff_tells_the_right_lines_far_down() -> None:
    before = [f"line {number}" for number in range(1, 1001)]
    after = [*before[:700], "new", *before[700:]]
    reported = unified("\n".join(before), "\n".join(after)).splitlines()
    assert reported[0] == "@@ -698,6 +698,7 @@"
    assert "+new" in reported


def test_hostile_sources_are_compared_in_bounded_work() -> None:
    lines = 200_000
    old = "\n".join(str(number % 7) for number in range(lines))
    new = "\n".join(str(number % 11) for number in range(lines))
    assert lines * lines > MAX_PAIRS
    reported = unified(old, new)
    assert reported.count("\n-") > 1000
    assert reported.startswith("@@ -5,199996 +5,199996 @@")


def test_limits_bound_scripts_and_versions(bench: Bench) -> None:
    bench.engine.tenants.create("acme", limits={"scripts": 1, "versions": 2})
    put(bench, ONE, TWO)
    for name, code in (("job", "versions_full"), ("other", "scripts_full")):
        with pytest.raises(Conflict) as refused:
            put(bench, ONE, name=name)
        assert refused.value.code == code
    bench.engine.tenants.edit("acme", limits={"scripts": 1, "versions": 1})
    with pytest.raises(Conflict, match="limit of 1 versions"):
        put(bench, ONE)


@pytest.mark.parametrize("name", ["", " a", "a/b", "..", ".", "a\\b", "a\n", "x" * 201, "\u202e", "a\0"])
def test_a_name_is_one_segment_of_an_address(bench: Bench, name: str) -> None:
    bench.tenant()
    for make, code in (
        (lambda: bench.engine.tenants.create(name), "tenant_id_invalid"),
        (lambda: put(bench, ONE, name=name), "script_name_invalid"),
        (lambda: bench.schedule(name=name), "schedule_name_invalid"),
    ):
        with pytest.raises(InputError) as refused:
            make()
        assert refused.value.code in {code, "text_unstorable"}


@pytest.mark.parametrize("name", ["cafe\u0301", "\u1100\u1161", "A\u030a", "\u212b"])
def test_a_name_has_one_spelling(bench: Bench, name: str) -> None:
    """Composed and decomposed letters look the same: only one of the two can be a name."""
    bench.tenant()
    composed = unicodedata.normalize("NFC", name)
    for make, code in (
        (bench.engine.tenants.create, "tenant_id_invalid"),
        (lambda given: put(bench, ONE, name=given), "script_name_invalid"),
        (lambda given: bench.schedule(name=given), "schedule_name_invalid"),
    ):
        make(composed)
        with pytest.raises(InputError) as refused:
            make(name)
        assert refused.value.code == code
        assert "NFC" in str(refused.value.why)
        assert ascii(composed) in str(refused.value.fix)


@pytest.mark.parametrize("name", ["a\0", "\ud800"])
def test_what_no_database_can_compare_is_refused_when_it_is_looked_for(bench: Bench, name: str) -> None:
    bench.tenant()
    for look in (
        lambda: bench.engine.tenants.get(name),
        lambda: bench.engine.scripts.get("acme", name),
        lambda: bench.engine.schedules.get("acme", name),
        lambda: bench.engine.actions.list("acme", script=name),
        lambda: bench.engine.tokens.get(name),
        lambda: bench.engine.audit.list("acme", target=name),
    ):
        try:
            found = look()
        except InputError as refused:
            assert refused.code.endswith(("_unknown", "_unstorable"))  # noqa: PT017 - either is right
        else:
            assert found == []


def test_a_schedule_runs_the_version_it_names(bench: Bench) -> None:
    bench.tenant()
    put(bench, TWO)
    pinned = bench.schedule(version=1)
    latest = bench.schedule(name="latest", version="latest")
    assert (pinned.steps, latest.steps) == (({"script": "job", "version": 1},), ({"script": "job"},))
    bench.clock.advance(60)
    bench.tick()
    put(bench, "export default () => 3\n")
    versions = {action.schedule: action.script_version for action in bench.actions()}
    assert versions == {"s": 1, "latest": 2}, "what is queued keeps its version"
    bench.run()
    bench.clock.advance(60)
    bench.tick()
    assert {each.schedule: each.script_version for each in bench.engine.actions.list(state="ready")} == {
        "s": 1,
        "latest": 3,
    }
    assert bench.engine.actions.run_now(pinned.tenant_id, pinned.id).script_version == 1
    edited = bench.engine.schedules.edit("acme", "s", version="latest")
    assert edited.steps == ({"script": "job"},)
    assert bench.engine.actions.run_now(edited.tenant_id, edited.id).script_version == 3


def test_steps_and_backfills_keep_to_the_versions_they_name(bench: Bench) -> None:
    bench.tenant()
    put(bench, TWO)
    put(bench, ONE, name="other")
    schedule = bench.engine.schedules.create(
        "acme", "steps", script=[{"script": "job", "version": 1}, "other"], rules="every 60s"
    )
    made = bench.engine.actions.backfill(
        schedule.tenant_id, schedule.id, start=schedule.created_at - timedelta(minutes=1), end=schedule.created_at
    )
    assert len(made.actions) == 1
    claims = bench.run()
    assert [claim.script_version for claim in claims] == [1]
    assert [claim.script_name for claim in bench.run()] == ["other"]


@pytest.mark.parametrize(
    ("version", "code"),
    [(9, "script_unknown"), (0, "version_invalid"), ("newest", "version_invalid"), (1.5, "version_invalid"),
     (True, "version_invalid"), (2**31, "version_invalid")],
)  # fmt: skip
def test_a_version_that_is_none(bench: Bench, version: object, code: str) -> None:
    bench.tenant()
    with pytest.raises(InputError) as refused:
        bench.schedule(version=version)
    assert refused.value.code == code


def test_one_version_is_not_that_of_several_steps(bench: Bench) -> None:
    bench.tenant()
    with pytest.raises(InputError) as refused:
        bench.engine.schedules.create("acme", "s", script=["job", "job"], rules="every 60s", version=1)
    assert refused.value.code == "version_of_steps"


def test_revisions_are_told_compared_and_taken_back(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    with audit_as("bob"):
        bench.engine.schedules.edit("acme", "s", rules="every 120s", params={"a": 1}, why="too often")
    reported = bench.engine.schedules.revisions("acme", "s")
    assert (reported[0].revision, reported[0].created_by, reported[0].why) == (2, "bob", "too often")
    diff = bench.engine.schedules.diff("acme", "s", 1)
    assert {each.field for each in diff.changes} == {"text", "rules", "params"}
    back = bench.engine.schedules.rollback("acme", "s", 1)
    assert (back.revision, back.rules, back.params) == (3, reported[-1].rules, None)
    assert bench.engine.schedules.revisions("acme", "s")[0].why == "rollback to revision 1"
    assert bench.engine.schedules.diff("acme", "s", 1, 3).changes == ()
    with pytest.raises(NotFound) as absent:
        bench.engine.schedules.rollback("acme", "s", 9)
    assert absent.value.code == "revision_unknown"


def test_an_edit_of_what_somebody_else_has_edited(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    bench.engine.schedules.edit("acme", "s", rules="every 120s", revision=1)
    with pytest.raises(Conflict) as refused:
        bench.engine.schedules.edit("acme", "s", rules="every 180s", revision=1)
    assert refused.value.code == "changed_meanwhile"
    assert bench.engine.schedules.get("acme", "s").revision == 2


def test_lists_are_paged_by_signed_cursors(bench: Bench) -> None:
    for number in range(5):
        bench.engine.tenants.create(f"t{number}")
    bench.tenant()
    put(bench, ONE, name="two")
    for number in range(5):
        bench.schedule(name=f"s{number}")
        bench.engine.actions.run_now("acme", f"s{number}")
    engine = bench.engine
    for listed in (
        lambda **more: engine.tenants.list(**more),
        lambda **more: engine.scripts.list("acme", **more),
        lambda **more: engine.scripts.versions("acme", "job", **more),
        lambda **more: engine.schedules.list("acme", **more),
        lambda **more: engine.schedules.list(**more),
        lambda **more: engine.schedules.revisions("acme", "s1", **more),
        lambda **more: engine.actions.list("acme", **more),
        lambda **more: engine.actions.list("acme", filter="sort:due", **more),
        lambda **more: engine.actions.list("acme", filter="sort:-ended", **more),
        lambda **more: engine.schedules.list("acme", filter="sort:next", **more),
        lambda **more: engine.schedules.list("acme", filter="sort:-failures", **more),
        lambda **more: engine.scripts.list("acme", filter="sort:version", **more),
        lambda **more: engine.tenants.list(filter="sort:-created", **more),
        lambda **more: engine.tokens.list(**more),
        lambda **more: engine.audit.list("acme", verb="schedules.", **more),
    ):
        whole, page, seen = listed(limit=None), listed(limit=2), []
        seen += page
        while page.next:
            page = listed(limit=2, cursor=page.next)
            assert page
            seen += page
        assert seen == whole
        assert whole.next is None
    first = engine.schedules.list("acme", limit=2).next
    assert first is not None
    for forged in (first[:-2] + ("A" if first[-2] != "A" else "B") + first[-1], "x", "", first[2:], "a" * 5000):
        if forged:
            with pytest.raises(InputError) as refused:
                engine.schedules.list("acme", cursor=forged)
            assert refused.value.code == "cursor_invalid"
    for other in (
        lambda: engine.schedules.list("t1", cursor=first),
        lambda: engine.schedules.list("acme", state="armed", cursor=first),
        lambda: engine.scripts.list("acme", cursor=first),
    ):
        with pytest.raises(InputError):
            other()
    for limit in (0, -1, 10_001):
        with pytest.raises(InputError):
            engine.tenants.list(limit=limit)


def test_a_cursor_is_of_this_ledger_alone(bench: Bench) -> None:
    for number in range(3):
        bench.engine.tenants.create(f"t{number}")
    cursor = bench.engine.tenants.list(limit=1).next
    with bench.engine.context.database.write() as connection:
        connection.execute(text("UPDATE lodger_keys SET secret = :new"), {"new": b"another ledger's key"})
    with pytest.raises(InputError):
        bench.engine.tenants.list(limit=1, cursor=cursor)


def test_actions_are_filtered(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    bench.run()
    asked = bench.engine.actions.run_now(schedule.tenant_id, schedule.id)
    later = bench.engine.run_in("acme", "job", timedelta(hours=1))
    listed = bench.engine.actions.list
    assert {each.id for each in listed("acme", origin="run_now")} == {asked.id}
    assert {each.origin for each in listed("acme", outcome="ok")} == {"slot"}
    assert {each.id for each in listed("acme", since=asked.due_at + timedelta(minutes=1))} == {later.id}
    assert later.id not in {each.id for each in listed("acme", until=later.due_at)}
    assert len(listed("acme", script="job")) == 3
    assert listed("acme", script="none") == []
    for wrong in ({"state": "x"}, {"outcome": "x"}, {"origin": "x"}):
        with pytest.raises(InputError):
            listed("acme", **wrong)
    with pytest.raises(NotFound):
        listed("nobody")
    counted = bench.engine.schedules.counters("acme", "s")
    assert (counted.actions, counted.failures) == ({"done": 1, "ready": 1}, 0)


def test_a_tenants_limits_are_changed_at_once(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(overlap="allow")
    for _ in range(4):
        bench.engine.actions.run_now("acme", "s")
    edited = bench.engine.tenants.edit("acme", name="Acme Ltd", limits={"concurrent_runs": 1})
    assert (edited.name, edited.limits) == ("Acme Ltd", {"concurrent_runs": 1})
    assert len(bench.claim()) == 1
    assert bench.engine.tenants.edit("acme", limits={"concurrent_runs": 3}).name == "Acme Ltd"
    assert len(bench.claim()) == 2
    with pytest.raises(InputError):
        bench.engine.tenants.edit("acme", limits={"nonsense": 1})
