"""Progress of long work: shown on a terminal, not in a pipe or to programs."""

import os
import pty
import re
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.e2e.command import bare, inside
from tests.e2e.ready import CLI, Ready

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
    reported, out = os.pipe()
    with (
        open(os.devnull) as nothing,
        Ready(CLI, arguments, (nothing.fileno(), out, theirs), bare() | {"TERM": "xterm"}) as run,
    ):
        os.close(theirs)
        os.close(out)
        seen = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 65536):
                seen += part
        os.close(ours)
        with os.fdopen(reported) as said:
            text = said.read()
        assert run.wait() == 0, seen
    return text, seen.decode()


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
