"""The control group around all workers of this process: made with the first zygote, gone with the last, a group of its own for each.

Where there is no place for groups, the reason is told and everything runs without: the limits of each attempt stand alone then.
"""

import itertools
import os
import threading
from pathlib import Path

from lodger.sandbox.limits import MIB
from lodger.sandbox.walls.cgroup import CONTROLLERS, Group, NoGroup, delegated, prepare

#: What a zygote, its launcher and its waiting workers hold beside the attempts.
_BESIDE_BYTES = 256 * MIB
_numbers = itertools.count(1)


class WorkerCgroup:
    """Where zygotes are put.

    Args:
        folder: a folder of cgroup v2 in which groups may be made; None for the one that systemd delegated.
        memory_bytes: of all attempts together.
        processes: of all zygotes together, with their launchers and workers.

    Attributes:
        controllers: what the groups must have.
    """

    controllers: tuple[str, ...] = CONTROLLERS

    def __init__(
        self,
        folder: Path | None = None,
        *,
        memory_bytes: int,
        processes: int = 4096,
    ) -> None:
        self.folder = folder
        self._memory_bytes = memory_bytes + _BESIDE_BYTES
        self._processes = processes
        self._lock = threading.Lock()
        self._outer: Group | None = None
        self._zygotes = 0

    def leaf(self) -> Group:
        """Make a group for one zygote; :meth:`close` takes it away. Raises NoGroup with the reason why there is none."""
        with self._lock:
            outer = self._outer or self._made()
            try:
                leaf = outer.inside(f"zygote-{next(_numbers)}")
            except NoGroup:
                if not self._zygotes:
                    outer.remove()
                    self._outer = None
                raise
            self._zygotes += 1
            return leaf

    def close(self, leaf: Group) -> None:
        """Take a zygote's group away with everything in it, and the outer one after the last; blocks for moments."""
        leaf.remove()
        with self._lock:
            self._zygotes -= 1
            if not self._zygotes and self._outer is not None:
                self._outer.remove()
                self._outer = None

    def _made(self) -> Group:
        folder = self.folder or delegated()
        prepare(folder, self.controllers)
        outer = Group(folder / f"lodger-{os.getpid()}-{next(_numbers)}")
        if self.controllers:
            outer.bound(self._memory_bytes, self._processes)
        self._outer = outer
        return outer
