"""Names of files and lines of text that tenants choose, and limited Node.js: the engine's own parts are called, without a script."""

import subprocess
from dataclasses import dataclass
from typing import Any

from lodger.escape.case import ENGINE, Case
from lodger.escape.cases.tenants.rules import figures
from lodger.escape.evidence import Check, Escaped, Trial, Unseen, value_of
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Report

_NAMES = "A file of a script has a name that no tool takes for its own, wherever it is written later."
_LINES = "A text of a script is one event: it begins no line of its own and turns no line of a terminal."
_NODE = "Limited Node.js answers and does nothing else once it has started."
#: name, mechanism, file
FILES = (
    ("git", "settings of git, which names programs", ".git/config"),
    ("git-inside", "settings of git in a folder", "lib/.git/hooks/post-checkout.js"),
    ("git-capitals", "settings of git in capitals", ".GIT/config.json"),
    ("editor", "tasks of an editor", ".vscode/tasks.json"),
    ("npmrc", "settings of npm", ".npmrc"),
    ("package", "a package's scripts", "package.json"),
    ("modules", "a package that others import", "node_modules/x/index.js"),
    ("modules-capitals", "the same in capitals", "Node_Modules/x/index.js"),
    ("up", "a file above the folder", "../main.js"),
    ("absolute", "a file of the host", "/etc/cron.d/x.js"),
    ("backslash", "a path of another system", "..\\main.js"),
    ("shell", "a program", "Makefile"),
    ("line", "a name of two lines", "a\nb.js"),
)
#: name, mechanism, text
TEXTS = (
    ("line", "a line that looks like another run's", "x\n09:00:00 acme/report ok"),
    ("return", "a carriage return, over the line's beginning", "x\rok"),
    ("escape", "a terminal's sequence", "\x1b[2J\x1b]0;x\x07"),
    ("direction", "text that runs backwards", "\u202eko"),
    ("separator", "a separator of lines", "x\u2028ok"),
    ("next-line", "a line end of another standard", "x\x85ok"),
    ("feed", "a form feed and a vertical tab", "x\x0bok\x0cok"),
)
#: class, name, mechanism, JavaScript that is true if it succeeds
PROGRAMS = (
    (74, "read", "a file is read", 'fs.readFileSync("/etc/passwd").length > 0'),
    (74, "attributes", "a file's attributes are read", 'fs.statSync("/etc/passwd").size > 0'),
    (74, "folder", "a folder is listed", 'fs.readdirSync("/").length > 0'),
    (75, "program", "a program is started", 'child.spawnSync("/bin/true").status === 0'),
    (78, "signal", "a process is looked for by a signal", "process.kill(process.pid, 0)"),
    (90, "priority", "its priority is changed", "(os.setPriority(1), true)"),
)
_FRAME = """
const fs = require("fs"), os = require("os"), child = require("child_process");
fs.writeSync(3, "R");
fs.readSync(0, Buffer.alloc(1));
let found = false;
try {{ found = {0}; }} catch {{}}
fs.writeSync(1, found ? "done" : "refused");
"""


@dataclass(frozen=True, slots=True)
class NameFile:
    """Checks the name of a script's file."""

    file: str

    def __call__(self) -> Report:
        """Return a report of the refusal."""
        from lodger.engine.core.errors import InputError
        from lodger.engine.store.scripts.content import check_file_name

        try:
            check_file_name(self.file)
        except InputError as refused:
            return figures(refused=refused.code)
        return figures(refused="")


@dataclass(frozen=True, slots=True)
class SayText:
    """Writes a text of a script as people see it."""

    text: str

    def __call__(self) -> Report:
        """Return a report of the written text."""
        from lodger.engine.core.plain_text import marked

        return figures(said=marked(self.text))


@dataclass(frozen=True, slots=True)
class RunNode:
    """Runs a program in limited Node.js."""

    program: str

    def __call__(self) -> Report:
        """Return a report of the program's answer, empty if it was ended. Raises Unseen."""
        from lodger.sandbox.nodejs import limited_node

        try:
            node = limited_node.find_node("it cannot be attacked")
        except SandboxError as missing:
            raise Unseen(str(missing)) from None
        process = limited_node.start(node, self.program, cpu_s=5, heap_mib=64)
        try:
            assert process.stdout is not None
            limited_node.ready(process.stdout.fileno(), None, 10)  # as its users do: no byte of a tenant before its R
            said, _ = process.communicate(b"x", timeout=10)
        except subprocess.TimeoutExpired:
            said = b""
        finally:
            process.kill()
            process.wait()
        return figures(said=said.decode(errors="replace").removeprefix("R"))


def _refused(trial: Trial) -> str:
    """Check that a name was refused."""
    if not (code := value_of(trial.report)["refused"]):
        raise Escaped("the name was accepted")
    return f"refused: {code}"


def _on_its_line(trial: Trial) -> str:
    """Check that a text of a script was written without control characters, each further line marked."""
    said = value_of(trial.report)["said"]
    if any(not char.isprintable() and char != "\n" for char in said) or not all(
        line.startswith("  | ") for line in said.split("\n")[1:]
    ):
        raise Escaped(f"it was written as {said!r}")
    return f"written as {said!r}"


def _nothing_done(trial: Trial) -> str:
    """Check that a program in limited Node.js did not do what it tried."""
    if (said := value_of(trial.report)["said"]) == "done":
        raise Escaped("it succeeded")
    return said or "the process was ended"


def _case(key: str, wall: str, mechanism: str, act: Any, seen: Check, story: str) -> Case:
    """Return a case that calls the engine, without a worker."""
    return Case(key, wall, mechanism, seen=seen, story=story, runtimes=ENGINE, act=act)


CASES = [
    *(
        _case(f"E74-name-{name}", "file_names", mechanism, NameFile(file), _refused, _NAMES)
        for name, mechanism, file in FILES
    ),
    *(
        _case(f"H123-{name}", "marked_lines", mechanism, SayText(text), _on_its_line, _LINES)
        for name, mechanism, text in TEXTS
    ),
    *(
        _case(f"E{number}-node-{name}", "limited_node", mechanism, RunNode(_FRAME.format(code)), _nothing_done, _NODE)
        for number, name, mechanism, code in PROGRAMS
    ),
]
