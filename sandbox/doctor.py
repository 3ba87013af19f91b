"""Report of the walls: which are active, available or missing on this host, how to get the missing ones, and the check of the minimum."""

import errno
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from lodger.sandbox import advisories
from lodger.sandbox.errors import SandboxError, WallUnavailable
from lodger.sandbox.runtimes import native_libraries
from lodger.sandbox.walls import cgroup, landlock, seccomp
from lodger.sandbox.walls.libc import syscall
from lodger.sandbox.walls.namespaces import FLAGS
from lodger.sandbox.walls.syscalls import NUMBER

#: Program of a child process that enters the namespaces, which cannot be undone, and prints their names.
_ENTER_NAMESPACES = """
import sys
package = type(sys)("lodger")
package.__path__ = [sys.argv[1]]
sys.modules["lodger"] = package
import os
from lodger.sandbox.walls import namespaces
outer = namespaces.enter(("pid",)) if os.geteuid() == 0 else ()
names = ("user", "pid", *namespaces.INNER)
print(*namespaces.enter(tuple(name for name in names if name not in outer)), *outer)
"""

State = Literal["active", "available", "missing"]


@dataclass(frozen=True, slots=True)
class Wall:
    """One isolation layer.

    Attributes:
        name: in reports and in the zygote's report.
        holds_off: the attack that it prevents.
        remedy: how an operator gets it.
        probe: returns "" if this host can raise it, otherwise the reason. Changes nothing.
    """

    name: str
    holds_off: str
    probe: Callable[[], str]
    remedy: str = "nothing to do: every Linux kernel has it"


def _always() -> str:
    """Return "": this wall can always be raised, on every host."""
    return ""


def _seccomp() -> str:
    """Return why system call filters are missing; "" if they are there."""
    return "" if seccomp.available() else "this kernel or architecture has no seccomp filter that kills the process"


def _landlock() -> str:
    """Return why Landlock is missing; "" if it is there."""
    return "" if landlock.abi() else "the kernel has no Landlock, or it is not among its active security modules"


def _uid() -> str:
    """Return why workers have no user id of their own; "" if they have."""
    return "" if os.geteuid() == 0 else "the engine is not root: workers share its uid"


def _entered_namespaces() -> frozenset[str]:
    """Return the namespaces that a child process can enter on this host."""
    package = Path(__file__).resolve().parents[1]
    answer = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-I", "-S", "-E", "-c", _ENTER_NAMESPACES, str(package)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    return frozenset(answer.stdout.split())


def _namespaces() -> str:
    """Return the namespaces that cannot be entered, in words; "" if all can."""
    missing = FLAGS.keys() - _entered_namespaces()
    return "missing: " + " ".join(sorted(missing)) if missing else ""


def _mount_namespace() -> str:
    """Return why there is no empty root; "" if a mount namespace can be entered."""
    return "" if "mount" in _entered_namespaces() else "needs a mount namespace"


_PROBES = {
    "seccomp": _seccomp,
    "landlock": _landlock,
    "namespaces": _namespaces,
    "root": _mount_namespace,
    "uid": _uid,
    "cgroup": cgroup.missing,
}
WALLS = tuple(
    Wall(name, probe=_PROBES.get(name, _always), **texts)
    for name, texts in tomllib.loads((files("lodger.sandbox") / "walls.toml").read_text("utf-8")).items()
)

#: Walls that profile ``untrusted`` always requires.
INDISPENSABLE = ("no_new_privs", "seccomp", "rlimits", "cpu_timer")
#: Walls that count as layers, and how many of them profile ``untrusted`` requires.
LAYERS = ("no_new_privs", "seccomp", "rlimits", "landlock", "namespaces", "cgroup")
MINIMUM = 4
PROFILES = ("untrusted", "trusted")


#: System calls that every worker needs: the first Linux version with them, and arguments for which they return EINVAL.
NEEDED_CALLS = {"close_range": ("5.9", (1, 0)), "pidfd_open": ("5.3", (0, 0))}


@dataclass(frozen=True, slots=True)
class Finding:
    """One wall on this host.

    Attributes:
        state: ``active`` around running workers, ``available`` if it can be raised, ``missing`` otherwise.
        why: the reason if missing.
        remedy: how to get it if missing.
    """

    wall: str
    state: State
    holds_off: str
    why: str = ""
    remedy: str = ""


def _layers(standing: dict[str, str]) -> int:
    """Count the layers of walls that are active around workers."""
    return sum(not standing.get(name, "not raised") for name in LAYERS)


class Doctor:
    """Checks of the walls on this host."""

    @staticmethod
    def examine(standing: dict[str, str] | None = None) -> tuple[Finding, ...]:
        """Return the state of every wall. ``standing`` is a zygote's report: maps a wall to "" or to the reason why it is not active."""
        findings = []
        for wall in WALLS:
            if standing is not None and wall.name in standing:
                why = standing[wall.name]
                state: State = "missing" if why else "active"
            else:
                why = wall.probe()
                state = "missing" if why else "available"
            findings.append(Finding(wall.name, state, wall.holds_off, why, wall.remedy if why else ""))
        return tuple(findings)

    @staticmethod
    def as_json(
        findings: tuple[Finding, ...], profile: str = "untrusted", minimum: int | None = None
    ) -> dict[str, Any]:
        """Return the object that ``lodger doctor --json`` prints."""
        standing = {finding.wall: finding.why for finding in findings}
        verdict: dict[str, Any] = {"profile": profile, "ok": True, "layers": _layers(standing)}
        verdict["minimum"] = MINIMUM if minimum is None else minimum
        try:
            Doctor.require_calls()
            Doctor.require(profile, standing, minimum=minimum)
        except WallUnavailable as refusal:
            verdict |= {"ok": False, "problem": refusal.as_dict()}
        libraries: tuple[native_libraries.NativeLibrary, ...] = ()
        try:
            libraries = native_libraries.examine()
            if profile == "untrusted" and (unknown := [each for each in libraries if not each.published_as]):
                raise native_libraries.unknown_library(unknown[0])
        except SandboxError as refusal:
            verdict |= {"ok": False, "problem": refusal.as_dict()}
        listed = [asdict(library) for library in libraries]
        known = {"checked": advisories.checked(), "engines": [asdict(each) for each in advisories.examine()]}
        return {**verdict, "walls": [asdict(each) for each in findings], "libraries": listed, "advisories": known}

    @staticmethod
    def require_calls() -> None:
        """Check that the kernel has the system calls that every worker needs.

        Raises:
            WallUnavailable: kernel_too_old.
        """
        for name, (since, arguments) in NEEDED_CALLS.items():
            try:
                syscall(NUMBER[name], *arguments)
            except OSError as answer:
                if answer.errno in (errno.ENOSYS, errno.EPERM):
                    raise WallUnavailable(
                        "kernel_too_old",
                        f"this host has no system call {name}, which every worker needs",
                        why=f"kernel {os.uname().release} lacks it, or a filter of this process denies it: {answer.strerror}",
                        fix=f"use Linux {since} or newer; in a container, allow {name} in its seccomp profile",
                    ) from None

    @staticmethod
    def require(profile: str, standing: dict[str, str], *, minimum: int | None = None) -> None:
        """Check that the walls that a profile requires are active.

        Args:
            minimum: number of layers required for profile ``untrusted``; None for :data:`MINIMUM`.

        Raises:
            WallUnavailable: a wall is missing, or there are too few layers.
        """
        wanted = MINIMUM if minimum is None else minimum
        if profile not in PROFILES:
            raise WallUnavailable(
                "profile_unknown", f"there is no profile {profile!r}", fix="use one of: " + ", ".join(PROFILES)
            )
        if profile == "trusted":
            return
        remedies = {wall.name: wall.remedy for wall in WALLS}
        for name in INDISPENSABLE:
            why = standing.get(name, "not raised")
            if why:
                raise WallUnavailable("wall_missing", f"the wall {name} is missing", why=why, fix=remedies[name])
        if all(standing.get(name, "not raised") for name in ("uid", "namespaces", "landlock")):
            raise WallUnavailable(
                "wall_missing",
                "the wall landlock is missing",
                why="workers share the engine's user, and without namespaces only Landlock separates them",
                fix=f"{remedies['landlock']}; or {remedies['namespaces']}",
            )
        lacking = [name for name in LAYERS if standing.get(name, "not raised")]
        if _layers(standing) < wanted:
            raise WallUnavailable(
                "too_few_walls",
                f"only {_layers(standing)} of {len(LAYERS)} walls are active, but profile untrusted requires {wanted}",
                why="; ".join(f"{name}: {standing.get(name, 'not raised')}" for name in lacking),
                fix="; ".join(remedies[name] for name in lacking),
            )
