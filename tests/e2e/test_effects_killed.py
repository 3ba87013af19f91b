"""A node killed with SIGKILL before any statement of its commit: rows, documents, keys and mails are there exactly once."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases.fixtures import kind, postgres, url

__all__ = ["kind", "url"]
ROOT = Path(__file__).resolve().parents[2]
#: Kills of each kind, spread over the statements; LODGER_KILLS=whole is one before each of them (minutes).
KILLS = 1000 if os.environ.get("LODGER_KILLS") == "whole" else 1


@pytest.fixture(params=["ledger", "foreign"])
def place(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Iterator[str]:
    """Where the platform's tables are: in the ledger's database, or in one of their own."""
    if request.param == "ledger":
        if kind == "sqlite" and KILLS < 1000:
            pytest.skip("tables in the ledger's database: on PostgreSQL, and on both with LODGER_KILLS=whole")
        yield "-"
    elif kind == "postgresql" and KILLS < 1000:
        pytest.skip("tables in a database of their own: on SQLite, and on both with LODGER_KILLS=whole")
    elif kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'shop.db'}"
    else:
        name = postgres().database(empty=True)
        yield postgres().url(name)
        postgres().drop(name)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_whatever_statement_a_node_is_killed_before_everything_is_there_once(url: str, place: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tests.e2e.killed", url, place, str(KILLS)],
        capture_output=True, text=True, cwd=ROOT, timeout=800, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-2000:]
    found = json.loads(said.stdout)
    actions = found["actions"]
    assert found["kills"] >= min(KILLS, found["statements"] - 3) - 1, found
    assert found["states"] == ["done"], (found["failed"], found)
    assert found["rows_once"], found
    begun = 1 if place != "-" else 0  # what the row held before anything ran
    assert (found["counted"], found["documents"], found["mails"], found["all_mails"], found["kv"]) == (
        actions + begun, actions, actions, actions, actions,
    ), found  # fmt: skip
    assert found["left"] == 0
