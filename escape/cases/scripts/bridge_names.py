"""Classes 48 and 50: names of calls that a careless host would look up on an object, and the text of the refusals.

The matrix replaces the host by a careless one: attribute lookup by name, exception text in replies.
"""

import json

from lodger.escape.attack_files import cases_of
from lodger.escape.case import Case
from lodger.escape.evidence import answers, where

_CODE = "try { await bridge.call(%s, %s); return 'answered'; } catch (e) { return e.code ?? e.name; }"

#: Names that an attribute lookup on a host object would find.
_DUNDER = [
    "__class__",
    "__init__",
    "__dict__",
    "__call__",
    "__reduce__",
    "__reduce_ex__",
    "__getattribute__",
    "__subclasshook__",
    "__module__",
    "__doc__",
    "__eq__",
    "__hash__",
    "__dir__",
    "__sizeof__",
    "__format__",
    "__repr__",
    "__str__",
    "call",
    "log",
    "asked",
    "lines",
    "held",
    "release",
    "_private",
    "_limits",
    "_careless",
    "private",
    "naive",
    "careless",
]
_UNKNOWN = [
    "os.system",
    "eval",
    "exec",
    "constructor",
    "toString",
    "hasOwnProperty",
    "../echo",
    "Echo",
    "ECHO",
    "echo.call",
    "echo[0]",
    "echo;drop",
    "db.execute",
    "{0.__class__}",
    "%s",
    "%n%n%n",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "<script>",
    "-1",
    "0",
    "null",
]


def _slug(name: str) -> str:
    """Return a name as a part of a case's id."""
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-") or f"x{sum(map(ord, name))}"


_OURS = ("Traceback", 'File "', ".py", "object at 0x", "<class", "<bound")
_CHECKS = {
    "no_answer": where("no answer", lambda value: value != "answered"),
    "nothing_of_ours": where("nothing of ours in it", lambda text: not any(sign in str(text) for sign in _OURS)),
}

CASES = [
    *(
        Case(
            f"C48-{_slug(name)}-{number}",
            "call_table",
            f"the name {name}",
            _CODE % (json.dumps(name), "{}"),
            seen=answers("unknown_call"),
            story=story,
        )
        for first, names, story in (
            (0, _DUNDER, "A call's name is looked up in a table, never on an object."),
            (100, _UNKNOWN, "A call's name is data: no format, no path, no code."),
        )
        for number, name in enumerate(names, first)
    ),
    *cases_of(__file__, checks=_CHECKS),
]
