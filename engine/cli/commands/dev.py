"""``lodger dev``: a folder of scripts on a virtual clock; with keys on a terminal, as lines in a pipe."""

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lodger.engine.cli.commands.check import Folder
from lodger.engine.cli.platform import File, functions
from lodger.engine.core.clock import zulu
from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import visible
from lodger.engine.output import inputs
from lodger.engine.output.result_output import is_for_program, say, write_result
from lodger.sandbox.job import LAST_YEAR

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lodger.engine.workbench.dev_session import DevSession, Report

#: Read in place of a key when standard input has ended.
END = "\x04"


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """Read single keys for the block; yields a function that waits some seconds for a key and returns it, '' if none was pressed."""
    import termios
    import tty

    waiting = ""

    def pressed_key(seconds: float) -> str:
        """Return the next key that is pressed within so many seconds, "" for none."""
        nonlocal waiting
        if not waiting and select.select([sys.stdin], [], [], seconds)[0]:
            # Not by the stream, which would hold back keys that were pressed quickly.
            waiting = os.read(sys.stdin.fileno(), 64).decode("ascii", "ignore") or END
        key, waiting = waiting[:1], waiting[1:]
        return key

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield pressed_key
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


#: Speeds of the virtual clock, in seconds a second, and seconds between two looks at keys and at files.
SPEEDS = (1, 10, 60, 600, 3600, 21_600, 86_400)
LOOK_S, FILES_S = 0.1, 0.5
#: Seconds after which the keys are looked at while many slots are due.
PATIENCE_S = 0.5
#: First and last year in which a session begins.
MIN_YEAR, MAX_YEAR = 1971, LAST_YEAR
#: Maximum number of steps of one command, and of schedules that are shown.
MAX_STEPS, SHOWN = 100_000, 9


def dev(
    folder: Folder = Path(),
    start: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Instant at which the virtual clock starts. Default: now.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=0, max=MAX_STEPS, help="Jump to the next slot so many times, and end.")
    ] = None,
    length: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Run so long, such as 1d, and end.")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="NAME", help="Run a schedule or script at once; may be repeated."),
    ] = None,
    allow_fetch: Annotated[
        bool, typer.Option("--allow-fetch", help="Send requests that have no recording in NAME.fetches.json.")
    ] = False,
    platform: File = None,
) -> None:
    """Run a folder of scripts on a virtual clock, in the real sandbox; scripts are reloaded when they are saved."""
    from lodger.engine.workbench.dev_session import open_session

    begin = inputs.instant("--start", start or "now")
    if not MIN_YEAR <= begin.year <= MAX_YEAR:
        raise Usage("instant_unreadable.start", first=MIN_YEAR, last=MAX_YEAR)
    end = None if length is None else _end(begin, length)
    failed: list[bool] = []
    bounded = end is not None or steps is not None or bool(run)
    terminal = not bounded and not is_for_program() and sys.stdout.isatty() and sys.stdin.isatty()

    def write_report(given: "Report") -> None:
        """Print a report, and note whether it tells of a failure."""
        failed.append(_is_failure(given))
        write_result({name: value for name, value in given.items() if name != "frame"})
        for line in report_lines(given):
            say(line)

    if not terminal and not bounded:
        raise Usage("dev_unbounded")
    with open_session(folder, begin, write_report, allow_fetch=allow_fetch, functions=functions(platform)) as session:
        if terminal:
            Screen(session).follow()
            return
        for name in run or ():
            session.run_now(name)
        for _ in range(steps or 0):
            if not session.step():
                break
        if end is not None:
            session.go_to(end)
        write_report({"kind": "time", "at": zulu(session.now), "next": [
            {"schedule": each.name, "at": zulu(each.next_at)} for each in session.schedules() if each.next_at
        ]})  # fmt: skip
    if any(failed):
        raise typer.Exit(1)


def _end(begin: datetime, length: str) -> datetime:
    """Return the end of a simulated time of this length; raises InputError or Usage (length_invalid)."""
    from lodger.engine.recurrence.duration import parse_duration

    try:
        return begin + timedelta(microseconds=parse_duration(length))
    except OverflowError:
        raise Usage("length_invalid.far", length=length) from None


def _is_failure(given: "Report") -> bool:
    """Whether a report is of a run that did not end ok, or of an error in the folder."""
    if given["kind"] == "run":
        return bool(given["outcome"] != "ok")
    return bool(given["kind"] == "finding" and given["level"] == "error")


def report_lines(given: "Report") -> list[str]:
    """Return a report as lines for people."""
    match given["kind"]:
        case "log":
            return [f"{_time(given['at'])}  {given['level']:7} {given['script']}: {given['text']}"]
        case "skipped":
            return [f"{_time(given['at'])}  skipped {given['schedule']}: {given['reason']}"]
        case "reload":
            what = (
                f"{given['script']} is at version {given['version']}"
                if "script" in given
                else f"schedule {given['schedule']}"
            )
            return [f"{_time(given['at'])}  saved   {what}{' deleted' if given.get('deleted') else ''}"]
        case "finding":
            place = ":".join(str(given[name]) for name in ("file", "line", "column") if given[name] is not None)
            fix = [f"    fix: {given['fix']}"] if given["fix"] else []
            return [f"{place}: {given['level']}: {given['message']}  [{given['code']}]", *fix]
        case "time":
            return [
                f"{_time(given['at'])}  now",
                *(f"    next: {_time(each['at'])}  {each['schedule']}" for each in given["next"][:SHOWN]),
            ]
        case _:
            return _run_lines(given)


def _run_lines(given: "Report") -> list[str]:
    """Return the lines for people about a run: how it ended, its error or result, and its changes."""
    name = f"{given['schedule']} ({given['script']})" if given["schedule"] else given["script"]
    said = [f"{_time(given['at'])}  {given['outcome']:7} {name}, {given['took_ms']} ms"]
    if given["error"]:
        error = given["error"]
        place = ":".join(str(error[part]) for part in ("file", "line") if error[part])
        said.append(f"    {place}{': ' if place else ''}{error['name']}: {error['message']}")
        said += [f"  {line}" for line in error["frame"]]
        said += [f"    next attempt {_time(given['retry_at'])}"] if given["retry_at"] else []
    elif given["result"] is not None:
        said.append(f"    result {json.dumps(given['result'], ensure_ascii=False)}")
    return said + [f"    {line}" for line in given["diff"]]


def _time(text: str) -> str:
    """Return an instant without fractions of a second."""
    return text.partition(".")[0].removesuffix("Z") + "Z"


class Screen:
    """The terminal: reports scroll; below them stand the clock, the next slots and the keys."""

    def __init__(self, session: "DevSession") -> None:
        self._session = session
        self._speed = 0
        self._paused = False
        self._chosen = 0
        self._now = session.now
        self._schedules = session.schedules()
        self._due = session.next_due()

    def follow(self) -> None:
        """Follow the clock and the keys until q."""
        from rich.console import Console
        from rich.live import Live

        looked = last = time.monotonic()
        with keys() as pressed, Live(console=Console(highlight=False), auto_refresh=False, transient=True) as shown:
            while True:
                shown.update(self._frame(), refresh=True)
                key = pressed(LOOK_S)
                if key in {"q", "Q", END}:
                    return
                changed = self._press(key)
                now = time.monotonic()
                if not self._paused:
                    self._now += timedelta(seconds=(now - last) * SPEEDS[self._speed])
                last = now
                if now - looked >= FILES_S:
                    looked, changed = now, self._session.reload(self._now) or changed
                if self._due is not None and self._due <= self._now:
                    self._catch_up()
                    changed = True
                if changed:
                    self._now = max(self._now, self._session.now)
                    self._schedules, self._due = self._session.schedules(), self._session.next_due()
                    last = time.monotonic()

    def _catch_up(self) -> None:
        """Run the actions that are due up to the shown instant; if that takes long, the shown clock waits, so that keys are still
        handled."""
        end = time.monotonic() + PATIENCE_S
        while self._due is not None and self._due <= self._now and time.monotonic() < end:
            self._session.step()
            self._due = self._session.next_due()
        if self._due is not None and self._due <= self._now:
            self._now = self._session.now

    def _press(self, key: str) -> bool:
        """Handle a key; return whether anything may have happened in the ledger."""
        if key == "n":
            self._session.step()
            self._now = self._session.now
        elif key == "r" and (names := self._names()):
            self._session.go_to(self._now)
            self._session.run_now(names[min(self._chosen, len(names) - 1)])
        elif key in {"+", "="}:
            self._speed = min(self._speed + 1, len(SPEEDS) - 1)
        elif key == "-":
            self._speed = max(self._speed - 1, 0)
        elif key == " ":
            self._paused = not self._paused
        elif key.isdigit() and key != "0":
            self._chosen = int(key) - 1
        return key in {"n", "r"}

    def _names(self) -> list[str]:
        """Return the choices of the key r: schedules, then scripts without one."""
        scheduled = [each.name for each in self._schedules]
        bound = {step["script"] for each in self._schedules for step in each.steps}
        return [
            *sorted(scheduled),
            *(name for name, each in self._session.folder.scripts.items() if name not in bound and not each.is_library),
        ]

    def _frame(self) -> "RenderableType":
        """Return what the terminal shows now: the clock, the next slots and the keys."""
        from rich.console import Group
        from rich.text import Text

        state = "paused" if self._paused else f"{SPEEDS[self._speed]} x"
        head = Text(f" {_time(zulu(self._now))} ", "bold reverse")
        head.append(
            f"  {state}   n next slot  r run  1-9 choose  +/- speed  space pause  q quit", "not bold not reverse"
        )
        rows: list[RenderableType] = [Text(""), head]
        by_name = {each.name: each for each in self._schedules}
        for number, name in enumerate(self._names()[:SHOWN]):
            mark, one = ("›" if number == self._chosen else " "), by_name.get(name)
            following = "" if one is None else f"{_time(zulu(one.next_at)) if one.next_at else 'no slot':22}{one.text}"
            style = "bold" if number == self._chosen else ""
            rows.append(
                Text(visible(f"{mark} {number + 1}  {name:24} {following}"), style, no_wrap=True, overflow="ellipsis")
            )
        return Group(*rows)
