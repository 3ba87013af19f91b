"""Classes 1, 2 and 45: memory errors of the JavaScript engine, and an engine that a script has taken over.

The scripts have known errors of the pinned guest (docs/security.md), rewritten from their public descriptions: they do corrupt memory, but
only the guest's own, which ends with the attempt; and values that the native engine's binding would change. The modules run instead of the
engine and make any calls to the host, or send messages instead of the bootstrap's.
"""

from functools import partial
from typing import Any

from lodger.escape.attack_files import cases_of
from lodger.escape.evidence import Check, Escaped, Trial, ends_as, value_of
from lodger.escape.modules import data, escaped
from lodger.escape.owned_guest import guest
from lodger.sandbox.outcome import Outcome

LITERALS = data(16, "sadlethr")


def call(letter: str) -> str:
    """Return the instructions of a host call with one argument, from a guest that has no JavaScript."""
    place = 16 + "sadlethr".index(letter)
    return f"(drop (call $host_call (i32.const {place}) (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 2048)))"


def _owned(attack: str, **answers: str) -> dict[str, Any]:
    """Return a guest engine under the attacker's control."""
    extra = LITERALS + "(global $owned (mut i32) (i32.const 0))"
    return {"guest": partial(guest, f"(global.set $owned (i32.const 1)) {attack}", answers=answers, extra=extra)}


def _said(letter: str, text: str) -> dict[str, Any]:
    """Return a guest engine that sends the host one text by an operation."""
    answers = {"qjs_last_ptr": "(i32.const 512)", "qjs_last_len": f"(i32.const {len(text)})"}
    # An answer is sent at its second message: the first reports that the script has returned.
    times = 2 if letter == "d" else 1
    extra = LITERALS + data(512, escaped(text))
    return {"guest": partial(guest, call(letter) * times, answers=answers, extra=extra)}


def _unanswered(trial: Trial) -> str:
    """Check that no host call was answered."""
    if trial.facts.get("answered") != "0" or not trial.asked:
        raise Escaped(f"{trial.facts.get('answered')} of {len(trial.asked)} calls were answered")
    return f"the call came ({trial.asked[0][1][:60]}) and was refused"


def _exactly(wanted: object) -> Check:
    """Return a check that the result is this value."""

    def check_result(trial: Trial) -> str:
        """Raise Escaped unless the script returned the wanted value."""
        if trial.report.outcome is not Outcome.OK or value_of(trial.report) != wanted:
            raise Escaped(f"ended as {trial.report.outcome}, {(trial.report.result or '')[:120]}")
        return f"answered {(trial.report.result or '')[:120]}"

    return check_result


_CHECKS = {
    "exactly": _exactly,
    "joined": _exactly("x" * 18_000),
    "unanswered": _unanswered,
    "exits": ends_as(Outcome.CRASHED, says="exit code"),
}

CASES = [
    *cases_of(__file__, checks=_CHECKS),
    *cases_of(
        __file__,
        ".wat",
        checks=_CHECKS,
        owned=_owned,
        claiming=lambda outcome: _said("e", f'0 {outcome} {{"name":"x","message":"y"}}'),
        calling=lambda text: _said("a", f"1 echo {text}"),
        resulting=lambda text: _said("d", f"0 {text}"),
    ),
]
