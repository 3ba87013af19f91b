"""TypeScript to JavaScript: Node.js replaces types by spaces, so that a line and a column mean the same in both.

Each script has a limited process (:mod:`lodger.sandbox.nodejs.limited_node`), whose program is ``type_stripping.js``. The tenant's text
is data to a parser in WebAssembly in it and is never executed.
"""

import json
import logging
import re
import subprocess
import threading
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import ScriptError
from lodger.sandbox.limits import MIB
from lodger.sandbox.nodejs import limited_node
from lodger.sandbox.nodejs.limited_node import TooCostly
from lodger.sandbox.tenant_locks import TenantLocks

#: Limits of one script: CPU time, which the kernel counts in seconds, time in all, JavaScript heap.
CPU_S, WALL_S, HEAP_MIB = 3, 30.0, 256
#: Time in which a process without an answer ends by itself, seconds.
END_S = 5.0
#: Maximum number of processes at once, and how long another one waits, seconds.
AT_ONCE, PATIENCE_S = 2, 60.0
_journal = logging.getLogger("lodger.sandbox")
#: Codes of errors in the source.
_ITS_ERRORS = ("ERR_INVALID_TYPESCRIPT_SYNTAX", "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX")
_NEWLINE = re.compile(r"\r\n|[\n\r\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Stripped:
    """The result of one script.

    Attributes:
        files: JavaScript by file name; empty if there is an error.
        error: the first place that is not TypeScript or makes code; None if there is none.
        cpu_ms: CPU time of the process.
    """

    files: dict[str, str]
    error: ScriptError | None
    cpu_ms: float


_slots = threading.BoundedSemaphore(AT_ONCE)
_locks = TenantLocks()


def is_typescript(name: str) -> bool:
    """Whether a file is TypeScript that is run."""
    return name.endswith(".ts") and not name.endswith(".d.ts")


def strip(tenant: str, modules: Mapping[str, str]) -> Stripped:
    """Return the JavaScript of the TypeScript files among these. Blocks; each tenant has one process at a time.

    Raises:
        SandboxError: the package is missing, the process failed, or too many wait.
    """
    files = {name: text for name, text in modules.items() if is_typescript(name)}
    if not files:
        return Stripped({}, None, 0.0)
    node = limited_node.find_node("TypeScript cannot be stripped")
    with _locks.held(tenant):
        if not _slots.acquire(timeout=PATIENCE_S):
            raise SandboxError(
                "no_worker", "too many scripts wait to be stripped of types", fix="try again in a moment"
            )
        try:
            return _run(node, files)
        finally:
            _slots.release()


def _run(node: Path, files: dict[str, str]) -> Stripped:
    """Strip the types of files in a Node.js process."""
    program = Path(__file__).with_suffix(".js").read_text("utf-8")
    with limited_node.start(node, program, cpu_s=CPU_S, heap_mib=HEAP_MIB) as process:
        try:
            answer, spent_ms = _exchange(process, files)
        finally:
            process.kill()
        assert process.stderr is not None
        said = process.stderr.read(limited_node.CHUNK) if answer is None else b""
    if answer is None:
        if process.returncode in limited_node.STOPPED:
            message = f"stripping its types took more than {CPU_S} s of CPU time or {limited_node.DATA_BYTES // MIB} MiB of memory"
            return Stripped({}, ScriptError("LimitExceeded", message), spent_ms)
        _journal.warning("Node.js ended with %s: %s", process.returncode, said[-1000:].decode("utf-8", "replace"))
        raise SandboxError(
            "no_worker", "Node.js did not strip the types", why=f"it ended with {process.returncode}", fix="try again"
        )
    return _read(answer, files, spent_ms)


def _exchange(process: "subprocess.Popen[bytes]", files: dict[str, str]) -> tuple[bytes | None, float]:
    """Send the files when the process is ready; return its answer, None without a whole one, and its CPU time in milliseconds."""
    given, answer, patience_s = json.dumps(list(files.items())).encode() + b"\n", b"", END_S
    most = 6 * len(given) + limited_node.CHUNK
    try:
        if limited_node.exchange(process, b"", WALL_S, most) == b"R":
            answer = limited_node.exchange(process, given, WALL_S, most)
    except TooCostly:
        patience_s = 0.0
    cpu, _, text = answer.partition(b" ")
    if text.endswith(b"\n") and cpu.isdigit():
        # Its own figure: the kernel counts a process only for a parent that has waited for its end.
        return text, max(int(cpu[:9]) / 1000, limited_node.end(process) * 1000)
    return None, limited_node.end(process, patience_s) * 1000


def _read(answer: bytes, files: dict[str, str], spent_ms: float) -> Stripped:
    """Return the stripped files from the answer of the process, or the first syntax error in them."""
    try:
        found = json.loads(answer)
        problem = found.get("")
        if problem is not None:
            return Stripped({}, _error(problem, files[problem["name"]]), spent_ms)
        stripped = {name: found[name] for name in files}
        wrong = [name for name, text in stripped.items() if _lines(text) != _lines(files[name])]
        json.dumps(stripped, ensure_ascii=False).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SandboxError("no_worker", "Node.js did not strip the types", why=f"its answer: {error}") from error
    if wrong:
        raise SandboxError("no_worker", "Node.js did not strip the types", why=f"{wrong[0]} has other lines")
    return Stripped(stripped, None, spent_ms)


def _lines(text: str) -> int:
    """Count the line ends of a text."""
    return len(_NEWLINE.findall(text))


def _error(problem: dict[str, str], source: str) -> ScriptError:
    """Return a syntax error of Node.js as the script's error, with its place."""
    if problem["code"] not in _ITS_ERRORS:  # the parser's own stack or memory ended
        message = "the source is nested too deeply, or too large, for the parser"
        return ScriptError("LimitExceeded", message, file=problem["name"])
    # The stack begins with FILE:LINE, the line, and ^^^ below the place.
    head, _, rest = problem["stack"].partition("\n")
    line, marks = re.search(r":(\d{1,9})$", head), re.search(r"^( *)\^", rest, re.MULTILINE)
    number = int(line[1]) if line else None
    text = source.split("\n")[number - 1] if number and number <= source.count("\n") + 1 else ""
    return ScriptError(
        "SyntaxError",
        problem["message"].replace(" in strip-only mode", ": it makes code, and only types are removed"),
        file=problem["name"],
        line=number,
        column=_column(text, len(marks[1])) if line and marks else None,
    )


def _column(text: str, width: int) -> int:
    """Return the column of a line at which the shown text has this width: a tab is shown as four spaces."""
    for at, character in enumerate(text):
        if width <= 0:
            return at + 1
        width -= 4 if character == "\t" else 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return len(text) + 1
