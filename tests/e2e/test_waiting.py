"""Progress of long work: shown on a terminal, not in a pipe or to programs."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.e2e.command import bare, inside

from lodger.engine.store.schema.access import audit
from lodger.engine.sync import Engine

ENTRIES = 1200


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a ledger with a suspended tenant that has a long audit log."""
    place = tmp_path / "ledger.db"
    with Engine.open(place) as engine:
        engine.tenants.create("acme")
        engine.tenants.suspend("acme")
        (entry, *_more) = engine.audit.list("acme")
        with engine.context.database.write() as connection:
            (row,) = connection.execute(audit.select().where(audit.c.id == entry.id)).mappings()
            for n in range(ENTRIES):
                connection.execute(insert(audit).values({**row, "id": f"{entry.id[:-6]}{n:06x}"}))
    return place


def looked_at(*arguments: str | Path) -> tuple[str, str]:
    """Run a command with a terminal as stderr; return its stdout and what the terminal received."""
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "lodger.engine.cli", *map(str, arguments)]
        env = bare() | {"TERM": "xterm"}
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=env) as run:
            os.close(theirs)
            theirs = -1
            seen = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                seen += part
            assert run.stdout is not None
            out = run.stdout.read()
        assert run.returncode == 0, seen
        return out.decode(), seen.decode()
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def test_long_work_shows_how_far_it_is_where_somebody_looks(place: Path, tmp_path: Path) -> None:
    archive, lines = tmp_path / "acme.gz", tmp_path / "audit.jsonl"
    asked = {
        "exporting acme": ("tenant", "export", "acme", "--out", archive, "--db", place),
        "restoring acme": ("tenant", "restore", "acme", archive, "--db", tmp_path / "other.db"),
        "exporting the audit log": ("audit", "export", "--out", lines, "--db", place),
    }
    for what, arguments in asked.items():
        _out, seen = looked_at(*arguments)
        assert what in seen
        assert re.search(r"\b1\d\d\d (entries|rows)\b", seen), seen
    assert len(lines.read_text().splitlines()) >= ENTRIES


def test_programs_and_pipes_see_nothing_of_it(place: Path, tmp_path: Path) -> None:
    archive = tmp_path / "acme.gz"
    out, seen = looked_at("tenant", "export", "acme", "--out", archive, "--db", place, "--json")
    assert out.startswith('{"bytes": ')
    assert seen == ""
    for arguments in (
        ("tenant", "export", "acme", "--out", archive, "--db", place),
        ("tenant", "restore", "acme", archive, "--db", tmp_path / "other.db"),
        ("audit", "export", "acme", "--out", tmp_path / "lines", "--db", place),
    ):
        said = inside(*map(str, arguments))
        assert (said.code, said.err) == (0, "")
