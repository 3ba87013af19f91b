"""Classes 10, 43, 46 and 49: objects that imitate the host's, invalid texts, repeated answers, and format strings in messages."""

from lodger.escape.attack_files import cases_of
from lodger.escape.case import GUEST, Case
from lodger.escape.cases.scripts.engine_breaks import _LITERALS, _call
from lodger.escape.evidence import both, ends_as, host_saw
from lodger.escape.modules import data
from lodger.escape.owned_guest import guest
from lodger.sandbox.outcome import Outcome


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
    *cases_of(__file__),
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
]
