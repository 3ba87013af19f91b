"""Control groups: only looked at. A delegated cgroup v2 subtree would bound all workers together; the limits of one stand without it."""

import os
from pathlib import Path


def missing() -> str:
    """Give "" when this process may make a child group with memory and pids controllers, otherwise why not."""
    try:
        with Path("/proc/self/cgroup").open() as groups:
            path = next((line.strip()[3:] for line in groups if line.startswith("0::")), None)
    except OSError:
        return "no /proc/self/cgroup"
    if path is None:
        return "no cgroup v2"
    folder = Path("/sys/fs/cgroup" + path.rstrip("/"))
    try:
        with (folder / "cgroup.controllers").open() as controllers:
            lacking = {"memory", "pids"} - set(controllers.read().split())
    except OSError:
        return "cgroup v2 is not mounted at /sys/fs/cgroup"
    if lacking:
        return "controllers not delegated: " + " ".join(sorted(lacking))
    return "" if os.access(folder, os.W_OK) else "the group is not writable"
