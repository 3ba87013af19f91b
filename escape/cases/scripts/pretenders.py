"""Classes 10, 43, 46 and 49: objects that imitate the host's, invalid texts, repeated answers, and format strings in messages."""

import json

from lodger.escape.attack_files import attacks
from lodger.escape.case import GUEST, Case, cases
from lodger.escape.cases.scripts.engine_breaks import _LITERALS, _call
from lodger.escape.evidence import answers, both, ends_as, host_saw
from lodger.escape.modules import data
from lodger.escape.owned_guest import guest
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

#: Gives an object members that JSON.stringify does not see: functions in plain sight are refused, hidden ones must have no effect.
HIDE = "const hide = (object, members) => { for (const name in members) Object.defineProperty(object, name, { value: members[name] }); return object; }; "
#: Texts that are format strings in Python.
_FORMATS = (
    ("attribute", "an attribute of the host's", "{0._private}"),
    ("shown", "the host's own object", "{0!r}"),
    ("facts", "what the host knows", "{0.facts}"),
    ("limits", "what the host was told", "{0._limits.cpu_ms}"),
    ("percent", "four of an older kind", "%s%r%a%d"),
)
_BACK = "const given = {0}; const back = await bridge.call('echo', given); return JSON.stringify(back) === JSON.stringify(given);"


def _twice(first: tuple[str, str], second: tuple[str, str]) -> bytes:
    """Return a compromised engine that sends one answer, and then another."""
    texts = [text.encode() for _, text in (first, second)]
    after = "(global.get $after)"
    escaped = ["".join(f"\\{byte:02x}" for byte in text) for text in texts]
    return guest(
        f"{_call(first[0]) * 2} (global.set $after (i32.const 1)) {_call(second[0])}",
        answers={
            "qjs_last_ptr": f"(select (i32.const 768) (i32.const 512) {after})",
            "qjs_last_len": f"(select (i32.const {len(texts[1])}) (i32.const {len(texts[0])}) {after})",
        },
        extra=f"(global $after (mut i32) (i32.const 0)) {_LITERALS} {data(512, escaped[0])} {data(768, escaped[1])}",
    )


_STORY = "A compromised engine sends two answers: only the first counts, and the process ends with it."

CASES = [
    *cases("A10", "flat_text", _SCRIPTS["pretending"], lambda value, more: {"script": f"{HIDE}await bridge.call('nothing', {value}); return null;", "seen": host_saw(("nothing", more["arrives"]))}, story="Only an object's JSON text is passed, not its own claims about its type.",),
    *cases("C43", "strict_json", _SCRIPTS["texts"], lambda value: {"script": _BACK.replace("{0}", value)}, says="{}, there and back", seen=answers(True), story="A text is passed unchanged: not normalised, not cut at NUL, lone surrogates not joined.",),
    *cases("C49", "strict_json", _FORMATS, lambda text: {"script": _BACK.replace("{0}", json.dumps(text))}, says="a format that would show {}", seen=answers(True), story="A tenant's text is never used as a format string.",),
    Case(
        "C46-owned-call-after-answer",
        "one_verdict",
        "the engine, taken over, answers and then calls",
        expect=(Outcome.OK,),
        seen=both(ends_as(Outcome.OK), host_saw()),
        story=_STORY,
        runtimes=GUEST,
        guest=lambda: _twice(("d", "0 1"), ("a", '1 nothing "late"')),
    ),
    Case(
        "C46-owned-error-after-answer",
        "one_verdict",
        "the engine, taken over, answers and then claims to have failed",
        expect=(Outcome.OK,),
        seen=ends_as(Outcome.OK),
        story=_STORY,
        runtimes=GUEST,
        guest=lambda: _twice(("d", "0 1"), ("e", '0 script_error {"name":"x","message":"y"}')),
    ),
]  # fmt: skip
