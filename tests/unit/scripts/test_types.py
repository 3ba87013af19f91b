"""The TypeScript declarations agree with the globals."""

import re
from importlib.resources import files

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)

DECLARED = re.compile(r"^declare (?:const|function|class) (\w+)", re.MULTILINE)


def test_every_declared_global_exists_and_every_global_is_declared(run) -> None:
    declared = set(DECLARED.findall((files("lodger.stdlib") / "types" / "globals.d.ts").read_text()))
    there = set(run("return Object.getOwnPropertyNames(globalThis)").result)
    assert declared <= there
    # Only the guest's extensions and names of snippets need no declaration.
    language = set(run("return Object.getOwnPropertyNames(globalThis)").result) - declared
    assert not {name for name in language if name[0].islower()} - LOWER


LOWER = {
    "parseInt", "parseFloat", "isNaN", "isFinite", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent",
    "escape", "unescape", "undefined", "eval", "globalThis", "action", "echo",
}  # fmt: skip
