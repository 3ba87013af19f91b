"""Boot order: each step is verified from outside, on a waiting and an armed worker, as root and as an ordinary user."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.escape.standing import OVERFLOW_UID, descriptors, limits, namespace, session, standing, status

NAMESPACES = ("user", "pid", "net", "mnt", "ipc", "uts")


@pytest.fixture(scope="module", params=["root", "ordinary"])
def reported(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with standing(request.param) as (said, _):
        yield {**said, "user": request.param}


@pytest.fixture(params=["ready", "armed"])
def pid(request: pytest.FixtureRequest, reported: dict[str, Any]) -> int:
    found: int = reported[request.param]
    return found


def test_every_wall_stands(reported: dict[str, Any]) -> None:
    missing = {wall for wall, stands in reported["walls"].items() if not stands}
    assert missing == ({"uid"} if reported["user"] == "ordinary" else set())


def test_no_privilege_is_left(pid: int) -> None:
    facts = status(pid)
    assert facts["NoNewPrivs"] == "1"
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(facts[name], 16) == 0, name


def test_filters(reported: dict[str, Any]) -> None:
    for name, count in (("ready", "1"), ("armed", "2")):
        facts = status(reported[name])
        assert (facts["Seccomp"], facts["Seccomp_filters"]) == ("2", count), name
    assert status(reported["zygote"])["Seccomp"] == "0", "a zygote under a filter could not put one on its workers"


def test_uid_is_its_own(reported: dict[str, Any], pid: int) -> None:
    facts = status(pid)
    uids, gids = set(facts["Uid"].split()), set(facts["Gid"].split())
    assert len(uids) == len(gids) == 1
    if reported["user"] == "root":
        assert int(uids.pop()) > 1_000_000_000
        assert int(gids.pop()) > 1_000_000_000
    else:
        assert int(uids.pop()) == OVERFLOW_UID
    assert not facts["Groups"]


def test_no_two_processes_of_a_zygote_share_a_uid(reported: dict[str, Any]) -> None:
    uids = {status(reported[name])["Uid"] for name in ("zygote", "ready", "armed")}
    assert len(uids) == (3 if reported["user"] == "root" else 1)


def test_limits(reported: dict[str, Any], pid: int) -> None:
    facts = limits(pid)
    for name, maximum in (
        ("Max processes", 0),
        ("Max file size", 0),
        ("Max core file size", 0),
        ("Max open files", 4),
        ("Max locked memory", 0),
    ):
        assert facts[name] == (str(maximum), str(maximum)), name
    data = facts["Max data size"]
    assert data[0] == data[1]
    assert int(data[0]) < (64 << 20) + (40 << 20) if pid == reported["armed"] else int(data[0]) > 1 << 30
    assert int(facts["Max cpu time"][1]) <= 40
    assert int(facts["Max stack size"][1]) == 24 << 20


def test_speculation_is_restricted_where_a_process_may_choose(pid: int) -> None:
    lines = ("Speculation_Store_Bypass", "SpeculationIndirectBranch")
    here = {name: status("self").get(name, "") for name in lines}
    choosable = {name for name, state in here.items() if state in {"thread vulnerable", "conditional enabled"}}
    if not choosable:
        pytest.skip(f"this host leaves a process no choice: {here}")
    assert not {name for name in choosable if "vulnerable" in status(pid)[name] or "enabled" in status(pid)[name]}


def test_only_the_socket_is_open(pid: int) -> None:
    (only,) = descriptors(pid)
    assert only.startswith("socket:")


def test_own_session(pid: int, reported: dict[str, Any]) -> None:
    assert session(pid) == pid
    assert session(reported["zygote"]) == reported["zygote"]


def test_the_kernel_takes_it_first(pid: int) -> None:
    assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000"


def test_namespaces(pid: int) -> None:
    for name in NAMESPACES:
        assert namespace(pid, name) != namespace("self", name), name


def test_root_is_empty_and_read_only(pid: int) -> None:
    assert os.listdir(f"/proc/{pid}/root/") == []
    (row,) = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    assert "ro" in row.split(" - ")[0].split()[5].split(",")


def test_cpu_timer_is_armed(pid: int) -> None:
    timers = Path(f"/proc/{pid}/timers")
    if not timers.exists():
        pytest.skip("the kernel does not show timers")
    text = timers.read_text()
    assert "signal: 9/" in text
    assert "ClockID: 2" in text or "ClockID: -6" in text


def test_zygote_is_small_and_alone(reported: dict[str, Any]) -> None:
    facts = status(reported["zygote"])
    assert facts["Threads"] == "1"
    assert facts["NSpid"].split()[-1] == "1", "the init of its pid namespace"
    assert Path(f"/proc/{reported['zygote']}/environ").read_bytes() == b""
    control = [what for what in descriptors(reported["zygote"]) if what.startswith("socket:")]
    assert len(control) == 1


def test_taken_away_walls_are_seen() -> None:
    """The same checks on a worker without these walls would fail."""
    with standing("root", "no_new_privs seccomp landlock rlimits oom uid root namespaces undumpable cpu_timer") as (
        said,
        _,
    ):
        facts = status(said["armed"])
        assert facts["NoNewPrivs"] == "0"
        assert facts["Seccomp"] == "0"
        assert int(facts["CapEff"], 16) != 0
        assert limits(said["armed"])["Max processes"][0] != "0"
        assert Path(f"/proc/{said['armed']}/oom_score_adj").read_text().strip() != "1000"
        assert all(namespace(said["armed"], name) == namespace("self", name) for name in NAMESPACES)
        assert os.listdir(f"/proc/{said['armed']}/root/")
        assert not any(said["walls"][wall] for wall in ("seccomp", "uid", "root", "namespaces", "oom"))
        timers = Path(f"/proc/{said['armed']}/timers")
        assert not timers.exists() or not timers.read_text()
