"""Classes 48 and 50: names of calls that a careless host would look up on an object, and the text of the refusals.

The matrix replaces the host by a careless one: attribute lookup by name, exception text in replies.
"""

import json

from lodger.escape.attack_files import attacks
from lodger.escape.case import Case
from lodger.escape.evidence import answers, tells_nothing, where
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

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
    *(
        Case(
            f"C48-malformed-{mark}",
            "name_check",
            f"a name that is {mark}",
            _CODE % (name, "{}"),
            (Outcome.OK, Outcome.PROTOCOL_ERROR, Outcome.SCRIPT_ERROR, Outcome.BAD_REQUEST),
            seen=where("no answer", lambda value: value != "answered"),
            story="An invalid name is refused at any stage.",
        )
        for mark, name in _SCRIPTS["malformed"]
    ),
    *(
        Case(
            f"C50-{mark}",
            "safe_errors",
            f"the refusal of {mark}",
            f"try {{ return String(await bridge.call({arguments})); }} catch (e) {{ const all = [e.message, e.stack, JSON.stringify(e)].join('\\n'); "
            "return /Traceback|File \"|\\.py\\b|site-packages|object at 0x/.test(all) ? all : 'clean'; }",
            seen=where(
                "nothing of ours in it",
                lambda text: (
                    not any(
                        sign in str(text) for sign in ("Traceback", 'File "', ".py", "object at 0x", "<class", "<bound")
                    )
                ),
            ),
            story="The text of a host exception never reaches a script.",
        )
        for mark, arguments in _SCRIPTS["leaky"]
    ),
    *(
        Case(
            f"C50-{mark}",
            "no_paths",
            mechanism,
            script,
            (Outcome.SCRIPT_ERROR, Outcome.COMPILE_ERROR),
            seen=tells_nothing,
            story="No error contains a path, an address, or text of the host's languages.",
        )
        for mark, mechanism, script in _SCRIPTS["script-errors"]
    ),
]
