"""Names of files and lines of text that tenants choose, and limited Node.js: the engine's own parts are called, without a script."""

import json
import subprocess
from dataclasses import dataclass

from lodger.escape.attack_files import cases_of
from lodger.escape.case import ENGINE
from lodger.escape.cases.tenants.rules import figures
from lodger.escape.evidence import Escaped, Trial, Unseen, value_of
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Report

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


CASES = [
    *cases_of(
        __file__,
        checks={"refused": _refused, "on_its_line": _on_its_line, "nothing_done": _nothing_done},
        common={"runtimes": ENGINE},
        name=lambda text: {"act": NameFile(json.loads(text))},
        line=lambda text: {"act": SayText(json.loads(text))},
        node=lambda code: {"act": RunNode(_FRAME.format(code))},
    )
]
