"""The command ``python -m tests.sim``."""

import io
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.e2e import ready
from tests.e2e.ready import lodger
from tests.sim.__main__ import main
from tests.sim.simulator.plan import SHAPES, Shape, draw_plan

sim = partial(lodger, module="tests.sim")


@pytest.fixture(scope="session", autouse=True)
def begun() -> None:
    """Prepare the template database before the first test."""
    ready.waiting()


def test_a_world_is_played_and_told(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(draw_plan(4, Shape(seconds=5)).as_json())
    done = sim("--plan", plan)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("world 4: ")
    body = sim("--plan", plan, "--json").json
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
        assert sim(*wrong).code == 2, wrong


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    for text in ("{}", "[1]", "no", json.dumps({"seed": 1, "shape": {"moons": 3}, "events": []})):
        (tmp_path / "p").write_text(text)
        done = sim("--plan", tmp_path / "p", "--json")
        assert done.code == 2
        assert done.json["error"]["code"] == "plan_unreadable"


def test_a_pipe_is_told_each_world_when_it_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is flushed after each world, not when a buffer is full."""
    flushed = []

    class Pipe(io.StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    monkeypatch.setitem(SHAPES, "small", Shape(seconds=1))
    monkeypatch.setattr(sys, "stdout", Pipe())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["--seeds", "1-2", "--jobs", "1"]) == 0
    first = next(said for said in flushed if said)
    assert first.startswith("world 1: ")
    assert first.count("\n") == 1
