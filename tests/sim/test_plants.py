"""Bugs that are planted are found, each within its number of worlds, and told by a short list of happenings."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.sim.plants import PLANTS, Plant
from tests.sim.simulator.plan import Shape, drawn
from tests.sim.simulator.proof import Played, play, shortened

# Seconds of work: the bound is for machines that are busy with other things.
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]


def found(plant: Plant) -> Played | None:
    """Return the first world that breaks a law because of the bug, or None."""
    for seed in plant.seeds():
        played = play(drawn(seed, plant.shape), tampered=plant.into)
        if played.law is not None:
            return played
    return None


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_found(plant: Plant) -> None:
    plant = replace(plant)
    played = found(plant)
    assert plant.hits, "the statement that it sits in has changed: plant it anew"
    assert played is not None, f"not found in {plant.within} worlds"
    assert played.law is not None
    assert played.law.startswith(plant.law)
    assert played.lately, "what came before is told"


def test_there_are_enough() -> None:
    assert len(PLANTS) >= 40
    assert sum(plant.becomes is None for plant in PLANTS) >= 10


def test_the_documentation_shows_each() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "proof.md").read_text()
    shown = [line for line in text.splitlines() if "| SQL |" in line or "| order |" in line]
    assert shown == [plant.row() for plant in PLANTS]


def test_what_broke_a_law_is_told_by_few_happenings() -> None:
    plant = replace(next(each for each in PLANTS if each.name == "the next held action is not released"))
    plan = drawn(1, Shape(seconds=6, schedules=10))
    played = play(plan, tampered=plant.into)
    assert played.law is not None
    short = shortened(plan, played, 300, tampered=plant.into)
    assert short.whole
    assert len(short.plan.happenings) <= 4 < len(plan.happenings)
    assert short.broken.law == played.law
    again = play(short.plan, tampered=plant.into)
    assert again.law == played.law
    assert play(short.plan).law is None, "without the bug it holds"
