"""Control groups, version 2: one group around all workers of an engine, with its memory and its number of processes bounded.

The limits of one attempt stand without it. It bounds what they leave to all together, and ends with one word whatever is in it. Groups are
made only where somebody gave us a place for them: in a folder that the operator names, or that systemd delegated (Delegate=yes).
Everything here is the parent's side.
"""

import contextlib
import errno
import os
import time
from pathlib import Path

#: Without these a group bounds nothing.
CONTROLLERS = ("memory", "pids")
_REMOVAL_S = 2.0


class NoGroup(Exception):
    """There is no place for groups here; the text says why."""


def mounted() -> Path:
    """Give where cgroup v2 is mounted. Raises NoGroup."""
    try:
        with Path("/proc/self/mountinfo").open() as mounts:
            for line in mounts:
                place, _, kind = line.partition(" - ")
                if kind.startswith("cgroup2 "):
                    return Path(place.split()[4])
    except OSError:
        pass
    raise NoGroup("cgroup v2 is not mounted")


def own() -> Path:
    """Give this process's own group. Raises NoGroup."""
    root = mounted()
    try:
        with Path("/proc/self/cgroup").open() as groups:
            path = next((line.strip()[3:] for line in groups if line.startswith("0::")), None)
    except OSError:
        path = None
    if path is None:
        raise NoGroup("this process is in no group of cgroup v2")
    return root / path.lstrip("/")


def delegated() -> Path:
    """Give the folder that systemd delegated to this process: its own group or the one above (DelegateSubgroup=). Raises NoGroup."""
    group = own()
    for folder in (group, group.parent):
        for attribute in ("user.delegate", "trusted.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(folder, attribute) == b"1":
                    return folder
    raise NoGroup("no group is delegated to this process")


def prepare(folder: Path, controllers: tuple[str, ...] = CONTROLLERS) -> None:
    """Let a folder's groups have the controllers. Raises NoGroup with the reason why they cannot."""
    try:
        offered = set((folder / "cgroup.controllers").read_text().split())
        enabled = set((folder / "cgroup.subtree_control").read_text().split())
    except OSError as problem:
        raise NoGroup(f"{folder} is no group of cgroup v2: {problem.strerror}") from None
    lacking = [name for name in controllers if name not in offered]
    if lacking:
        raise NoGroup(f"{folder} does not offer the controllers {' '.join(lacking)}")
    wanted = [f"+{name}" for name in controllers if name not in enabled]
    if not wanted:
        return
    try:
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))
    except OSError as problem:
        why = "it holds processes itself" if problem.errno == errno.EBUSY else str(problem.strerror)
        raise NoGroup(f"{folder} cannot give controllers to groups in it: {why}") from None


class Group:
    """A group made by this process.

    Args:
        place: its folder, whose parent must be there.

    Raises:
        NoGroup: it cannot be made.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        try:
            place.mkdir(mode=0o755)
        except OSError as problem:
            raise NoGroup(f"{place} cannot be made: {problem.strerror}") from None

    def bound(self, memory_bytes: int, processes: int) -> None:
        """Bound everything below. Raises NoGroup, when nothing is left of the group."""
        try:
            for name, value in (("memory.max", memory_bytes), ("memory.swap.max", 0), ("pids.max", processes)):
                if name != "memory.swap.max" or (self.place / name).exists():  # a kernel without swap has none
                    (self.place / name).write_text(str(value))
        except OSError as problem:
            self.remove()
            raise NoGroup(f"{self.place} takes no limits: {problem.strerror}") from None

    def inside(self, name: str) -> "Group":
        """Make a group in this one. Raises NoGroup."""
        return Group(self.place / name)

    def admit(self, pid: int) -> None:
        """Move a process in; whatever it makes is in it too. Raises NoGroup."""
        try:
            (self.place / "cgroup.procs").write_text(str(pid))
        except OSError as problem:
            raise NoGroup(f"{self.place} takes no process: {problem.strerror}") from None

    def processes(self) -> list[int]:
        """Give the processes in it."""
        try:
            return [int(line) for line in (self.place / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def remove(self) -> None:
        """End whatever is in it, and take it away; safe twice."""
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
                time.sleep(0.001)  # the last of it is dying
            else:
                return


def missing() -> str:
    """Give "" when a delegated folder takes groups with memory and pids controllers, otherwise why not. Changes nothing."""
    try:
        folder = delegated()
        offered = set((folder / "cgroup.controllers").read_text().split())
    except NoGroup as reason:
        return str(reason)
    except OSError as problem:
        return f"the delegated group cannot be read: {problem.strerror}"
    lacking = set(CONTROLLERS) - offered
    if lacking:
        return "controllers not delegated: " + " ".join(sorted(lacking))
    return "" if os.access(folder, os.W_OK) else "the delegated group is not writable"
