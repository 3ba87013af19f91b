"""Classes 48 and 50: names of calls that a careless host would look up on an object, and the text of the refusals.

The matrix replaces the host by a careless one: attribute lookup by name, exception text in replies.
"""

from lodger.escape.attack_files import cases_of
from lodger.escape.evidence import where

_OURS = ("Traceback", 'File "', ".py", "object at 0x", "<class", "<bound")
_CHECKS = {
    "no_answer": where("no answer", lambda value: value != "answered"),
    "nothing_of_ours": where("nothing of ours in it", lambda text: not any(sign in str(text) for sign in _OURS)),
}

CASES = [*cases_of(__file__, checks=_CHECKS)]
