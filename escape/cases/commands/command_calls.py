"""Chapter I, classes 125, 126, 133, 134 and 136: host calls of a command with arbitrary names, numbers and pointers."""

from functools import partial
from typing import Any

from lodger.escape.attack_files import texts
from lodger.escape.evidence import answers, ends_as, where
from lodger.escape.modules import command, commands_of, data, text_bytes
from lodger.sandbox.outcome import Outcome

_FORGERS = texts(__file__, "shared", ".wat")["forgers"]

_NUMBERS = data(
    900,
    "\\00\\00\\00\\00\\00\\00\\80\\bf\\00\\00\\80\\7f\\01\\02\\83\\7f\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\f0\\7f",
)

_CHECKS = {
    "no_such_function": ends_as(Outcome.COMPILE_ERROR, says="imports functions that do not exist"),
    "no_result": where("no result", lambda value: value is None),
}


def _importing(text: str) -> dict[str, Any]:
    """Return a command that imports something."""
    return {"wasm": partial(command, "(call $say (i32.const 1))", imports=text)}


def _forging(call: str) -> dict[str, Any]:
    """Return a command that says the answer of a call."""
    forges = "$vector" in call or "$into" in call or "$sleep" in call
    return {"wasm": partial(command, f"(call $say {call})", extra=_FORGERS if forges else "")}


def _number(value: str, bits: str) -> dict[str, Any]:
    """Return a command that says a number, and the check of its bits."""
    return {"seen": answers(int(bits, 16)), "wasm": partial(command, f"(call $say {value})", extra=_NUMBERS)}


def _writing(text: str) -> dict[str, Any]:
    """Return a command that writes a text to its standard output."""
    body = f"(call $out (i32.const 1) (i32.const 1024) (i32.const {text_bytes(text)}))"
    return {"wasm": partial(command, body, extra=data(1024, text))}


CASES = [
    *commands_of(__file__, checks=_CHECKS, importing=_importing, forging=_forging, number=_number, writing=_writing)
]
