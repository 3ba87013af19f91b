"""``lodger demo`` as people run it: the real engine, walls, mails; by itself, kept, interrupted, and on bad ground."""

import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import httpx2
import pytest
from tests.e2e.command import Said, bare, inside
from tests.e2e.ready import CLI, Ready, lodger
from tests.e2e.serving import read_until

Lines = dict[tuple[str, str], dict[str, Any]]
OUTPUT = [
    "The engine was off for 100 days", "To print a link that signs in once: lodger token link",
    "missed  bluebird/cart-reminders: slots ", "missed while the engine was off; one gap row in the ledger",
    "ran     bluebird/monthly-sales (missed", "ran     bluebird/weekly-figure (missed",
    "mail    to mara@bluebird.example: Sales of the week", "cases without an answer for a day",
    "You left something behind", "failed  bluebird/broken-report", "  return { report: total.padLeft(12) };",
    "stopped harbor/endless", "stopped by the cpu limit", '"rows of the other shop found":0',
    "ran     bluebird/winter_sale", "ran     harbor/confirm-orders", "due     harbor/unanswered-tickets: ",
    "The ledger after",
]  # fmt: skip
#: How long it is given, one after the other: a machine that has much else to do needs more for the same story.
LENGTHS = ("10s", "30s", "90s")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is shown."""
    return tmp_path_factory.mktemp("shown")


@pytest.fixture(scope="module")
def shown(folder: Path) -> Said:
    """Ten seconds of it, as plain lines."""
    for length in LENGTHS:
        said = lodger("demo", "--for", length, cwd=folder, TMPDIR=str(folder))
        if all(line in said.out for line in OUTPUT):
            break
    return said


def kept(folder: Path, length: str, enough: Callable[[dict[str, Any], Lines], bool]) -> tuple[dict[str, Any], Lines]:
    """Let it go on with its ledger until there is enough of it; give what it said last, and its lines by tenant and name."""
    for time in (length, *LENGTHS):
        said = lodger("demo", "--for", time, "--keep", "--json", cwd=folder).json
        lines = {(line["tenant"], line["name"]): line for line in said["lines"]}
        if enough(said, lines):
            break
    return said, lines


def test_it_ends_by_itself_shows_every_part_and_leaves_nothing_on_disk(shown: Said, folder: Path) -> None:
    assert (shown.code, shown.err) == (0, "")
    assert [line for line in OUTPUT if line not in shown.out] == []
    months = [
        line.split('"month":"')[1][:7] for line in shown.out.splitlines() if "ran     bluebird/monthly-sales" in line
    ]
    assert len(months) in (3, 4)
    assert months == sorted(months), "oldest first"
    assert list(folder.iterdir()) == []


@contextmanager
def begun(*arguments: str, cwd: Path | None = None, **env: str) -> Iterator[tuple[Ready, TextIO]]:
    """Start it in a process of its own; yield the process and its output."""
    out, said = os.pipe()
    with (
        os.fdopen(out, encoding="utf-8") as lines,
        open(os.devnull) as nothing,
        Ready(CLI, ("demo", *arguments), (nothing.fileno(), said, 2), bare() | env, cwd) as demo,
    ):
        os.close(said)
        yield demo, lines


def test_its_dashboard_stays_up_after_the_story_until_interrupted() -> None:
    with begun("--for", "1s", "--serve") as (demo, lines):
        link = ""
        for line in lines:
            if ": lodger token link " in line:
                link = lodger(*line.partition(": lodger ")[2].split()).out.strip()
            if line.startswith("The engine and its dashboard stay up"):
                break
        with httpx2.Client(trust_env=False, follow_redirects=True, timeout=120) as http:
            page = http.get(link, headers={"accept": "text/html"})
            assert page.status_code == 200
            assert "harbor" in http.get(page.url.join("/tenants")).text
        demo.send_signal(signal.SIGINT)
        assert "The ledger after" in lines.read()
        assert demo.wait(120) == 0


def test_a_length_that_is_none() -> None:
    for length in ("soon", "0s", "-3s", "", "1e9", "90"):
        said = inside("demo", f"--for={length}", "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "length_invalid"), length


def test_a_place_that_holds_no_ledger(tmp_path: Path) -> None:
    place = tmp_path / "lodger-demo"
    place.write_text("a file stands where the folder would be")
    said = lodger("demo", "--for", "1s", "--keep", "--json", cwd=tmp_path)
    assert (said.code, said.json["error"]["code"]) == (1, "folder_unwritable")
    place.unlink()
    place.mkdir()
    (place / "ledger.db").write_text("something else entirely" * 100)
    said = lodger("demo", "--for", "1s", "--keep", "--json", cwd=tmp_path)
    assert (said.code, said.json["error"]["code"]) == (1, "not_a_database")


@pytest.mark.root
def test_a_full_disk_is_named_and_the_next_run_goes_on(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "small", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("NOT TESTED as root: this user may not mount a small file system (run as root)")
    try:
        said = lodger("demo", "--for", "1s", "--keep", "--json", cwd=tmp_path)
        assert (said.code, said.json["error"]["code"]) == (1, "disk_full")
        subprocess.run(["mount", "-o", "remount,size=60m", str(tmp_path)], check=True)
        said = lodger("demo", "--for", "3s", "--keep", "--json", cwd=tmp_path)
        assert said.code == 0
        assert len(said.json["lines"]) == 10
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_killed_in_the_middle_it_goes_on(tmp_path: Path) -> None:
    lease = {"LODGER_LEASE_S": "2", "PYTHONUNBUFFERED": "1"}
    with begun("--keep", cwd=tmp_path, **lease) as (demo, lines):
        for line in lines:
            if line.startswith("ran     harbor/confirm-orders"):
                break
        demo.kill()
        demo.wait(120)
    # A killed node's lease must pass before its running actions are taken.
    reported = lodger("demo", "--for", "4s", "--keep", cwd=tmp_path, **lease)
    assert "Continuing with the ledger" in reported.out
    assert "internal" not in reported.err
    said, lines = kept(
        tmp_path,
        "1s",
        lambda said, lines: (
            lines["harbor", "endless"]["failed"] >= 1
            and bool(lines["bluebird", "broken-report"]["last"])
            and lines["bluebird", "monthly-sales"]["ran"] >= 3
            and said["states"].get("running", 0) <= 1
        ),
    )
    assert lines["harbor", "endless"]["failed"] == 1
    assert lines["harbor", "endless"]["last"] == "cpu_limit"
    assert lines["bluebird", "broken-report"]["last"] == "script_error"
    assert lines["bluebird", "cart-reminders"]["gaps"] >= 1
    assert lines["bluebird", "monthly-sales"]["ran"] in (3, 4)
    assert said["states"].get("running", 0) <= 1
    listed = lodger("action", "list", "bluebird", "--db", "lodger-demo/ledger.db", "--json", cwd=tmp_path)
    assert len(listed.json["actions"]) > 5


def test_interrupted_in_a_terminal_it_sums_up() -> None:
    reader, terminal = pty.openpty()
    env = bare() | {"TERM": "xterm-256color", "COLUMNS": "110", "LINES": "32"}
    with os.fdopen(reader, "rb", buffering=0), Ready(CLI, ("demo",), (terminal, terminal, terminal), env) as demo:
        os.close(terminal)
        text = read_until(reader, "missed  ")
        demo.send_signal(signal.SIGINT)
        text += read_until(reader, "Mails:")
        assert demo.wait(120) == 0
    assert text.index("missed  ") < text.index("The ledger after")
