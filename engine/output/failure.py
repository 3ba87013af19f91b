"""Rendering of errors: what happened, why, how to fix it; for people on stderr, for programs on stdout."""

import errno
import sqlite3
import sys
import traceback
from typing import Any

from lodger.engine.core.errors import Explained, Unavailable, Usage
from lodger.engine.core.plain_text import code_frame, marked, visible
from lodger.engine.output.result_output import write_json
from lodger.sandbox.errors import SandboxError

_MAX_CHARACTERS = 1000
#: A larger number of a line comes from no script.
_MAX_LINE = 1_000_000
#: Set to see the whole traceback of a fault of ours.
TRACEBACK = "LODGER_TRACEBACK"


def described(error: BaseException) -> dict[str, Any]:
    """Return any exception as code, message, why and fix; an unexpected one as a fault of Lodger."""
    if isinstance(error, Explained | SandboxError):
        return error.as_dict()
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(cause)
    if isinstance(error, OSError) and error.errno is not None:  # a deadline of asyncio has none
        row = _SYSTEM.get(error.errno, "system_error")
        return Unavailable(row, path=error.filename or "a file", reason=error.strerror or error).as_dict()
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in last)
    return Unavailable("internal_error.command", type=type(error).__name__, reason=error, place=place).as_dict()


#: Rows of the error table for errors of the operating system.
_SYSTEM = {
    errno.ENOENT: "system_error.absent",
    errno.EACCES: "system_error.denied",
    errno.EPERM: "system_error.denied",
    errno.EROFS: "system_error.read_only",
    errno.ENOSPC: "system_error.full",
    errno.EDQUOT: "system_error.full",
    errno.EMFILE: "system_error.descriptors",
    errno.ENFILE: "system_error.descriptors",
}


def _of_sqlite(error: sqlite3.Error) -> dict[str, Any]:
    """Return an error of SQLite as code, message, why and fix."""
    from lodger.engine.store.drivers.sqlite.connections import explain  # SQLAlchemy, only for these errors

    text = str(error)
    if "no such table" in text:
        return Unavailable("not_a_ledger.empty", reason=text).as_dict()
    return (explain(text, "the database") or Unavailable("database_error", reason=text)).as_dict()


def human(body: dict[str, Any], given: object = None) -> str:
    """Return the text of an error for people, without colour; quoted input is escaped and cut.

    Args:
        given: the text in which the error's ``index`` is marked by a caret.
    """
    lines = [f"error: {_short(body.get('message', ''))}  [{body.get('code', 'error')}]"]
    lines += [f"  {label}: {_short(body[name])}" for name, label in (("why", "why"), ("fix", "fix")) if body.get(name)]
    if isinstance(given, str) and isinstance(body.get("index"), int):
        lines.insert(1, under(given, body["index"]))
    return "\n".join(lines)


def _short(text: str) -> str:
    """Return the beginning of a text, marked for the terminal."""
    return marked(text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}… ({len(text)} characters)")


def under(text: str, index: int) -> str:
    """Return a one-line text with a caret beneath the wrong character."""
    start = max(0, index - 60)
    flat = text[start : start + 110].replace("\n", " ").replace("\t", " ")
    return f"  {visible(flat)}\n  {' ' * len(visible(flat[: index - start]))}^"


def _place(text: str, line: int, column: int | None) -> list[str]:
    """Return a source line with a mark below a column."""
    shown = code_frame("\n" * (line - 1) + text, line, column, before=0)
    # What is far to the right is shown without what stands before it: nothing can point there.
    return shown if column is None or column <= len(text) + 1 else shown[:1]


def tell(error: BaseException, *, as_json: bool) -> int:
    """Write an error, to stderr or as JSON to stdout, and return the exit code."""
    import os

    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    body = described(error)
    if as_json:
        write_json({"error": body})
    else:
        text = human(body, body.get("given"))
        line = body.get("line")
        if isinstance(line, int) and line < _MAX_LINE and body.get("source_line"):
            text = "\n".join([text, *_place(str(body["source_line"]), line, body.get("column"))])
        sys.stderr.write(text + "\n")
    return 2 if isinstance(error, Usage) else 1
