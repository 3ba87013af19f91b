"""Hosts without some walls: missing ones are reported, the others are raised, and profile untrusted enforces its minimum."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.escape.probing import PROBE
from tests.escape.standing import ROOT, limits, namespace, ordinary_python, standing, status

from lodger.sandbox.doctor import Doctor
from lodger.sandbox.errors import WallUnavailable

# A user namespace in which no further namespace can be created, as in a container without privileges.
NO_NAMESPACES = (
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    'for kind in user pid net mnt ipc uts; do echo 0 > "/proc/sys/user/max_${kind}_namespaces"; done; exec "$@"',
    "sh",
)
OLDER_KERNEL = Path(__file__).with_name("older_kernel.py")
CONTAINED = Path(__file__).with_name("contained.py")


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NO_NAMESPACES, "true"], capture_output=True).returncode == 0


nested = pytest.mark.skipif(
    not can_unshare(), reason="NOT TESTED with namespaces: no user namespace here to take rights away in"
)


@nested
def test_without_namespaces_the_others_stand() -> None:
    with standing("root" if os.geteuid() == 0 else "own", under=NO_NAMESPACES) as (said, process):
        missing = {wall for wall, stands in said["walls"].items() if not stands}
        assert missing == {"namespaces", "root", "uid"}
        for name in ("ready", "armed"):
            facts = status(said[name])
            assert facts["Seccomp"] == "2"
            assert facts["NoNewPrivs"] == "1"
            assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == 0, "a false root's capabilities are gone too"
        if os.geteuid() == 0:
            assert namespace(said["armed"], "net") == namespace("self", "net")
        process.kill()
        process.wait(120)
        from tests.escape.pool_processes import wait_gone

        wait_gone(said["launcher"], said["zygote"], said["armed"], said["ready"])


@pytest.mark.parametrize(
    ("user", "lacks"), [("root", {"namespaces", "root"}), ("ordinary", {"namespaces", "root", "uid"})]
)
def test_in_a_container_of_default_rights(user: str, lacks: set[str]) -> None:
    """As in a container: calls for namespaces and mounts are denied, and root has few capabilities."""
    python = sys.executable if user == "root" else ordinary_python()
    with standing(user, under=(python, str(CONTAINED), str(ROOT))) as (said, _):
        assert {wall for wall, stands in said["walls"].items() if not stands} == lacks
        for name in ("ready", "armed"):
            facts = status(said[name])
            assert (facts["Seccomp"], facts["NoNewPrivs"]) == ("2", "1")
            # An ordinary user cannot drop the bounding set, which no_new_privs makes useless.
            sets = ("Inh", "Prm", "Eff", "Amb", *(("Bnd",) if user == "root" else ()))
            assert all(int(facts[f"Cap{which}"], 16) == 0 for which in sets)
            assert (int(facts["Uid"].split()[0]) > 1_000_000_000) == (user == "root")
            assert limits(said[name])["Max processes"] == ("0", "0")
        enough = {wall: "" if stands else "missing" for wall, stands in said["walls"].items()}
        Doctor.require("untrusted", enough)


@nested
def test_missing_walls_are_said_and_enough_of_them_refuse() -> None:
    code = f"""
import asyncio, json, sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT)!r}]
from tests.escape.matrix.pools import WeakPool
from lodger.sandbox.errors import WallUnavailable
from lodger.sandbox import doctor

async def main():
    doctor.MINIMUM = int(sys.argv[1])
    pool = WeakPool({{"runtime_path": {PROBE!r}}}, size=1)
    try:
        await pool.start()
        print(json.dumps("started"))
    except WallUnavailable as refusal:
        print(json.dumps(refusal.as_dict()))
    finally:
        await pool.stop()

asyncio.run(main())
"""
    for minimum, started in ((4, True), (5, False)):
        done = subprocess.run(
            [*NO_NAMESPACES, sys.executable, "-c", code, str(minimum)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answer = json.loads(done.stdout)
        assert (answer == "started") == started, answer
        assert "the wall namespaces is missing" in done.stderr
        if not started:
            assert answer["code"] == "too_few_walls"
            assert "max_user_namespaces" in answer["fix"]


@nested
def test_the_suite_attacks_what_stands_and_says_what_it_skips() -> None:
    command = [
        *NO_NAMESPACES,
        sys.executable,
        "-m",
        "lodger.engine.cli",
        "escape",
        "--class",
        "E",
        "--class",
        "D65",
        "--runtime",
        "quickjs",
        "--json",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["walls"]["namespaces"]
    statuses = {case["wall"]: case["status"] for case in found["cases"]}
    assert statuses["namespaces"] == statuses["root"] == "skipped"
    assert statuses["seccomp"] == statuses["fresh_process"] == "contained"
    assert all("lodger doctor" in case["evidence"] for case in found["cases"] if case["wall"] == "namespaces")


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT TESTED as root: needs root to put a filter on what it starts (run as root)"
)
@pytest.mark.parametrize(("call", "answer"), [("close_range", errno.ENOSYS), ("pidfd_open", errno.EPERM)])
def test_a_kernel_without_a_call_is_named_as_the_cause(call: str, answer: int) -> None:
    """An old kernel returns ENOSYS, an old container engine's filter EPERM."""
    older = [sys.executable, str(OLDER_KERNEL), str(ROOT), call, str(answer)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    commands = (("exec", "-", "--json"), ("doctor", "--probe", "--json"))
    for command in commands if answer == errno.ENOSYS else commands[:1]:
        done = subprocess.run(
            [*older, sys.executable, "-m", "lodger.engine.cli", *command],
            input="return 1;", capture_output=True, text=True, timeout=100, env=env,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        body = json.loads(done.stdout)
        problem = body["error"] if command[0] == "exec" else body["problem"]
        assert problem["code"] == "kernel_too_old"
        assert call in problem["message"]
        assert "Linux 5." in problem["fix"]


def test_workers_of_the_engines_user_need_namespaces_or_landlock() -> None:
    standing = dict.fromkeys(("no_new_privs", "seccomp", "rlimits", "cpu_timer", "cgroup", "undumpable"), "")
    with pytest.raises(WallUnavailable) as refused:
        Doctor.require("untrusted", standing)
    assert refused.value.code == "wall_missing"
    assert "landlock" in str(refused.value)
    for enough in ("landlock", "namespaces", "uid"):
        Doctor.require("untrusted", {**standing, enough: ""})
