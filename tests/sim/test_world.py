"""Seeded simulation on the real SQLite ledger: whatever is killed, every slot is accounted and happens at most once."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.sim.world import Broken, World

from lodger.engine.ledger import backfills, claims, clocks, commits, endings, leases, serial, stops
from lodger.engine.ledger.schema.scheduling import actions

SEEDS = range(12)
STEPS = 250


def live(folder: Path, seed: int, steps: int = STEPS) -> World:
    world = World(folder, seed)
    try:
        world.run(steps)
        world.settle()
    finally:
        world.close()
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_every_slot_is_accounted_and_every_effect_happens_at_most_once(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed)


def test_a_seed_tells_everything(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert live(tmp_path / "a", 3).trace == live(tmp_path / "b", 3).trace


def nothing(*_arguments: object, **_named: object) -> None:
    return None


def gapless(true: Callable[..., None]) -> Callable[..., None]:
    def insert(connection: Any, table: Any, rows: list[dict[str, Any]]) -> None:
        true(connection, table, [row for row in rows if row["slot_to"] is None])

    return insert


def moved_too_far(true: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def moved(row: Any, state: str, next_us: int | None, now_us: int, wake_us: int | None = None) -> dict[str, Any]:
        return true(row, state, next_us, now_us, wake_us) | {"accounted_us": now_us}

    return moved


def careless(true: Callable[..., Any]) -> Callable[..., Any]:
    def ended(connection: Any, row: Any, claim: Any, finished: Any, apply_effects: Any) -> Any:
        apply_effects(connection, claim, finished)
        return true(connection, row, claim, finished, apply_effects)

    return ended


#: A bug, where it is planted, and within how many seeds the simulation has to find it.
PLANTED: dict[str, tuple[object, str, Callable[[Any], Any], int]] = {
    "nobody releases the next held action": (endings.serial, "release", lambda _true: nothing, 4),
    "turns are not refreshed after a tick": (clocks.turns, "refresh", lambda _true: nothing, 2),
    "a node that lost its lease may still claim": (claims, "holds", lambda _true: lambda *_a: True, 4),
    "gap rows are not written": (clocks, "insert_absent", gapless, 4),
    "a refused or lost effect is stored all the same": (commits, "_ended", careless, 4),
    "a step back of the clock is believed": (clocks, "_moved", moved_too_far, 12),
    "the caps of tenants are forgotten": (claims, "_running", lambda true: true.where(False), 12),
    "cancelled attempts leave their actions running": (stops, "cancel_where", lambda _true: lambda *_a: 0, 12),
    "what lost nodes ran is not taken back": (leases, "_take_back", lambda _true: lambda *_a: [], 12),
    "jitter goes past the next slot": (clocks, "delay", lambda _true: lambda *_a: timedelta(days=2), 4),
    "what has expired is started": (claims, "expire", lambda _true: lambda *_a: [], 12),
    "the steps after the first are forgotten": (endings, "next_step", lambda _true: lambda *_a: None, 4),
    "a step is begun twice": (endings, "_step_on", lambda true: true.values(step=actions.c.step), 4),
    "a backfill runs what has run": (
        backfills,
        "chosen",
        lambda true: lambda slots, _states, before: true(slots, {}, before),
        12,
    ),
    "a slot starts beside a backfill": (clocks, "behind", lambda _true: lambda step: step, 12),
    "held actions are not told from others": (serial, "unfinished", lambda _true: lambda *_a: {}, 4),
}


@pytest.mark.parametrize("bug", list(PLANTED))
def test_a_planted_bug_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    place, name, plant, seeds = PLANTED[bug]
    monkeypatch.setattr(place, name, plant(getattr(place, name)))

    def look() -> None:
        for seed in range(seeds):
            live(tmp_path, seed)

    with pytest.raises(Broken, match="seed"):
        look()
