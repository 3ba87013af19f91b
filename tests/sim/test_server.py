"""The same world and laws on PostgreSQL, shorter: the statements differ there, and each of them may be the last."""

from pathlib import Path

import pytest
from tests.databases.fixtures import kind, url
from tests.sim.world import World

__all__ = ["kind", "url"]

STEPS = 150


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_slot_is_accounted_on_a_server_too(tmp_path: Path, url: str, seed: int) -> None:
    world = World(tmp_path, seed, url)
    try:
        world.run(STEPS)
        world.settle()
    finally:
        world.close()
