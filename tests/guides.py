"""Carries out the fenced blocks of a page in order, in one folder: files, commands, Python; and compares the output that the page shows.

========================  ====================================================================================================
block                     carried out
========================  ====================================================================================================
with ``title="NAME"``     written to that file
``sh``                    each line: ``lodger …`` in this process, with redirections; ``export NAME=value``; ``cat FILE``. Commands of
                          other programs (`OTHER_PROGRAMS`) are not run. A line that fails says so: ``# exit code 1``
``python``                executed, all blocks of a page in one namespace
``text``                  compared with the output of the block before: its words in their order, ``…`` for anything. An id of eight
                          hexadecimal digits stands for the real one, in later commands too
========================  ====================================================================================================

``lodger up`` runs until nothing is left to do and gets SIGTERM then.
"""

import io
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from lodger.engine.cli import entry
from lodger.engine.core.clock import SystemClock, from_us
from lodger.engine.sync import Engine

BLOCK = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
#: Programs that pages name and that a test does not run.
OTHER_PROGRAMS = {
    "caddy", "cd", "cp", "createdb", "curl", "git", "nginx", "pip", "psql", "python", "python3", "sudo", "systemctl",
}  # fmt: skip
_ID = re.compile(r"\b[0-9a-f]{8}\b")
_TITLE = re.compile(r'title="([^"]+)"')
_EXIT = re.compile(r"#.*\bexit code (\d)")
#: Actions in these states have work left once they are due.
OPEN = ("ready", "running", "waiting_retry", "sealed")
PATIENCE_S = 100.0
#: Seconds ahead in which something may come due that a page waits for.
SOON_S = 3
#: Times that nothing was left to do, one after the other, a tenth of a second apart; more where a change feed starts runs, which
#: it does a moment after the change.
QUIET, QUIET_FEED = 5, 30


@dataclass
class Step:
    """One block of a page."""

    language: str
    title: str | None
    text: str


def steps(page: str) -> list[Step]:
    """Return the blocks of a page, in order."""
    found = []
    for indent, language, rest, text in BLOCK.findall(page):
        title = _TITLE.search(rest)
        lines = [line.removeprefix(indent) for line in text.splitlines()]
        found.append(Step(language, title[1] if title else None, "\n".join(lines) + "\n"))
    return found


@dataclass
class Guide:
    """The state of one page: its ids, its Python names, the latest output, and how much was carried out."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    ids: dict[str, str] = field(default_factory=dict)
    output: str = ""
    carried_out: int = 0
    compared: int = 0

    def play(self, page: str) -> None:
        """Carry out every block of a page."""
        for step in steps(page):
            if step.title:
                path = self.folder / step.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text)
            elif step.language == "sh":
                self.output = "".join(self._line(line) for line in step.text.replace("\\\n", " ").splitlines())
            elif step.language == "python":
                self.output = self._python(step.text)
            elif step.language == "text":
                self._compare(step.text)

    def _python(self, code: str) -> str:
        """Execute a block of Python; return what it printed."""
        self.carried_out += 1
        known = set(sys.modules)
        sys.path.insert(0, str(self.folder))
        try:
            with captured() as written:
                exec(compile(code, "guide", "exec"), self.names)
        finally:
            sys.path.remove(str(self.folder))
            self._forget(known)
        return written.getvalue()

    def _forget(self, known: set[str]) -> None:
        """Unload the modules of the page: the next page may have others of the same names."""
        for name in sys.modules.keys() - known:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.folder)):
                del sys.modules[name]

    def _line(self, line: str) -> str:
        """Carry out a line of shell; return what it printed."""
        expected = _EXIT.search(line)
        words = [self.ids.get(word, word) for word in shlex.split(line, comments=True)]
        if not words or words[0] in OTHER_PROGRAMS:
            return ""
        self.carried_out += 1
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            os.environ[name] = value
            return ""
        if words[0] == "cat":
            return Path(words[1]).read_text()
        assert words[0] == "lodger", f"{line}: not a command of Lodger; see OTHER_PROGRAMS"
        words, target, source = redirections(words)
        known = set(sys.modules)
        with captured(source) as written:
            code = up(words[1:], written) if words[1:2] == ["up"] else entry.run(words[1:])
        self._forget(known)
        assert code == int(expected[1] if expected else 0), f"{line}\nended with {code}:\n{written.getvalue()}"
        if target is not None:
            Path(target).write_text(written.getvalue())
            return ""
        return written.getvalue()

    def _compare(self, shown: str) -> None:
        """Compare the latest output with what the page shows; an id of the page stands for one of this run."""
        pattern, groups = [], {}
        for word in shown.split():
            parts = []
            for piece in re.split(r"(…|\b[0-9a-f]{8}\b)", word):
                if piece == "…":
                    parts.append(r".*?")
                elif not _ID.fullmatch(piece):
                    parts.append(re.escape(piece))
                elif piece in self.ids:
                    parts.append(re.escape(self.ids[piece]))
                elif piece in groups:
                    parts.append(f"(?P={groups[piece]})")
                else:
                    groups[piece] = f"id{len(groups)}"
                    parts.append(rf"(?P<{groups[piece]}>[0-9a-f]{{8}})")
            pattern.append("".join(parts))
        real = " ".join(re.sub("[─━]+", " ", self.output).split())
        found = re.search(r"\s+".join(pattern).replace(r"\s+.*?\s+", r"\s.*?"), real, re.DOTALL)
        assert found, f"the page shows:\n{shown}\nthe output is:\n{self.output}"
        self.ids |= {piece: found[name] for piece, name in groups.items()}
        self.compared += 1


def redirections(words: list[str]) -> tuple[list[str], str | None, str | None]:
    """Return the words without redirections, and the files that standard output goes to and standard input comes from."""
    files: dict[str, str] = {}
    for sign in (">", "<"):
        if sign in words:
            at = words.index(sign)
            files[sign] = words[at + 1]
            words = words[:at] + words[at + 2 :]
    return words, files.get(">"), files.get("<")


class _Terminal(io.TextIOWrapper):
    """Text in memory, with bytes below it, as a standard stream has."""

    def getvalue(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]  # the buffer is a BytesIO


@contextmanager
def captured(source: str | None = None) -> Iterator[_Terminal]:
    """Replace the standard streams: output and errors to text, input from a file."""
    written = _Terminal(io.BytesIO(), encoding="utf-8", write_through=True)
    given = _Terminal(io.BytesIO(Path(source).read_bytes() if source else b""), encoding="utf-8")
    before, sys.stdin = sys.stdin, given
    try:
        with redirect_stdout(written), redirect_stderr(written):
            yield written
    finally:
        sys.stdin = before


def up(arguments: list[str], written: _Terminal) -> int:
    """Run ``lodger up`` until its ledger has nothing left to do."""
    ended = threading.Event()
    thread = threading.Thread(target=_stop_when_idle, args=(written, ended))
    thread.start()
    try:
        return entry.run(arguments)
    finally:
        ended.set()
        thread.join()


def _stop_when_idle(written: _Terminal, ended: threading.Event) -> None:
    """Send SIGTERM to this process once its ledger has nothing left to do."""
    end = time.monotonic() + PATIENCE_S
    while "Ctrl-C stops it" not in written.getvalue():  # only then SIGTERM has its handler
        if ended.wait(0.02):
            return
    try:
        with Engine.open(os.environ.get("LODGER_DATABASE", "lodger.db")) as engine:
            quiet, follows = 0, any("changes of" in each.text for each in engine.schedules.list())
            while time.monotonic() < end and quiet < (QUIET_FEED if follows else QUIET) and not ended.wait(0.1):
                quiet = quiet + 1 if idle(engine) else 0
    finally:
        if not ended.is_set():
            os.kill(os.getpid(), signal.SIGTERM)


def idle(engine: Engine) -> bool:
    """Whether no slot is due and no due action is unfinished, now or within `SOON_S`."""
    now = from_us(SystemClock().now_us()) + timedelta(seconds=SOON_S)
    late = any(each.next_at and each.next_at <= now for each in engine.schedules.list())
    return not late and not any(
        action.due_at <= now for state in OPEN for action in engine.actions.list(state=state, limit=500)
    )
