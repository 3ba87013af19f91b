"""Hosts that lack walls: what is missing is said, what can stand does, and the profile for strangers' code knows its minimum."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from tests.escape.probing import PROBE
from tests.escape.standing import ROOT, namespace, standing, status

# A user namespace in which no further namespace may be made: what a container without rights looks like.
NO_NAMESPACES = (
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    'for kind in user pid net mnt ipc uts; do echo 0 > "/proc/sys/user/max_${kind}_namespaces"; done; exec "$@"',
    "sh",
)


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NO_NAMESPACES, "true"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not can_unshare(), reason="no user namespace here to take rights away in")


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
        process.wait(10)
        from tests.escape.test_pool_life import wait_gone

        wait_gone(said["launcher"], said["zygote"], said["armed"], said["ready"])


def test_missing_walls_are_said_and_enough_of_them_refuse() -> None:
    code = f"""
import asyncio, json, sys
sys.path.insert(0, {str(ROOT / ".dev")!r})
from lodger.sandbox import Pool
from lodger.sandbox.errors import WallUnavailable
from lodger.sandbox import doctor

async def main():
    doctor.MINIMUM = int(sys.argv[1])
    pool = Pool(settings={{"runtime_path": {PROBE!r}}}, size=1)
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
        assert "the wall namespaces does not stand" in done.stderr
        if not started:
            assert answer["code"] == "too_few_walls"
            assert "max_user_namespaces" in answer["fix"]
