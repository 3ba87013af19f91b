"""Control groups, version 2: a group around all workers of an engine that bounds their memory and number of processes.

The limits of each attempt work without it; the group bounds all attempts together and can kill all of its processes at once. Groups are
created only in a folder that the operator names, or that systemd delegated (Delegate=yes). Used by the parent process only.
"""

import contextlib
import errno
import os
import time
from pathlib import Path

#: Controllers that a group needs.
CONTROLLERS = ("memory", "pids")
_REMOVAL_S = 2.0


class NoGroup(Exception):
    """A group cannot be created or used; the text says why."""


def mount_point() -> Path:
    """Return the mount point of cgroup v2. Raises NoGroup."""
    try:
        with Path("/proc/self/mountinfo").open() as mounts:
            for line in mounts:
                place, _, kind = line.partition(" - ")
                if kind.startswith("cgroup2 "):
                    return Path(place.split()[4])
    except OSError:
        pass
    raise NoGroup("cgroup v2 is not mounted")


def own_group() -> Path:
    """Return the folder of this process's own group. Raises NoGroup."""
    root = mount_point()
    try:
        with Path("/proc/self/cgroup").open() as groups:
            path = next((line.strip()[3:] for line in groups if line.startswith("0::")), None)
    except OSError:
        path = None
    if path is None:
        raise NoGroup("this process is in no group of cgroup v2")
    return root / path.lstrip("/")


def delegated_folder() -> Path:
    """Return the folder that systemd delegated: this process's group or its parent (DelegateSubgroup=). Raises NoGroup."""
    group = own_group()
    for folder in (group, group.parent):
        for attribute in ("user.delegate", "trusted.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(folder, attribute) == b"1":
                    return folder
    raise NoGroup("no group is delegated to this process")


def prepare(folder: Path, controllers: tuple[str, ...] = CONTROLLERS) -> None:
    """Enable the controllers for the groups in a folder. Raises NoGroup with the reason."""
    try:
        offered = set((folder / "cgroup.controllers").read_text().split())
        enabled = set((folder / "cgroup.subtree_control").read_text().split())
    except OSError as problem:
        raise NoGroup(f"{folder} is not a group of cgroup v2: {problem.strerror}") from None
    lacking = [name for name in controllers if name not in offered]
    if lacking:
        raise NoGroup(f"{folder} does not offer the controllers {' '.join(lacking)}")
    wanted = [f"+{name}" for name in controllers if name not in enabled]
    if not wanted:
        return
    try:
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))
    except OSError as problem:
        why = "it contains processes" if problem.errno == errno.EBUSY else str(problem.strerror)
        raise NoGroup(f"the controllers of {folder} cannot be enabled for groups inside it: {why}") from None


class Group:
    """A group created by this process.

    Args:
        place: its folder; the parent folder must exist.

    Raises:
        NoGroup: it cannot be created.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        try:
            place.mkdir(mode=0o755)
        except OSError as problem:
            raise NoGroup(f"the group {place} cannot be created: {problem.strerror}") from None

    def set_limits(self, memory_bytes: int, processes: int) -> None:
        """Limit memory and number of processes. Raises NoGroup after removing the group."""
        try:
            for name, value in (("memory.max", memory_bytes), ("memory.swap.max", 0), ("pids.max", processes)):
                if name != "memory.swap.max" or (self.place / name).exists():  # a kernel without swap has none
                    (self.place / name).write_text(str(value))
        except OSError as problem:
            self.remove()
            raise NoGroup(f"the limits of {self.place} cannot be set: {problem.strerror}") from None

    def add_process(self, pid: int) -> None:
        """Move a process into the group; its children will be in it too. Raises NoGroup."""
        try:
            (self.place / "cgroup.procs").write_text(str(pid))
        except OSError as problem:
            raise NoGroup(f"no process can be moved to {self.place}: {problem.strerror}") from None

    def processes(self) -> list[int]:
        """Return the process ids in the group."""
        try:
            return [int(line) for line in (self.place / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def remove(self) -> None:
        """Kill all processes in the group and delete it; safe to call twice."""
        end = time.monotonic() + _REMOVAL_S
        while True:
            with contextlib.suppress(OSError):
                (self.place / "cgroup.kill").write_text("1")
            try:
                self.place.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > end:
                    return
                time.sleep(0.001)  # the last process is still exiting
            else:
                return


def missing() -> str:
    """Return "" if groups with the controllers can be created in a delegated folder, otherwise the reason. Changes nothing."""
    try:
        folder = delegated_folder()
        offered = set((folder / "cgroup.controllers").read_text().split())
    except NoGroup as reason:
        return str(reason)
    except OSError as problem:
        return f"the delegated group cannot be read: {problem.strerror}"
    lacking = set(CONTROLLERS) - offered
    if lacking:
        return "controllers not delegated: " + " ".join(sorted(lacking))
    return "" if os.access(folder, os.W_OK) else "the delegated group is not writable"
