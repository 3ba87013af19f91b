"""Inspection of a waiting worker through /proc, from outside."""

import os
import signal
from pathlib import Path

from lodger.escape.invariants import children, status_of

_NAMESPACES = ("user", "pid", "net", "mnt", "ipc", "uts")


def inspect_worker(pid: int) -> dict[str, str]:
    """Return facts about a process by name, without those that this user may not read."""
    place = Path(f"/proc/{pid}")
    facts: dict[str, str] = {}
    for part in (_status, _limits, _files, _mapped, _elsewhere):
        try:
            facts.update(part(place))
        except OSError:
            continue
    return facts


#: Text in the source of a script that occurs nowhere else in memory.
NEEDLE = b"needle-of-tenant-one-7f3a9c"
_MAX_MAPPED = 1 << 30


def residue(pid: int) -> dict[str, str]:
    """Search the memory of a worker, its zygote and its siblings for text of the tenant's script; return where it was found."""
    zygote = int(status_of(pid)["PPid"])
    if not _holds(pid, NEEDLE):
        return {}
    siblings = [other for other in children(zygote) if other != pid]
    found = ["the zygote"] if _holds(zygote, NEEDLE) else []
    found += ["another worker" for other in siblings if _holds(other, NEEDLE)]
    return {"residue": " and ".join(found) or "none"}


def _holds(pid: int, needle: bytes) -> bool:
    """Whether the memory of a process contains some bytes."""
    try:
        rows = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except OSError:
        return False
    try:
        for place, rights, *_ in rows:
            start, end = (int(bound, 16) for bound in place.split("-"))
            if "r" in rights and end - start < _MAX_MAPPED:
                try:
                    if needle in os.pread(memory, end - start, start):
                        return True
                except OSError:
                    continue  # pages that cannot be read
        return False
    finally:
        os.close(memory)


def _status(place: Path) -> dict[str, str]:
    """Return facts of a process from its status file."""
    rows, ours = status_of(place.name), status_of("self")
    # A container's or a unit's own filters come before the two of a worker.
    filters = str(int(rows["Seccomp_filters"]) - int(ours["Seccomp_filters"])) if "Seccomp_filters" in rows else ""
    capabilities = {int(rows[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    return {
        "seccomp": {"0": "off", "1": "strict", "2": "filter"}[rows["Seccomp"]],
        "filters": filters,
        "no_new_privs": rows["NoNewPrivs"],
        "capabilities": "none" if capabilities == {0} else "some",
        "uid": "its own" if set(rows["Uid"].split()) != {str(os.geteuid())} else "the engine's",
        "gid": "its own" if set(rows["Gid"].split()) != {str(os.getegid())} else "the engine's",
        "groups": "none" if not rows["Groups"] else "some",
        "threads": rows["Threads"],
        "traced": "no" if rows["TracerPid"] == "0" else "yes",
        "pids": "its own numbers" if len(rows["NSpid"].split()) > 1 else "the host's numbers",
        "terminated": "not ignored" if not int(rows["SigIgn"], 16) & 1 << (signal.SIGTERM - 1) else "ignored",
    }


def _limits(place: Path) -> dict[str, str]:
    """Return the resource limits of a process."""
    names = {
        "Max processes": "processes",
        "Max file size": "file size",
        "Max core file size": "core",
        "Max open files": "open files",
        "Max locked memory": "locked memory",
        "Max msgqueue size": "message queues",
        "Max data size": "data",
        "Max cpu time": "cpu seconds",
    }
    facts = {}
    for row in (place / "limits").read_text().splitlines()[1:]:
        name = names.get(row[:26].strip())
        if name is not None:
            hard = row[47:68].strip()
            facts[f"limit of {name}"] = (
                "none" if hard == "unlimited" else "zero" if hard == "0" else "small" if int(hard) <= 16 else "bounded"
            )
    timers = place / "timers"
    facts["cpu timer"] = (
        "armed" if timers.exists() and "signal: 9/" in timers.read_text() else "not armed" if timers.exists() else ""
    )
    facts["oom score"] = (place / "oom_score_adj").read_text().strip()
    return facts


def _files(place: Path) -> dict[str, str]:
    """Return facts about the open files of a process."""
    targets = [str(path.readlink()) for path in (place / "fd").iterdir()]
    return {
        "descriptors": "one socket" if len(targets) == 1 and targets[0].startswith("socket:") else f"{len(targets)}",
        "arguments": "no secret" if b"canary" not in (place / "cmdline").read_bytes() else "a secret",
        "working folder": str((place / "cwd").readlink()),
    }


def _mapped(place: Path) -> dict[str, str]:
    """Return facts about the memory mappings of a process."""
    rows = [line.split(maxsplit=5) for line in (place / "maps").read_text().splitlines()]
    both = [row for row in rows if "w" in row[1] and "x" in row[1]]
    shared = [row for row in rows if row[1].endswith("s") and "w" in row[1]]
    return {
        "writable code": "none" if not both else f"{len(both)} mappings",
        "shared memory": "none" if not shared else f"{len(shared)} mappings",
    }


def _elsewhere(place: Path) -> dict[str, str]:
    """Return facts about the namespaces, the root, the mounts and the network devices of a process."""
    facts = {}
    for name in _NAMESPACES:
        same = (place / "ns" / name).readlink() == Path(f"/proc/self/ns/{name}").readlink()
        facts[f"{name} namespace"] = "the host's" if same else "its own"
    rows = [line.split() for line in (place / "mountinfo").read_text().splitlines()]
    facts["root"] = "empty" if not list((place / "root").iterdir()) else "not empty"
    facts["mounts"] = "one, read-only" if len(rows) == 1 and "ro" in rows[0][5].split(",") else f"{len(rows)}"
    devices = [
        line for line in (place / "net" / "dev").read_text().splitlines()[2:] if not line.strip().startswith("lo:")
    ]
    facts["network devices"] = "none" if not devices else f"{len(devices)}"
    routes = (place / "net" / "route").read_text().splitlines()[1:]
    facts["routes"] = "none" if not routes else f"{len(routes)}"
    return facts
