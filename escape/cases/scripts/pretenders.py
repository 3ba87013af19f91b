"""Classes 10, 43, 46 and 49: objects that imitate the host's, invalid texts, repeated answers, and format strings in messages."""

from functools import partial
from typing import Any

from lodger.escape.attack_files import cases_of
from lodger.escape.cases.scripts.engine_breaks import LITERALS, call
from lodger.escape.modules import data, escaped
from lodger.escape.owned_guest import guest


def _twice(first: str, then: str) -> dict[str, Any]:
    """Return a compromised engine that sends one answer, and then another; a text is an operation and what it sends."""
    (letter, _, text), (next_letter, _, next_text) = first.partition(" "), then.partition(" ")
    after = "(global.get $after)"
    attack = f"{call(letter) * 2} (global.set $after (i32.const 1)) {call(next_letter)}"
    answers = {
        "qjs_last_ptr": f"(select (i32.const 768) (i32.const 512) {after})",
        "qjs_last_len": f"(select (i32.const {len(next_text)}) (i32.const {len(text)}) {after})",
    }
    texts = f"{data(512, escaped(text))} {data(768, escaped(next_text))}"
    extra = f"(global $after (mut i32) (i32.const 0)) {LITERALS} {texts}"
    return {"guest": partial(guest, attack, answers=answers, extra=extra)}


CASES = [*cases_of(__file__), *cases_of(__file__, ".wat", twice=_twice)]
