"""Chapter I, classes 125, 126, 133, 134 and 136: host calls of a command with arbitrary names, numbers and pointers."""

from functools import partial
from typing import Any

from lodger.escape.attack_files import attacks
from lodger.escape.case import COMMANDS, Case
from lodger.escape.evidence import answers, ends_as, where
from lodger.escape.modules import command, commands_of, data
from lodger.sandbox.outcome import Outcome

_WAT = attacks(__file__, ".wat")

_SAY = "(call $say (i32.const 1))"
_MANY = "".join(f'(import "env" "f{number}" (func))' for number in range(900))
_FORGERS = dict(_WAT["shared"])["forgers"]

_NUMBERS = data(
    900,
    "\\00\\00\\00\\00\\00\\00\\80\\bf\\00\\00\\80\\7f\\01\\02\\83\\7f\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\f0\\7f",
)


def _bytes(text: str) -> int:
    """Return the number of bytes of an assembler text: an escape is a backslash and two digits."""
    return len(text) - 2 * text.count("\\")


_CHECKS = {
    "no_such_function": ends_as(Outcome.COMPILE_ERROR, says="imports functions that do not exist"),
    "no_result": where("no result", lambda value: value is None),
}


def _importing(text: str) -> dict[str, Any]:
    """Return a command that imports something."""
    return {"wasm": partial(command, _SAY, imports=text)}


def _forging(call: str) -> dict[str, Any]:
    """Return a command that says the answer of a call."""
    forges = "$vector" in call or "$into" in call or "$sleep" in call
    return {"wasm": partial(command, f"(call $say {call})", extra=_FORGERS if forges else "")}


def _number(value: str, bits: str) -> dict[str, Any]:
    """Return a command that says a number, and the check of its bits."""
    return {"seen": answers(int(bits, 16)), "wasm": partial(command, f"(call $say {value})", extra=_NUMBERS)}


def _writing(text: str) -> dict[str, Any]:
    """Return a command that writes a text to its standard output."""
    body = f"(call $out (i32.const 1) (i32.const 1024) (i32.const {_bytes(text)}))"
    return {"wasm": partial(command, body, extra=data(1024, text))}


CASES = [
    *commands_of(__file__, checks=_CHECKS, importing=_importing, forging=_forging, number=_number, writing=_writing),
    Case(
        "I125-many",
        "closed_imports",
        "the import many",
        expect=(Outcome.COMPILE_ERROR,),
        seen=_CHECKS["no_such_function"],
        story="A module imports functions that do not exist: it is refused with their names before it runs.",
        runtimes=COMMANDS,
        wasm=partial(command, _SAY, imports=_MANY),
    ),
]
