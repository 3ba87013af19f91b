"""Every error code of Lodger, with what is said under it: read from the sources themselves, so that no list can lag behind.

``python -m lodger.engine.cli.error_catalogue > docs/reference/errors.md`` writes the page, ``lodger errors CODE`` explains one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from lodger.engine.core.explanations import OUTCOMES, REASONS, limits_of
from lodger.engine.recurrence.rrule.faults import TEACH

#: Who raises it, and what that is to whom asks: HTTP's status, or where else it is met.
KINDS = {
    "InputError": "422", "RuleInvalid": "422", "RuleNeverFires": "422", "NotFound": "404", "Conflict": "409", "Stale": "412",
    "Unavailable": "503", "SandboxError": "503", "LimitInvalid": "422", "unauthorized": "401", "Usage": "command line",
    "CallRefused": "script",
}  # fmt: skip
_CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9…]+)*", re.ASCII)
_PACKAGES = ("lodger.engine", "lodger.sandbox")
#: Codes that are put together from what somebody else says.
COMPOSED = {
    # Said inside the sandbox, by the standard library.
    "locale_unknown": (
        "script",
        "a locale or an option of Intl that this runtime does not have",
        "write the format out",
    ),
    "option_unknown": ("script", "a call has no option of that name", "use the name that the message says"),
    "internal_error": ("500", "something that nobody foresaw: a fault of Lodger's; the log has it whole", "report it"),
    "system_error": (
        "command line",
        "the system refused: a place that is not there, is full or may not be written",
        "check it",
    ),
}


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One code.

    Attributes:
        met: HTTP's status, ``command line``, ``script`` (what a script can catch), ``outcome`` (of an attempt), ``reason`` (of an action).
        said: what is said under it, ``…`` where values stand.
        fixes: what to do.
    """

    code: str
    met: tuple[str, ...]
    said: tuple[str, ...]
    fixes: tuple[str, ...]


@cache
def table() -> tuple[ErrorCode, ...]:
    """Give every code, in order."""
    found: dict[str, tuple[dict[str, None], dict[str, None], dict[str, None]]] = {}
    for met, code, what, fix in (*_raised(), *_explained()):
        places, said, fixes = found.setdefault(code, ({}, {}, {}))
        places[met] = None
        said[what] = None
        if fix:
            fixes[fix] = None
    return tuple(
        ErrorCode(code, tuple(sorted(met)), tuple(said), tuple(fixes))
        for code, (met, said, fixes) in sorted(found.items())
    )


def page() -> str:
    """Give the page of the documentation."""
    lines = [
        "# Errors",
        "",
        "Made from the sources by `python -m lodger.engine.cli.error_catalogue`. Every error says its code, what happened, why, and how to",
        "fix it; the code stays, the words may get better. `met` is the status over HTTP (in Python: `InputError` 422, `NotFound` 404,",
        "`Conflict` 409, `Unavailable` 503), `command line` where only that says it, or `script`: what a script can catch from a host",
        "call. How an attempt ended is met as `outcome`, why an action did not run, or waits, as `reason`. `…` stands for values.",
        "`lodger errors CODE` explains one.",
        "",
        "| code | met | what happened | what to do |",
        "|---|---|---|---|",
    ]
    for each in table():
        said, fixes = ("<br>".join(_cell(text) for text in texts[:4]) for texts in (each.said, each.fixes))
        lines.append(f"| `{each.code}` | {', '.join(each.met)} | {said} | {fixes} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"[|<>*`\\]", lambda found: "\\" + found[0] if found[0] != "<" else "&lt;", " ".join(text.split()))


def _raised() -> Iterator[tuple[str, str, str, str]]:
    for code, (met, what, fix) in COMPOSED.items():
        yield met, code, what, fix
    for package in _PACKAGES:
        for source in _sources(files(package)):
            tree = ast.parse(source.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    yield from _of_call(source.name, node)


def _explained() -> Iterator[tuple[str, str, str, str]]:
    for outcome, about in OUTCOMES.items():
        limits = limits_of(outcome)
        yield "outcome", outcome.value, about.what + (f": {limits}" if limits else ""), about.fix
    for reason, about in REASONS.items():
        yield "reason", reason, about.what, about.fix


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir() and each.name not in {"__pycache__", "escape", "demo", "bench", "sim"}:
            yield from _sources(each)
        elif each.name.endswith(".py"):
            yield each


def _of_call(file: str, node: ast.Call) -> Iterator[tuple[str, str, str, str]]:
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    met, first = KINDS.get(name), 0
    if name == "fault":  # of the languages of recurrence
        met = "422"
    elif name == "check" and len(node.args) == 4:  # of names: lodger.engine.core.access.names
        met, first = "422", 1
    elif (file, name) in _TELLERS:
        met, first = _TELLERS[file, name]
    elif name in {"Refused", "words"} and node.args:
        # Of the API, where the status stands first; of the way out it has no code.
        statuses = [each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)]
        met, first = next((str(each) for each in statuses if isinstance(each, int)), None), 1
    if met is None or len(node.args) <= first + 1:
        return
    code, what = _text(node.args[first]), _text(node.args[first + 1])
    if file == "expose.py" and name == "_refused":
        code = f"expose_{code}"
    if _CODE.fullmatch(code) and (what != "…" or name == "CallRefused"):
        fix = next((_text(each.value) for each in node.keywords if each.arg == "fix"), "")
        if not fix and name in {"check", "words", "unauthorized", "_refused"}:  # where it stands behind what happened
            fix = _text(node.args[min(first + 2, len(node.args) - 1)])
        yield met, code, what, fix or TEACH.get(code, ("", ""))[1]


#: Functions that raise what they are told, by file: what it is to whom asks, and which argument is the code.
_TELLERS = {
    ("expose.py", "_refused"): ("422", 0),  ("asking.py", "_unavailable"): ("503", 0),
}  # fmt: skip


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body)} / {_text(node.orelse)}"
    return "…"


if __name__ == "__main__":
    sys.stdout.write(page())
