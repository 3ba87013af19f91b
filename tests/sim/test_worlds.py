"""Simulated worlds of real nodes on the real ledger: every law holds under all faults.

``LODGER_SIM=500 pytest tests/sim/test_worlds.py`` plays 500 worlds; ``python -m tests.sim --minutes 10`` runs without pytest.
"""

import os
from dataclasses import replace
from functools import cache

import pytest
from tests.sim.planted_bugs import PlantedBug
from tests.sim.simulator.plan import Plan, Shape, draw_plan, read
from tests.sim.simulator.proof import Played, play
from tests.sim.simulator.world import World

#: Worlds that together contain every operation and fault.
WORLDS = (42, 54)
SEEDS = range(1, int(os.environ["LODGER_SIM"]) + 1) if "LODGER_SIM" in os.environ else WORLDS
SHAPE = Shape(seconds=12, trouble=3.5)
# Takes seconds; the timeout is for busy machines.
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(400)]


@cache
def played(seed: int) -> Played:
    return play(draw_plan(seed, SHAPE))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_law_holds(seed: int) -> None:
    world = played(seed)
    assert world.law is None, f"{world.law}: {world.detail}\n" + "\n".join(world.recent)
    assert world.figures["slots"] > 50, "a world in which nothing happens proves nothing"


def test_the_worlds_hold_what_they_promise() -> None:
    """The worlds contain crashes, database errors, lost leases, failed attempts, retries, steps and gaps."""
    seen: dict[str, int] = {}
    for seed in WORLDS:
        for name, number in played(seed).figures.items():
            seen[name] = seen.get(name, 0) + number
    assert seen["fault crash"] >= 5
    assert seen["fault refuse"] >= 5
    assert seen["gaps"] > 30
    assert seen["attempts"] > seen["done"] > 150, "some have to fail"
    assert seen["looks in quiet"] >= 5, "the laws of time are looked at too"
    operations = {name.removeprefix("verb ") for name in seen if name.startswith("verb ")}
    assert operations >= {
        "create", "edit", "pause", "resume", "delete", "run_now", "once", "backfill", "replay", "cancel", "put_script", "suspend",
        "resume_tenant", "recreate", "crash", "refuse", "freeze", "slow", "stop", "step_clock", "sleep",
    }  # fmt: skip


def history(plan: Plan) -> list[str]:
    with World(plan) as world:
        world.run()
        return [f"{at_s} {process_name} {what}" for at_s, process_name, what in world.recent] + [
            str(sorted(world.figures.items()))
        ]


def test_a_seed_tells_everything() -> None:
    plan = draw_plan(3, Shape(seconds=2, schedules=4, tenants=2))
    assert history(plan) == history(plan)


def test_a_plan_is_text_and_back() -> None:
    plan = draw_plan(5)
    assert read(plan.as_json()) == plan
    assert plan != draw_plan(6)


def test_a_dense_world_holds_too() -> None:
    world = play(draw_plan(1, Shape(seconds=4, schedules=60, tenants=10, job_s=0.05)))
    assert world.law is None, f"{world.law}: {world.detail}"
    assert world.figures["slots"] > 100


def test_a_world_in_which_more_comes_due_than_its_nodes_can_do_comes_to_rest() -> None:
    """Every tick is full and slots are late; the oldest are ticked first, until none is left."""
    plan = draw_plan(1, Shape(seconds=45, schedules=60, tenants=1, trouble=0.0, job_s=0.4, slots=3000, swift=True))
    plan = replace(plan, settings=plan.settings | {"tick_batch": 2, "concurrent_runs": 1})
    world = play(plan)
    assert world.law is None, f"{world.law}: {world.detail}\n" + "\n".join(world.recent)
    assert world.figures["looks in overload"] > 2
    assert world.figures["virtual_s"] > 200, "it took longer than worlds that keep up are given"
    newest = PlantedBug(
        "the newest first",
        r"(FROM lodger_schedule_clock .*ORDER BY lodger_schedule_clock.next_at)(?! DESC)",
        r"\1 DESC",
        1,
    )
    assert play(plan, prepare=newest.install).law == "what is due is ticked"
