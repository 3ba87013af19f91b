"""A command that only reads creates no ledger, and says how one is made; a mistake about a place is explained by its own cause."""

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e import command
from tests.e2e.command import bare, inside
from tests.e2e.ready import lodger

from lodger.engine.output.failure import described

#: Commands that are no operation of the engine.
OTHERS = (
    "action show acme 0000", "action logs acme 0000", "action follow acme 0000", "action record acme 0000",
    "action replay-locally acme 0000", "audit export --out -", "doctor", "grant list acme", "tenant show acme",
    "script module acme x --out -", "script rehearse acme x", "script dry-run acme x", "token link", "db check",
)  # fmt: skip


@pytest.mark.parametrize("words", OTHERS)
def test_a_command_that_reads_creates_no_ledger(words: str, tmp_path: Path) -> None:
    said = inside(*words.split(), "--db", tmp_path / "lodger.db")
    assert list(tmp_path.iterdir()) == []
    assert said.code in {0, 1}
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "noun", ["tenant", "token", "node", "lock", "script", "schedule", "action", "audit", "metrics"]
)
def test_a_list_without_a_ledger_names_what_creates_one(noun: str, tmp_path: Path) -> None:
    arguments = {"token": [], "script": ["acme"], "lock": [], "node": []}.get(noun, [])
    verb = "show" if noun == "metrics" else "list"
    said = inside(noun, verb, *arguments, "--db", tmp_path / "lodger.db", "--json")
    assert list(tmp_path.iterdir()) == []
    if said.code == 1:
        assert said.json["error"]["code"] == "not_a_ledger"
        assert "lodger tenant create" in said.json["error"]["fix"]


def test_a_command_that_reads_leaves_the_database_of_an_application_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "app.db"
    with closing(sqlite3.connect(place)) as app:
        app.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    before = place.read_bytes()
    said = inside("tenant", "list", "--db", place, "--json")
    assert (said.code, said.json["error"]["code"]) == (1, "not_a_ledger")
    assert place.read_bytes() == before


def test_types_of_exposed_sets_need_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def expose(engine):\n    pass\n")
    said = lodger("init", "scripts", "--expose", "shop:expose", cwd=tmp_path)
    assert said.code == 0, said.err
    assert not (tmp_path / "lodger.db").exists()


def test_statements_for_an_administrator_create_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def expose(engine):\n    pass\n")
    said = lodger("db", "prepare", "--expose", "shop:expose", "--sql", cwd=tmp_path)
    assert (said.code, "not_a_ledger" in said.err) == (1, True)
    assert not (tmp_path / "lodger.db").exists()


def test_a_command_that_writes_creates_the_ledger_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert command.lodger("tenant", "create", "acme", "--db", tmp_path / "lodger.db").code == 0
    finally:
        os.umask(before)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_piped_output_is_not_cut(tmp_path: Path) -> None:
    place, name = tmp_path / "lodger.db", "a-name-that-is-longer-than-a-terminal-" * 4
    inside("tenant", "create", "acme", "--name", name, "--db", place)
    lines = lodger("tenant", "list", "--db", place, COLUMNS="").out.splitlines()
    assert any("acme" in line and name in line and "active" in line for line in lines)


def test_an_address_of_another_host_is_not_called_taken(tmp_path: Path) -> None:
    said = lodger("up", "--db", tmp_path / "lodger.db", LODGER_API_HOST="192.0.2.1", LODGER_API_PORT="8799")
    assert said.code == 1
    assert "[address_unknown]" in said.err
    assert "LODGER_API_PORT" not in said.err


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.EROFS, "read-only"), (errno.ENOSPC, "full"), (errno.EACCES, "may not"), (errno.ENOENT, "there is no"),
        (errno.EMFILE, "too many files"),
    ],
)  # fmt: skip
def test_an_error_of_the_system_is_explained_by_its_cause(number: int, word: str) -> None:
    body = described(OSError(number, os.strerror(number), "/somewhere/lodger.db"))
    assert body["code"] == "system_error"
    assert word in body["message"]
    assert "/somewhere/lodger.db" in body["message"]
    assert body["fix"]


def limited(limit: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell that has set a limit."""
    call = [f"ulimit {limit} && exec '{sys.executable}' -m lodger.engine.cli \"$@\""]
    return subprocess.run(
        ["sh", "-c", *call, "sh", *words], capture_output=True, text=True, env=bare() | env, timeout=250, check=False
    )


def test_a_limit_of_address_space_is_named(tmp_path: Path) -> None:
    script = tmp_path / "job.js"
    script.write_text("export default () => 1")
    said = limited("-v 900000", "exec", str(script))
    assert said.returncode == 1
    assert "ulimit -v unlimited" in said.stderr


def test_slots_beyond_the_limit_of_open_files_are_named(tmp_path: Path) -> None:
    said = limited("-n 5000", "doctor", "--ready", "--db", str(tmp_path / "lodger.db"), LODGER_SLOTS="100000")
    assert "lower LODGER_SLOTS" in said.stdout
