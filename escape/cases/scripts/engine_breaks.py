"""Classes 1, 2 and 45: memory errors of the JavaScript engine, and an engine that a script has taken over.

The first table has known errors of the pinned guest (docs/security.md), rewritten from their public descriptions: they do corrupt memory, but
only the guest's own, which ends with the attempt. In the second, a module runs instead of the engine and makes any calls to the host. The
third has values that the native engine's binding would change.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from lodger.escape.attack_files import cases_of
from lodger.escape.case import GUEST, NATIVE, Case, cases
from lodger.escape.evidence import Check, Escaped, Trial, ends_as, value_of
from lodger.escape.modules import data
from lodger.escape.owned_guest import guest
from lodger.sandbox.outcome import Outcome

_LITERALS = data(16, "sadlethr")


def _call(letter: str, count: int = 1, arguments: str = "(i32.const 2048)") -> str:
    """Return the instructions of a host call from a guest that has no JavaScript."""
    place = 16 + "sadlethr".index(letter)
    return f"(drop (call $host_call (i32.const {place}) (i32.const 1) (i32.const 0) (i32.const {count}) {arguments}))"


def _owned(attack: str, **answers: str) -> dict[str, Any]:
    """Return a guest engine under the attacker's control."""
    extra = _LITERALS + "(global $owned (mut i32) (i32.const 0))"
    return {"guest": partial(guest, f"(global.set $owned (i32.const 1)) {attack}", answers=answers, extra=extra)}


#: Messages of a compromised engine instead of the bootstrap's, operation and text: invalid results, outcomes that only the parent decides.
_CLAIMED = ("worker_lost", "engine_fault", "wall_limit", "conflict", "cancelled", "denied", "ok")
_RESULTS = (
    ("half", "half an object", '{"a":1'),
    ("nan", "NaN", "NaN"),
    ("infinity", "a number beyond all", "1e999"),
    ("two", "two values", "1 2"),
    ("twice", "an object with one key twice", '{"a":1,"a":2}'),
    ("hidden", "a number whose digits hide how large it is", "9999999999e299"),
    ("long", "two hundred digits and two hundred places more", "1" * 200 + "e200"),
    ("nothing", "nothing at all", ""),
    ("python", "a value of another language", "{'a': True}"),
)


_ARGUMENTS = (
    (44, "twice", "one key twice", '{"a":1,"a":2}'),
    (44, "twice-deep", "one key twice, deep inside", '[{"x":[{"a":1,"b":2,"a":3}]}]'),
    (44, "twice-escaped", "one key twice, once by an escape", '{"a":1,"\\u0061":2}'),
    (44, "twice-prototype", "a prototype's name twice", '{"__proto__":1,"__proto__":2}'),
    (42, "nan", "NaN", "NaN"),
    (42, "infinity", "less than all numbers", "-Infinity"),
    (42, "exponent", "a number beyond all", "1e999"),
    (42, "digits", "a number of four hundred digits", "9" * 400),
    (42, "hidden", "a number whose digits hide how large it is", "9999999999e299"),
    (42, "long", "two hundred digits and two hundred places more", "1" * 200 + "e200"),
)


def _unanswered(trial: Trial) -> str:
    """Check that no host call was answered."""
    if trial.facts.get("answered") != "0" or not trial.asked:
        raise Escaped(f"{trial.facts.get('answered')} of {len(trial.asked)} calls were answered")
    return f"the call came ({trial.asked[0][1][:60]}) and was refused"


def _said(letter: str, text: str) -> Callable[[], bytes]:
    """Return a function that assembles a guest which sends the host one text by an operation."""
    answers = {"qjs_last_ptr": "(i32.const 512)", "qjs_last_len": f"(i32.const {len(text)})"}
    escaped = "".join(f"\\{byte:02x}" for byte in text.encode())
    # An answer is sent at its second message: the first reports that the script has returned.
    return lambda: guest(
        _call(letter) * (2 if letter == "d" else 1), answers=answers, extra=_LITERALS + data(512, escaped)
    )


def _exactly(wanted: object) -> Check:
    """Return a check that the result is this value."""

    def check_result(trial: Trial) -> str:
        """Raise Escaped unless the script returned the wanted value."""
        if trial.report.outcome is not Outcome.OK or value_of(trial.report) != wanted:
            raise Escaped(f"ended as {trial.report.outcome}, {(trial.report.result or '')[:120]}")
        return f"answered {(trial.report.result or '')[:120]}"

    return check_result


#: Values that the binding of the native engine would change or fail on: script, expected value.
_CONVERTED = (
    ("nul", "a text with a NUL, which the binding cuts", "return 'admin\\u0000evil';", "admin\0evil"),
    (
        "rope",
        "a joined text, which the binding does not know",
        "const s = 'x'.repeat(9000); return s + s;",
        "x" * 18_000,
    ),
    ("half", "half a surrogate pair, which the binding cannot decode", "return '\\ud800';", "\ud800"),
    (
        "to-string",
        "an object whose text never ends, which the binding would ask for",
        "return { toString() { for (;;); }, toJSON() { return 'short'; } };",
        "short",
    ),
    ("date", "a date, which the binding makes an object of its own", "return new Date(0);", "1970-01-01T00:00:00.000Z"),
)

CASES = [
    *cases_of(__file__),
    *cases_of(__file__, ".wat", checks={"exits": ends_as(Outcome.CRASHED, says="exit code")}, owned=_owned),
    *(
        Case(
            f"C45-owned-claims-{outcome.replace('_', '-')}",
            "claimed_outcomes",
            f"the engine, taken over, claims to have ended as {outcome}",
            expect=(Outcome.PROTOCOL_ERROR,),
            seen=ends_as(Outcome.PROTOCOL_ERROR),
            story="A worker may only report outcomes that blame its script; the parent decides all others.",
            runtimes=GUEST,
            guest=_said("e", f'0 {outcome} {{"name":"x","message":"y"}}'),
        )
        for outcome in _CLAIMED
    ),
    *(
        Case(
            f"C{number}-owned-{name}",
            "strict_json",
            f"the engine, taken over, calls with {what}",
            expect=(Outcome.SCRIPT_ERROR,),
            seen=_unanswered,
            story="Two parsers would read it differently, or one of them not at all: it is refused, not repaired.",
            runtimes=GUEST,
            guest=_said("a", f"1 echo {text}"),
        )
        for number, name, what, text in _ARGUMENTS
    ),
    *cases(
        "C45-owned-result",
        "checked_result",
        _RESULTS,
        lambda text: {"guest": _said("d", f"0 {text}")},
        says="the engine, taken over, gives as its result {}",
        expect=(Outcome.PROTOCOL_ERROR, Outcome.BAD_REQUEST),
        seen=ends_as(Outcome.PROTOCOL_ERROR, Outcome.BAD_REQUEST),
        story="A result is checked before it is parsed.",
        runtimes=GUEST,
    ),
    *cases(
        "A2-converted",
        "flat_text",
        _CONVERTED,
        lambda script, wanted: {"script": script, "seen": _exactly(wanted)},
        story="The native binding changes some values and fails on others: it is only given one flat JSON text.",
        runtimes=NATIVE,
        limits={"cpu_ms": 200},
    ),
]
