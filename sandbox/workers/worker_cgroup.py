"""The control group around all workers of this process: created with the first zygote, deleted with the last.

If the group cannot be created, the reason is reported and workers run without; the limits of each attempt still apply.
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
    """The control group of all zygotes.

    Args:
        folder: of cgroup v2, in which groups may be created; None for the one that systemd delegated.
        memory_bytes: of all attempts together.
        processes: of all zygotes together, with their launchers and workers.

    Attributes:
        controllers: that the group must have.
    """

    controllers: tuple[str, ...] = CONTROLLERS

    def __init__(self, folder: Path | None = None, *, memory_bytes: int, processes: int = 4096) -> None:
        self.folder = folder
        self._memory_bytes = memory_bytes + _BESIDE_BYTES
        self._processes = processes
        self._lock = threading.Lock()
        self._group: Group | None = None
        self._zygotes = 0

    def join(self, launcher: int) -> None:
        """Put the launcher of a zygote, and so all its children, into the group. Raises NoGroup with the reason."""
        with self._lock:
            group = self._group or self._create()
            try:
                group.add_process(launcher)
            except NoGroup:
                if not self._zygotes:
                    group.remove()
                raise
            self._group = group
            self._zygotes += 1

    def leave(self) -> None:
        """Note the end of a zygote in the group; the last one deletes it, and kills what is left in it. Blocks briefly."""
        with self._lock:
            self._zygotes -= 1
            if not self._zygotes and self._group is not None:
                self._group.remove()
                self._group = None

    def _create(self) -> Group:
        """Return a new group with its limits. Raises NoGroup."""
        folder = self.folder or delegated_folder()
        prepare(folder, self.controllers)
        group = Group(folder / f"lodger-{os.getpid()}-{next(_numbers)}")
        if self.controllers:
            group.set_limits(self._memory_bytes, self._processes)
        return group
