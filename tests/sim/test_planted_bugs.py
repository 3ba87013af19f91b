"""Every planted bug is found within its number of worlds and reduced to a short list of events."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.sim.planted_bugs import PLANTS, PlantedBug
from tests.sim.simulator.plan import Shape, draw_plan
from tests.sim.simulator.proof import Played, play, shortened

# Takes seconds; the timeout is for busy machines.
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]


def found(plant: PlantedBug) -> Played | None:
    """Return the first world that breaks a law because of the bug, or None."""
    for seed in plant.seeds():
        played = play(draw_plan(seed, plant.shape), prepare=plant.install)
        if played.law is not None:
            return played
    return None


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_found(plant: PlantedBug) -> None:
    plant = replace(plant)
    played = found(plant)
    assert plant.hits, "the statement that it sits in has changed: plant it anew"
    assert played is not None, f"not found in {plant.within} worlds"
    assert played.law is not None
    assert played.law.startswith(plant.law)
    assert played.recent, "what came before is told"


def test_the_documentation_shows_each() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "proof.md").read_text()
    shown = [line for line in text.splitlines() if "| SQL |" in line or "| order |" in line]
    assert shown == [plant.row() for plant in PLANTS]


def test_what_broke_a_law_is_reduced_to_few_events() -> None:
    plant = replace(next(each for each in PLANTS if each.name == "the next held action is not released"))
    plan = draw_plan(1, Shape(seconds=3, schedules=6))
    played = play(plan, prepare=plant.install)
    assert played.law is not None
    short = shortened(plan, played, 300, prepare=plant.install)
    assert short.whole
    assert len(short.plan.events) <= 4 < len(plan.events)
    assert short.broken.law == played.law
    again = play(short.plan, prepare=plant.install)
    assert again.law == played.law
    assert play(short.plan).law is None, "without the bug it holds"
