"""What a wall is to people: its name, what it holds off, whether it can stand here, and how to get it when it cannot."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lodger.sandbox.walls import cgroup, landlock, namespaces_probe, seccomp

State = Literal["stands", "available", "missing"]


@dataclass(frozen=True, slots=True)
class Wall:
    """One isolation layer.

    Attributes:
        name: as reports and the zygote use it.
        holds_off: what a script cannot do because of it.
        remedy: how an operator gets it.
        probe: "" when this host can raise it, otherwise why not. Changes nothing.
    """

    name: str
    holds_off: str
    remedy: str
    probe: Callable[[], str]


def _always() -> str:
    return ""


def _seccomp() -> str:
    return "" if seccomp.available() else "no seccomp filter that kills the process on this kernel or architecture"


def _landlock() -> str:
    return "" if landlock.abi() else "the kernel has no Landlock, or it is not among its active security modules"


def _uid() -> str:
    return "" if os.geteuid() == 0 else "the engine is not root: workers share its uid"


_EVERYWHERE = "nothing to do: every Linux has it"

WALLS: tuple[Wall, ...] = (
    Wall("no_new_privs", "gaining privileges through set-uid programs", _EVERYWHERE, _always),
    Wall(
        "seccomp",
        "every system call but the few that a script's engine needs",
        "a kernel with CONFIG_SECCOMP_FILTER (4.14 or newer), on x86_64 or aarch64",
        _seccomp,
    ),
    Wall("rlimits", "memory, address space, files, processes and core dumps beyond the limits", _EVERYWHERE, _always),
    Wall(
        "cpu_timer",
        "CPU time beyond the limit, even when the parent is slow",
        "a kernel with CONFIG_POSIX_TIMERS",
        _always,
    ),
    Wall(
        "landlock",
        "opening any path, any TCP connection",
        "Linux 5.13 or newer with landlock among lsm=… on the kernel's command line",
        _landlock,
    ),
    Wall(
        "namespaces",
        "seeing other processes, the network, mounts, shared memory",
        "allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0), or be root",
        namespaces_probe.missing,
    ),
    Wall(
        "root",
        "any file at all: the root is empty and read-only",
        "get the mount namespace: see namespaces",
        namespaces_probe.no_mount,
    ),
    Wall(
        "uid",
        "touching what belongs to the engine's user",
        "run the engine as root: each zygote then gets a uid of its own",
        _uid,
    ),
    Wall("undumpable", "reading a worker's memory from a process of the same user", _EVERYWHERE, _always),
    Wall("death_signal", "a worker that outlives its zygote", _EVERYWHERE, _always),
    Wall("oom", "the kernel taking the engine instead of a worker when memory is short", "a writable /proc", _always),
    Wall(
        "cgroup",
        "memory of all workers together beyond the node's budget, page tables and sockets included; number of processes",
        "let the engine make groups of cgroup v2 with the controllers memory and pids: Delegate=yes and DelegateSubgroup=engine in its"
        " systemd unit, or a folder that it may write and that holds no process itself in LODGER_CGROUP",
        cgroup.missing,
    ),
)
