"""What the settings say of walls, as the sandbox takes it: which must stand, and the control group around all workers."""

from typing import Any

from lodger.engine.core.settings import Settings
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup

#: Processes of the zygotes, their launchers and idle workers, beside the attempts.
_BESIDE = 256


def demanded(settings: Settings) -> dict[str, Any]:
    """Give what a pool is told of the walls that must stand."""
    return {"profile": settings.profile, "minimum": settings.walls_minimum}


def worker_cgroup(settings: Settings) -> WorkerCgroup:
    """Give the control group of a node's workers; it is made with the first zygote, where there is a place for it."""
    return WorkerCgroup(
        settings.cgroup, memory_bytes=settings.memory_reserved_bytes, processes=2 * settings.slots + _BESIDE
    )
