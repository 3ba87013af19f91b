"""The control group around all workers: created where possible, reported where not, and all its processes end with it."""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.escape.pool_processes import zygote_pid
from tests.escape.probing import Echo, probe_job, probe_pool

from lodger.escape.runner import started
from lodger.sandbox import Outcome
from lodger.sandbox.doctor import Doctor
from lodger.sandbox.errors import WallUnavailable
from lodger.sandbox.limits import MIB
from lodger.sandbox.walls import cgroup
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup


class Plain(WorkerCgroup):
    """Groups without controllers, which any user may create."""

    controllers = ()


class Lacking(WorkerCgroup):
    """Groups that need a controller that no kernel has."""

    controllers = ("memory", "nothing")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a group of cgroup v2 in which groups can be created, with any controllers."""
    try:
        place = cgroup.own_group() / f"lodger-test-{os.getpid()}"
        place.mkdir()
    except (cgroup.NoGroup, OSError) as reason:
        pytest.skip(f"NOT TESTED with cgroup v2: no place for groups here ({reason})")
    yield place
    place.rmdir()


@pytest.fixture
def bounding(folder: Path) -> Path:
    """Return such a group with the controllers that bound memory and processes."""
    try:
        for place in (folder.parent, folder):
            cgroup.prepare(place)
    except cgroup.NoGroup as reason:
        pytest.skip(f"NOT TESTED with cgroup v2: the limits of a group, on this host ({reason})")
    return folder


def groups(folder: Path) -> list[Path]:
    return [place for place in folder.iterdir() if place.is_dir()]


def members(folder: Path) -> set[int]:
    return {int(line) for place in folder.rglob("cgroup.procs") for line in place.read_text().split()}


async def test_all_of_a_zygote_is_in_its_group_and_nothing_stays(folder: Path) -> None:
    async with started(probe_pool(size=2, cgroup=Plain(folder, memory_bytes=0))) as pool:
        report = await pool.run(probe_job("done('1')"), Echo())
        assert report.walls["cgroup"]
        assert pool.zygote is not None
        launcher = pool.zygote.launcher_pid
        inside = members(folder)
        assert {launcher, *pool.ready} <= inside
        assert os.getpid() not in inside
        assert len(groups(folder)) == 1
    assert not groups(folder)


async def test_all_zygotes_share_one_and_the_last_takes_it_away(folder: Path) -> None:
    group = Plain(folder, memory_bytes=0)
    pools = (probe_pool(cgroup=group), WasmPool(cgroup=group, profile="trusted"))
    for pool in pools:
        await pool.start()
    (group_of_all,) = groups(folder)
    assert {pool.zygote.launcher_pid for pool in (*pools, pools[1].compilers) if pool.zygote} <= members(group_of_all)
    await pools[0].stop()
    assert group_of_all.is_dir()
    await pools[1].stop()
    assert not group_of_all.exists()


async def test_removal_ends_whatever_is_inside(folder: Path) -> None:
    group = cgroup.Group(folder / "one")
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "sleep 60 & sleep 60", start_new_session=True)
    group.add_process(process.pid)
    group.remove()
    assert await process.wait() == -9
    group.remove()  # safe twice

    assert not (folder / "one").exists()


async def test_a_place_that_offers_nothing_is_told_and_the_others_stand(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lodger.sandbox"):
        async with started(probe_pool(cgroup=Lacking(folder, memory_bytes=64 * MIB))) as pool:
            report = await pool.run(probe_job("done('1')"), Echo())
            assert report.outcome is Outcome.OK
            assert not report.walls["cgroup"]
            assert report.walls["seccomp"]
            assert pool.zygote is not None
            assert "nothing" in pool.zygote.walls["cgroup"]
    assert "the wall cgroup is missing" in caplog.text, "whoever names a folder wants it"
    assert not groups(folder)


@pytest.mark.parametrize("place", ["/nowhere", "/tmp"])
def test_no_group_at_all(place: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(cgroup.NoGroup, match=place):
        WorkerCgroup(Path(place), memory_bytes=0).join(os.getpid())
    group = WorkerCgroup(memory_bytes=0)
    if cgroup.missing():
        with pytest.raises(cgroup.NoGroup):
            group.join(os.getpid())


def test_it_is_one_of_the_layers_that_count() -> None:
    others = dict.fromkeys(("no_new_privs", "seccomp", "rlimits", "cpu_timer", "landlock"), "")
    Doctor.require("untrusted", {**others, "cgroup": ""}, minimum=5)
    with pytest.raises(WallUnavailable) as refused:
        Doctor.require("untrusted", {**others, "cgroup": "no group"}, minimum=5)
    assert refused.value.code == "too_few_walls"
    assert "LODGER_CGROUP" in refused.value.fix


async def test_memory_of_all_together_is_bounded(bounding: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt may use 512 MiB; if all together exceed the group's limit, one of them ends."""
    monkeypatch.setattr("lodger.sandbox.workers.worker_cgroup._BESIDE_BYTES", 64 * MIB)
    hog = "hold = bytearray(400 << 20)\nfor at in range(0, len(hold), 4096): hold[at] = 1\ndone('1')"

    async with started(probe_pool(size=1, cgroup=WorkerCgroup(bounding, memory_bytes=64 * MIB))) as pool:
        report = await pool.run(probe_job(hog, memory_bytes=512 * MIB, cpu_ms=20_000, wall_ms=60_000), Echo())
        assert report.outcome is Outcome.WORKER_LOST, "what a neighbour took is not this script's fault"
        assert (await pool.run(probe_job("done('1')"), Echo())).result == "1"


async def test_processes_of_all_together_are_bounded(bounding: Path) -> None:
    async with started(probe_pool(size=8, cgroup=WorkerCgroup(bounding, memory_bytes=512 * MIB, processes=4))) as pool:
        for _ in range(20):
            assert (await pool.run(probe_job("done('1')"), Echo())).result == "1"
            assert len(members(bounding)) <= 4


@pytest.fixture
def few_processes() -> Iterator[Path]:
    """Yield a group of either version that bounds the number of processes."""
    with suppress(cgroup.NoGroup):
        cgroup.prepare(cgroup.mount_point(), ("pids",))
    for root in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        place = root / f"lodger-few-{os.getpid()}"
        try:
            place.mkdir()
        except OSError:
            continue
        if (place / "pids.max").exists():
            yield place
            place.rmdir()
            return
        place.rmdir()
    pytest.skip("NOT TESTED with cgroup v2: no group here bounds a host's processes")


async def test_a_zygote_that_cannot_fork_lets_the_others_live(few_processes: Path) -> None:
    async with started(probe_pool(size=4)) as pool:
        assert pool.zygote is not None
        zygote = str(zygote_pid(pool))
        async with asyncio.timeout(120):
            while len(pool.ready) < 4:  # noqa: ASYNC110 - the pool has no event for it
                await asyncio.sleep(0.01)
            (few_processes / "pids.max").write_text("1")
            (few_processes / "cgroup.procs").write_text(zygote)
            for _ in range(4):
                assert (await pool.run(probe_job("done('1')"), Echo())).result == "1"
            waiting = asyncio.create_task(pool.run(probe_job("done('2')"), Echo()))
            while not pool.failures:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.01)
            assert pool.zygote is not None, "it goes on"
            assert not waiting.done()
            (few_processes / "pids.max").write_text("100")
            assert (await waiting).result == "2", "it waited until there was room"
