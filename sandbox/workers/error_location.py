"""Correction of an error's location: finds the line that the message names and removes stack frames outside the script. Pure.

A script can write anything into an error's ``stack``, so only frames in its own modules are kept.

QuickJS records positions of calls and operators, but not of reading a property or a variable, and so reports a position a line or two too
early. The message contains the name that was read; its first use after the reported position is taken. If there is none, nothing changes.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from lodger.sandbox.job import ScriptError
from lodger.sandbox.source_tokens import line_and_column, tokens
from lodger.sandbox.workers.verdict import Verdict
from lodger.stdlib import declarations

_NAME = r"[A-Za-z_$][\w$]*"
_PROPERTY = re.compile(rf"cannot (?:read|set) property '({_NAME})' of (?:undefined|null)(?:: .*)?", re.DOTALL)
_VARIABLE = re.compile(rf"({_NAME}) is not defined")
_CALLED = re.compile(rf"([a-z]+)\.{_NAME} is not a function")
_FARTHEST = 4096
_FRAME = re.compile(r"    at (?:[^\n]{0,500} \()?(?P<file>[^()\n]+?):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?\)?")
_NATIVE = re.compile(r"    at [\w$.<>#\[\] -]{1,200} \(native\)")


def restrict_to_script(found: Verdict, modules: Mapping[str, str]) -> Verdict:
    """Return the verdict without stack frames and locations outside the script's modules."""
    error = found.error
    if error is None:
        return found
    frames = [(text, _FRAME.fullmatch(text)) for text in error.stack.split("\n")]
    lines = {name: source.count("\n") + 1 for name, source in modules.items()}
    kept = [
        (text, at)
        for text, at in frames
        if (at is not None and int(at["line"]) <= lines.get(at["file"], 0)) or _NATIVE.fullmatch(text)
    ]
    place = (error.file, error.line, error.column)
    if error.file is not None and (error.line or 0) > lines.get(error.file, -1):
        first = next((at for _, at in kept if at is not None), None)
        column = None if first is None or first["column"] is None else int(first["column"])
        place = (None, None, None) if first is None else (first["file"], int(first["line"]), column)
    stack = "\n".join(text for text, _ in kept)
    return replace(found, error=replace(error, stack=stack, file=place[0], line=place[1], column=place[2]))


def relocate(found: Verdict, modules: Mapping[str, str]) -> Verdict:
    """Return the verdict with the error's location moved to the use of the name in its message, which searches 4 KiB.

    The message of a name of another platform says what to use, and that of a member which a run's does not have, which it has.
    """
    error = found.error
    if error is None or error.file is None or error.line is None or error.column is None:
        return found
    source = modules.get(error.file)
    if (called := _CALLED.fullmatch(error.message)) and error.name == "TypeError" and (said := _has(called[1])):
        own = re.search(rf"\b(?:const|let|var|function|class|import)\s+{called[1]}\b", source or "", re.ASCII)
        return found if own else replace(found, error=replace(error, message=f"{error.message}: {said}"))
    wanted = _PROPERTY.fullmatch(error.message)
    variable = wanted is None
    wanted = wanted or _VARIABLE.fullmatch(error.message)
    if source is None or wanted is None:
        return found
    start = _offset(source, error.line, error.column)
    at = None if start is None else _reading(source, start, wanted[1], variable=variable)
    if variable and wanted[1] in declarations.INSTEAD and error.name == "ReferenceError":
        error = replace(error, message=f"{error.message}: use {declarations.INSTEAD[wanted[1]]}")
    return replace(found, error=error if at is None else _relocated(error, source, at))


def _has(name: str) -> str:
    """Return what a member of a run has that can be called; "" for another name."""
    if name == "db":
        return "name the set first, such as db.orders.find(…)"
    members = (
        declarations.members(declarations.run_types().get(name, ""))
        if name in ("kv", "mail", "events", "schedule")
        else ()
    )
    return f"{name} has {', '.join(sorted(members))}" if members else ""


def _offset(source: str, line: int, column: int) -> int | None:
    """Return the offset of a line and column; None outside of the source."""
    offset = 0
    for _ in range(line - 1):
        offset = source.find("\n", offset) + 1
        if not offset:
            return None
    end = source.find("\n", offset)
    last = len(source) if end < 0 else end
    return offset + column - 1 if offset < offset + column <= last + 1 else None


def _reading(source: str, start: int, name: str, *, variable: bool) -> int | None:
    """Return the offset, after ``start``, at which this name is read, as a variable or else as a property; None if the place is right."""
    text = source[start : start + _FARTHEST]
    before = source[max(0, start - 300) : start]
    if re.search(rf"\b{re.escape(name)}\s*$", before, re.ASCII):
        return None  # the location directly follows the name: it is right
    depth, destructured = 0, None
    last = ("", "", "")  # the three tokens before
    for kind, at, end in tokens(text):
        part, after = text[at:end], text[end : end + 80].lstrip()[:1]
        if kind == "blank":
            continue
        if part in ("{", "("):
            depth += 1
        elif part in ("}", ")"):
            depth -= 1
            if depth < -1 and part == "}":
                return destructured  # the function ended
        elif kind == "string" and not variable and (last[2], part[1:-1], after) == ("[", name, "]"):
            return start + at
        elif kind == "word" and part == name and last[1:] != ("?", "."):  # an optional chain does not raise this error
            dotted = last[2] in (".", "#") and last != (".", ".", ".")
            if dotted != variable and not (variable and after == ":"):
                return start + at
            if not variable and destructured is None and after in (",", "}", "=", ":") and depth > 0:
                destructured = start + at
        last = (*last[1:], part)
    return destructured


def _relocated(error: ScriptError, source: str, at: int) -> ScriptError:
    """Return an error at another place of its file."""
    line, column = line_and_column(source, at)
    old, new = f"{error.file}:{error.line}:{error.column}", f"{error.file}:{line}:{column}"
    first, rest = error.stack.partition("\n")[::2]
    stack = first.replace(old, new) + ("\n" + rest if rest else "")
    return replace(error, line=line, column=column, stack=stack)
