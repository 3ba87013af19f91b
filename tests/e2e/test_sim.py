"""``lodger sim`` as people run it."""

import json
from pathlib import Path

from tests.e2e.ready import lodger

from lodger.engine.sim.plan import Shape, drawn


def test_a_world_is_played_and_told(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(drawn(4, Shape(seconds=5)).as_json())
    done = lodger("sim", "--plan", plan)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("world 4: ")
    body = lodger("sim", "--plan", plan, "--json").json
    assert (body["seed"], body["law"]) == (4, None)


def test_what_cannot_be_played() -> None:
    for wrong in (
        ("--seeds", "5..1"),
        ("--seeds", "all"),
        ("--seeds", "3-1"),
        ("--seeds", "1-"),
        ("--jobs", "0"),
        ("--plan", "nowhere.json"),
        ("--shape", "huge"),
        ("--minutes", "0"),
    ):
        assert lodger("sim", *wrong).code == 2, wrong


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    for text in ("{}", "[1]", "no", json.dumps({"seed": 1, "shape": {"moons": 3}, "happenings": []})):
        (tmp_path / "p").write_text(text)
        done = lodger("sim", "--plan", tmp_path / "p", "--json")
        assert done.code == 2
        assert done.json["error"]["code"] == "plan_unreadable"
