"""``lodger demo`` as people run it: the real engine, walls, mails; by itself, kept, interrupted, and on bad ground."""

import os
import pty
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import httpx2
import pytest
from tests.e2e.command import Said, bare, inside
from tests.e2e.ready import CLI, Ready, lodger
from tests.e2e.serving import read_until

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


def test_a_kept_ledger_is_continued(tmp_path: Path) -> None:
    first, second = (lodger("demo", "--for", "1s", "--keep", cwd=tmp_path) for _ in range(2))
    assert [(said.code, "Continuing with the ledger" in said.out) for said in (first, second)] == [
        (0, False),
        (0, True),
    ]


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
