"""The control group around all workers of this process: created with the first zygote, deleted with the last; one inner group per zygote.

If groups cannot be created, the reason is reported and workers run without; the limits of each attempt still apply.
"""

import itertools
import os
import threading
from pathlib import Path

from lodger.sandbox.limits import MIB
from lodger.sandbox.walls.cgroup import CONTROLLERS, Group, NoGroup, delegated_folder, prepare

#: Memory of zygotes, launchers and waiting workers, beside the attempts.
_BESIDE_BYTES = 256 * MIB
_numbers = itertools.count(1)


class WorkerCgroup:
    """Control groups of zygotes.

    Args:
        folder: of cgroup v2, in which groups may be created; None for the one that systemd delegated.
        memory_bytes: of all attempts together.
        processes: of all zygotes together, with their launchers and workers.

    Attributes:
        controllers: that the groups must have.
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

    def create_leaf(self) -> Group:
        """Return a new group for one zygote; :meth:`close` deletes it. Raises NoGroup with the reason."""
        with self._lock:
            outer = self._outer or self._create_outer()
            try:
                leaf = outer.create_subgroup(f"zygote-{next(_numbers)}")
            except NoGroup:
                if not self._zygotes:
                    outer.remove()
                    self._outer = None
                raise
            self._zygotes += 1
            return leaf

    def close(self, leaf: Group) -> None:
        """Kill the processes of a zygote's group and delete it, and the outer one after the last. Blocks briefly."""
        leaf.remove()
        with self._lock:
            self._zygotes -= 1
            if not self._zygotes and self._outer is not None:
                self._outer.remove()
                self._outer = None

    def _create_outer(self) -> Group:
        """Create the group around the groups of all zygotes, with its limits. Raises NoGroup."""
        folder = self.folder or delegated_folder()
        prepare(folder, self.controllers)
        outer = Group(folder / f"lodger-{os.getpid()}-{next(_numbers)}")
        if self.controllers:
            outer.set_limits(self._memory_bytes, self._processes)
        self._outer = outer
        return outer
