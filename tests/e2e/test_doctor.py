"""``lodger doctor`` on this host: every wall has a verdict, and what is missing a remedy."""

from tests.e2e.command import lodger

from lodger.sandbox.wall import WALLS


def test_every_wall_is_judged_and_what_is_missing_has_a_remedy() -> None:
    said = lodger("doctor", "--json")
    body = said.json
    assert said.code == (0 if body["ok"] else 1)
    assert {each["wall"] for each in body["walls"]} == {wall.name for wall in WALLS}
    for each in body["walls"]:
        assert each["state"] in {"stands", "available", "missing"}
        assert (each["state"] == "missing") == bool(each["remedy"])
    assert {"lodger", "python", "sqlite", "wasmtime", "tzdata", "guest"} <= set(body["versions"])
    assert body["cache"]["folder"]


def test_it_tells_people_whether_strangers_code_may_run() -> None:
    said = lodger("doctor")
    assert "seccomp" in said.out
    assert "Strangers' code may" in said.out


def test_what_stands_is_what_a_run_reports() -> None:
    standing = {each["wall"] for each in lodger("doctor", "--json").json["walls"] if each["state"] == "stands"}
    walls = lodger("exec", "-", "--json", stdin="return 1;").json["walls"]
    assert {wall for wall, stands in walls.items() if stands} <= standing


def test_probing_raises_nothing() -> None:
    states = {each["state"] for each in lodger("doctor", "--probe", "--json").json["walls"]}
    assert "stands" not in states
