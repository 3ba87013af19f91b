"""The demo's output for hand-made items: the screen at several sizes, the plain lines, text of scripts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from lodger.engine.demo.lines import Lines
from lodger.engine.demo.mailbox import Mail
from lodger.engine.demo.screen import Screen
from lodger.engine.demo.story import Missed, Run, Story, Upcoming

NOW = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)


_PLAIN = Run(NOW, "harbor", "confirm-orders", NOW, 0.004, missed=False, outcome="ok", said="confirmed 5, left 640")


def _run(**changes: Any) -> Run:
    return replace(_PLAIN, **changes)


def _story() -> Story:
    story = Story(begun=NOW - timedelta(seconds=7), ends=NOW + timedelta(seconds=23))
    story.upcoming = (
        Upcoming("bluebird", "cart-reminders", "every 5 seconds (UTC)", NOW + timedelta(seconds=3), "armed"),
        Upcoming("bluebird", "old-one", "once at 2026-01-01 (UTC)", None, "ended"),
    )
    story.tell(Missed("bluebird", "cart-reminders", NOW - timedelta(days=100), NOW - timedelta(seconds=5), "missed"))
    story.tell(_run())
    story.tell(_run(name="monthly-sales", late_s=80 * 86_400.0, missed=True, said="month 2026-08, orders 304"))
    story.tell(
        _run(name="broken-report", outcome="script_error", said="TypeError: not a function",
             place=("  6 |   return { report: total.padLeft(12) };", "    |                          ^"))
    )  # fmt: skip
    story.tell(_run(name="endless", outcome="cpu_limit", stopped_by="stopped by the cpu limit after 304 ms of CPU"))
    story.tell(Mail("shop@a.example", ("kim@b.example",), "You left something behind", "text", "<1@lodger>"))
    return story


def _drawn(story: Story, width: int, height: int) -> str:
    console = Console(file=StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(Screen(story, console, lambda: NOW).drawn(), end="")
    return captured.get()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 60), (60, 20)])
def test_fits_the_terminal(width: int, height: int) -> None:
    lines = _drawn(_story(), width, height).removesuffix("\n").split("\n")
    assert len(lines) == height
    assert max(map(len, lines)) <= width


def test_says_what_a_person_wants_to_see() -> None:
    text = _drawn(_story(), 160, 45)
    for wanted in (
        "every 5 seconds (UTC)", "in 3 s", "4 ms late", "missed 80 d", "confirmed 5, left 640",
        "missed while the engine was off", "return { report: total.padLeft(12) };", "stopped by the cpu limit after 304 ms",
        "kim@b.example", "You left something behind", "ran 2", "failed 2", "mails 1", "23 s left",
    ):  # fmt: skip
        assert wanted in text, wanted


def test_live_runs_fold_into_one_row_and_push_nothing_away() -> None:
    story = _story()
    for _ in range(50):
        story.tell(_run())
    text = _drawn(story, 120, 40)
    assert "×51" in text
    assert "missed 80 d" in text


def test_an_empty_story_can_be_drawn() -> None:
    assert "none yet" in _drawn(Story(begun=NOW), 100, 30)


def test_text_of_scripts_moves_no_cursor_and_is_not_markup() -> None:
    story = Story(begun=NOW)
    story.tell(_run(said="\x1b[2J[red]boo[/red]\x07\n\nx", outcome="script_error"))
    text = _drawn(story, 140, 30)
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "[red]boo[/red]" in text


def test_plain_lines_say_each_item_once_and_what_is_due() -> None:
    story, written = Story(begun=NOW), list[str]()
    lines = Lines(story, written.append, lambda: NOW)
    story.tell(_run())
    story.tell(_run(outcome="script_error", said="TypeError: not a function", place=("  6 | x", "    | ^")))
    story.upcoming = (Upcoming("a", "b", "every hour", NOW - timedelta(days=1), "armed"),)
    lines.refresh()
    assert len(written) == 4, "a clock that still owes slots is not announced"
    story.upcoming = (Upcoming("a", "b", "every hour", NOW + timedelta(minutes=5), "armed"),)
    lines.refresh()
    lines.refresh()
    assert written == [
        "ran     harbor/confirm-orders (4 ms late): confirmed 5, left 640",
        "failed  harbor/confirm-orders (4 ms late): TypeError: not a function",
        "          6 | x",
        "            | ^",
        "due     a/b: every hour; next in 5 min",
    ]
