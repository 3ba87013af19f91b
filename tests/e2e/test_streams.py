"""What a verb writes where: usage mistakes as JSON, closed and full streams, encodings, and progress on a terminal alone."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.e2e.command import ROOT, bare, inside
from tests.e2e.ready import CLI, Ready, lodger

from lodger.engine.store.schema.access import audit
from lodger.engine.sync import Engine

ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PATH": os.environ["PATH"]}


def test_wrong_usage_is_json_too() -> None:
    for words in ("exec", "exec x.js --cpu-ms abc", "nosuchverb", "next * -n 0", "action show a"):
        said = inside(*words.split(), "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "usage"), words
        assert said.json["error"]["message"]


def _shell(line: str, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``lodger`` below a shell that does to its streams what people do."""
    command = ["/bin/sh", "-c", line, "sh", sys.executable, *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env=ENVIRONMENT | env,
    )


RUN = '"$1" -m lodger.engine.cli'


def test_a_source_is_read_once_wherever_it_comes_from(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.js"
    os.mkfifo(pipe)
    script = "export default () => 7"
    with ThreadPoolExecutor(1) as writing:
        writing.submit(pipe.write_text, script)
        assert lodger("exec", pipe, "--json").json["result"] == 7
    for place, stdin, code, found in (
        ("/dev/stdin", script, 0, '"result": 7'),
        ("/dev/stdin", "\ufeff" + script, 0, '"result": 7'),
        ("-", "\ufeff" + script, 0, '"result": 7'),
        ("-", "", 1, "EmptyScript"),
        ("/dev/null", "", 1, "EmptyScript"),
        (f"{tmp_path} --runtime wasm", "", 2, "file_is_folder"),
    ):
        said = lodger("exec", *place.split(), "--json", stdin=stdin)
        assert (said.code, found in said.out) == (code, True), (place, said)


def test_a_full_disk_behind_stdout_is_told_on_stderr() -> None:
    said = _shell(f"{RUN} version --json >/dev/full")
    assert said.returncode == 1
    assert "No space left" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_closed_stream_hurts_nothing(tmp_path: Path) -> None:
    lodger("tenant", "list", "--db", tmp_path / "l.db")  # sets the ledger up
    said = _shell(f"{RUN} tenant create acme --db {tmp_path}/l.db <&- >&- 2>&-")
    assert said.returncode == 0
    assert "error" not in said.stderr
    # What is said with closed streams must not land in the ledger's file, which would get their numbers.
    assert [each["id"] for each in lodger("tenant", "list", "--db", tmp_path / "l.db", "--json").json["tenants"]] == [
        "acme"
    ]


CHARACTERS = 'export default () => "\\ud83d\\ude00 \\ud800 é"'


def test_no_letter_is_too_strange_for_a_stream(tmp_path: Path) -> None:
    (tmp_path / "s.js").write_text(CHARACTERS)
    said = _shell(f"{RUN} exec {tmp_path}/s.js --json", PYTHONIOENCODING="ascii")
    assert json.loads(said.stdout)["result"] == "\U0001f600 \ud800 é"


def test_a_service_continues_when_its_output_is_closed(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    (tmp_path / "s.js").write_text("export default () => 1")
    lodger("tenant", "create", "acme", "--db", place)
    lodger("script", "put", "acme", "s", tmp_path / "s.js", "--db", place)
    made = lodger(
        *("schedule", "create", "acme", "x", "--script", "s", "--rule", "every 1s", "--db", place),
        LODGER_MIN_INTERVAL_S="1",
    )
    assert made.code == 0, made.err
    # Any port: another program on this machine may use the default one.
    arguments = ("up", "--port", "0", "--db", place)
    (out, said), errors = os.pipe(), tmp_path / "errors"
    with (
        os.fdopen(out) as lines,
        open(os.devnull) as nothing,
        errors.open("w") as wrong,
        Ready(
            CLI, arguments, (nothing.fileno(), said, wrong.fileno()), ENVIRONMENT | {"LODGER_MIN_INTERVAL_S": "1"}
        ) as service,
    ):
        os.close(said)
        assert any(" runs on " in line for line in lines)
        lines.close()
        with Engine.open(str(place)) as engine:
            before = _done(engine)
            end = time.monotonic() + 120
            while _done(engine) < before + 2 and time.monotonic() < end:
                assert service.poll(0.1) is None
            assert _done(engine) >= before + 2
        service.send_signal(signal.SIGINT)
        service.wait(120)
    assert "Traceback" not in errors.read_text()


def _done(engine: Engine) -> int:
    return len(engine.actions.list("acme", state="done"))


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
    before, again = archive.stat().st_ino, ("tenant", "export", "acme", "--out", archive, "--db", place)
    assert inside(*again, "--json").json["error"]["code"] == "file_exists"
    assert archive.stat().st_ino == before, "an archive is replaced with --force alone"
    for arguments in (
        (*again, "--force"),
        ("db", "upgrade", "--db", tmp_path / "other.db"),
        ("tenant", "restore", "acme", archive, "--db", tmp_path / "other.db"),
        ("audit", "export", "acme", "--out", tmp_path / "lines", "--db", place),
    ):
        said = inside(*map(str, arguments))
        assert (said.code, said.err) == (0, "")
