"""A service that is started before its database: it waits for a bounded time and says so, then it says what it lacks."""

import json
import os
import signal
import subprocess
import sys

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


def test_a_node_whose_database_never_comes_ends_and_says_what_it_lacks(relay: Relay) -> None:
    code = "import sys; from lodger.engine.cli import main, up; up.START_PATIENCE_S = 2.0; main()"
    node = begun(relay.url("any"), "--json", python=("-c", code))
    out, err = node.communicate(timeout=120)
    assert node.returncode == 1
    *waits, error = [json.loads(line) for line in out.splitlines()]
    assert {each["kind"] for each in waits} <= {"waiting"}, "on a busy machine its time is over before the first try"
    assert error["error"]["code"] == "database_unreachable", err
