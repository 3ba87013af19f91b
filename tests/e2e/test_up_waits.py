"""A service that is started before its database: it waits for a bounded time and says so, then it says what it lacks."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from tests.databases.fixtures import absent, relay, server
from tests.databases.relay import Relay
from tests.databases.server import Server
from tests.e2e.command import ROOT

from lodger.engine.cli.up import START_PATIENCE_S
from lodger.engine.sync import Engine

__all__ = ["relay", "server"]
pytestmark = pytest.mark.skipif(absent() is not None, reason=f"NOT TESTED on PostgreSQL: {absent()}")


@pytest.fixture(autouse=True)
def out(relay: Relay) -> None:
    """The server is not there at first."""
    relay.cut()


def begun(
    url: str, *options: str, python: tuple[str, ...] = ("-m", "lodger.engine.cli"), **environment: str
) -> "subprocess.Popen[str]":
    """Start a node that waits for its database."""
    return subprocess.Popen(
        [sys.executable, *python, "up", "--role", "node", "--name", "early", "--db", url, *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip


def test_a_node_that_is_started_first_comes_up_when_its_database_does(server: Server, relay: Relay) -> None:
    name = server.database()
    with Engine.open(server.url(name)) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        asked = engine.run_in("acme", "job", 0)
        node = begun(relay.url(name), "--json")
        assert node.stdout is not None
        for _ in range(2):
            line = json.loads(node.stdout.readline())
            assert (line["kind"], line["code"]) == ("waiting", "database_unreachable")
            assert 0 < line["left_s"] <= START_PATIENCE_S
        relay.heal()
        while json.loads(node.stdout.readline())["kind"] != "finished":
            continue
        assert engine.actions.get(None, asked.id).state == "done"
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=60)
        assert node.returncode == 0
    server.drop(name)


def faults(address: str) -> float:
    with urllib.request.urlopen(address, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("lodger_faults_total"))


def test_an_outage_is_a_few_lines_each_with_time_and_level(server: Server, relay: Relay) -> None:
    name = server.database()
    relay.heal()
    node = begun(relay.url(name), LODGER_METRICS_PORT="0", LODGER_LEASE_S="3")
    assert node.stdout is not None
    while "metrics are at" not in (line := node.stdout.readline()):
        assert line
    while " runs on " not in node.stdout.readline():
        assert node.poll() is None
    relay.cut()
    while faults(line.split()[-1]) < 40:
        assert node.poll() is None
    relay.heal()
    with Engine.open(server.url(name)) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        engine.run_in("acme", "job", 0)
    while "finished" not in node.stdout.readline():
        assert node.poll() is None
    node.send_signal(signal.SIGTERM)
    _out, err = node.communicate(timeout=60)
    told = err.splitlines()
    assert 1 <= len(told) <= 4, err
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ  (error|warning) ", each) for each in told), err
    server.drop(name)


def test_a_node_whose_database_never_comes_ends_and_says_what_it_lacks(relay: Relay) -> None:
    code = "import sys; from lodger.engine.cli import main, up; up.START_PATIENCE_S = 2.0; main()"
    node = begun(relay.url("any"), "--json", python=("-c", code))
    out, err = node.communicate(timeout=120)
    assert node.returncode == 1
    *waits, error = [json.loads(line) for line in out.splitlines()]
    assert {each["kind"] for each in waits} <= {"waiting"}, "on a busy machine its time is over before the first try"
    assert error["error"]["code"] == "database_unreachable", err
