"""Chapter I, classes 125, 126, 133, 134 and 136: host calls of a command with arbitrary names, numbers and pointers."""

from collections.abc import Callable

from lodger.escape.attack_files import attacks
from lodger.escape.case import COMMANDS, Case, commands
from lodger.escape.evidence import answers, both, ends_as, survives, tells_nothing, where
from lodger.escape.modules import command, data
from lodger.sandbox.outcome import Outcome

_WAT = attacks(__file__, ".wat")

BADF, FAULT = 8, 21
_PROCESS = ("seccomp", "landlock", "root", "namespaces", "uid")
_SAY = "(call $say (i32.const 1))"


def _wasm(body: str, **more: str) -> Callable[[], bytes]:
    """Return a function that assembles a command from its body."""
    return lambda: command(body, **more)


_MANY = "".join(f'(import "env" "f{number}" (func))' for number in range(900))
_FILES = (("canary", '"CANARY_PATH"', "the canary file"), ("passwd", '"/etc/passwd"', "a file of the system"))

_FORGERS = dict(_WAT["shared"])["forgers"]

_NUMBERS = data(
    900,
    "\\00\\00\\00\\00\\00\\00\\80\\bf\\00\\00\\80\\7f\\01\\02\\83\\7f\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\f0\\7f",
)


def _bytes(text: str) -> int:
    """Return the number of bytes of an assembler text: an escape is a backslash and two digits."""
    return len(text) - 2 * text.count("\\")


CASES = [
    *(
        Case(
            f"I125-{name}",
            "closed_imports",
            f"the import {name}",
            expect=(Outcome.COMPILE_ERROR,),
            seen=ends_as(Outcome.COMPILE_ERROR, says="imports functions that do not exist"),
            story="A module imports functions that do not exist: it is refused with their names before it runs.",
            runtimes=COMMANDS,
            wasm=_wasm(_SAY, imports=text),
        )
        for name, text in (*_WAT["imports"], ("many", _MANY))
    ),
    *(
        Case(
            f"I126-{name}-{mark}",
            "nothing_opened",
            f"{mechanism}: {what}",
            seen=answers(0),
            story="A command searches its descriptors for a file of the host.",
            behind=_PROCESS,
            context=context,
            runtimes=COMMANDS,
            wasm=_wasm(body),
        )
        for name, mechanism, body in _WAT["opened"][:3]
        for mark, context, what in _FILES
    ),
    *commands(
        "I126",
        "nothing_opened",
        _WAT["opened"][3:],
        lambda body: {"wasm": _wasm(body)},
        seen=answers(0),
        story="A command searches its descriptors for a file of the host.",
    ),
    *commands(
        "I126",
        "no_arguments",
        _WAT["reported"],
        lambda body: {"wasm": _wasm(body)},
        seen=answers(0),
        story="The host's arguments and environment are not visible to a command.",
    ),
    *commands(
        "I133",
        "checked_pointers",
        _WAT["forged"],
        lambda call: {
            "wasm": _wasm(
                f"(call $say {call})",
                extra=_FORGERS if "$vector" in call or "$into" in call or "$sleep" in call else "",
            )
        },
        seen=both(survives, answers(FAULT)),
        story="Every pointer and length from a command is checked against the memory's size.",
    ),
    *commands(
        "I134",
        "no_paths",
        _WAT["traps"],
        lambda body, more: {"wasm": _wasm(body, **more)},
        expect=(Outcome.SCRIPT_ERROR,),
        seen=both(ends_as(Outcome.SCRIPT_ERROR), tells_nothing),
        story="The text of a trap contains nothing of the host.",
    ),
    *commands(
        "I136",
        "one_nan",
        _WAT["nans"],
        lambda value, more: {
            "seen": answers(int(more["bits"], 16)),
            "wasm": _wasm(f"(call $say {value})", extra=_NUMBERS),
        },
        story="The bits of NaN would depend on the processor, unless they are canonical.",
    ),
    Case(
        "A13-command-clock",
        "coarse_clock",
        "the finest digits of WASI's clock",
        seen=answers(0),
        story="The command's clock must not be more precise than a millisecond.",
        runtimes=COMMANDS,
        wasm=_wasm(
            "(local $i i32) (local $n i32) (loop $l (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 200)))"
            " (local.set $n (i32.or (local.get $n) (i32.wrap_i64 (i64.rem_u (i64.load (i32.const 200)) (i64.const 1000000)))))"
            " (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100)))) (call $say (local.get $n))"
        ),
    ),
    *commands(
        "C42-command",
        "checked_result",
        _WAT["results"],
        lambda text: {
            "wasm": _wasm(
                f"(call $out (i32.const 1) (i32.const 1024) (i32.const {_bytes(text)}))", extra=data(1024, text)
            )
        },
        says="standard output that is {}",
        expect=(Outcome.SCRIPT_ERROR, Outcome.BAD_REQUEST),
        seen=both(survives, where("no result", lambda value: value is None)),
        story="A result that parsers read differently is refused.",
    ),
]
