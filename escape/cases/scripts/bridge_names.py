"""Classes 48 and 50: names of calls that a careless host would look up on an object, and the text of the refusals.

The matrix replaces the host by a careless one: attribute lookup by name, exception text in replies.
"""

import json

from lodger.escape.case import Case
from lodger.escape.evidence import answers, tells_nothing, where
from lodger.sandbox.outcome import Outcome

_CODE = "try { await bridge.call(%s, %s); return 'answered'; } catch (e) { return e.code ?? e.name; }"

#: Names that an attribute lookup on a host object would find.
_DUNDER = (
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
)
_UNKNOWN = (
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
)
_MALFORMED = (
    ("empty", "''"),
    ("space", "'echo echo'"),
    ("newline", "'echo\\nhold'"),
    ("nul", "'echo\\u0000x'"),
    ("tab", "'echo\\tx'"),
    ("emoji", "'\\u{1f600}'"),
    ("surrogate", "'\\ud800'"),
    ("long", "'x'.repeat(256)"),
    ("very-long", "'x'.repeat(100000)"),
    ("symbol", "Symbol('echo')"),
    ("escape", "'echo\\u001b[2J'"),
    ("bidi", "'echo\\u202e'"),
)
_LEAKY = (
    ("unknown", "'zzz', 1"),
    ("attribute", "'asked_', {}"),
    ("class", "'__class__', {}"),
    ("missing", "'echo_', null"),
    ("format", "'{0.__class__}', null"),
)
_SCRIPT_ERRORS = (
    ("message-path", "no_paths", "a missing module", "await import('/nowhere.js');"),
    ("message-null", "no_paths", "a property of null", "null.x;"),
    ("message-native", "no_paths", "an error inside a built-in", "[].reduce((a) => a);"),
    ("message-regexp", "no_paths", "a pattern that does not compile", "new RegExp('(');"),
    ("message-json", "no_paths", "text that is not JSON", "JSON.parse('{');"),
    ("message-atob", "no_paths", "text that is not base64", "atob('*');"),
    ("message-url", "no_paths", "a text that is no address", "new URL('::');"),
    (
        "message-decode",
        "no_paths",
        "bytes that are no text",
        "new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]));",
    ),
    ("message-bigint", "no_paths", "an integer too large", "10n ** 10n ** 10n;"),
    (
        "message-stack",
        "no_paths",
        "the stack of an error inside a host call",
        "const e = await bridge.call('zzz', 1).catch((e) => e); throw new Error(e.stack);",
    ),
    ("message-clone", "no_paths", "a function that cannot be cloned", "structuredClone(() => 1);"),
    ("message-timer", "no_paths", "a timer without a function", "setTimeout('x');"),
    (
        "message-digest",
        "no_paths",
        "a digest that is not known",
        "await crypto.subtle.digest('MD5', new Uint8Array(1));",
    ),
    ("message-abort", "no_paths", "an aborted signal", "AbortSignal.abort().throwIfAborted();"),
    ("message-throw-null", "no_paths", "a thrown null", "throw null;"),
    ("message-throw-function", "no_paths", "a thrown function of the glue", "throw console.log;"),
    ("message-throw-bridge", "no_paths", "a thrown host function", "throw bridge.call;"),
    ("message-throw-global", "no_paths", "the thrown global object", "throw globalThis;"),
    ("message-eval", "no_paths", "an error inside eval", "eval('null.x');"),
    (
        "message-cause",
        "no_paths",
        "an error with a cause from the host",
        "try { await bridge.call('zzz', 1); } catch (cause) { throw new Error('outer', { cause }); }",
    ),
    (
        "message-aggregate",
        "no_paths",
        "all of many host calls refused",
        "await Promise.any([bridge.call('zzz', 1), bridge.call('yyy', 1)]);",
    ),
    (
        "message-surrogates",
        "no_paths",
        "an error whose text is lone surrogates",
        "throw new Error('\\ud800'.repeat(100));",
    ),
    ("message-long", "no_paths", "an error of a million characters", "throw new Error('x'.repeat(1e6));"),
    ("message-nul", "no_paths", "an error with NULs and escapes", "throw new Error('a\\u0000b\\u001b[2J');"),
)


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
            story="A call's name is looked up in a table, never on an object.",
        )
        for number, name in enumerate(_DUNDER)
    ),
    *(
        Case(
            f"C48-{_slug(name)}-{number}",
            "call_table",
            f"the name {name}",
            _CODE % (json.dumps(name), "{}"),
            seen=answers("unknown_call"),
            story="A call's name is data: no format, no path, no code.",
        )
        for number, name in enumerate(_UNKNOWN, 100)
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
        for mark, name in _MALFORMED
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
        for mark, arguments in _LEAKY
    ),
    *(
        Case(
            f"C50-{mark}",
            wall,
            mechanism,
            script,
            (Outcome.SCRIPT_ERROR, Outcome.COMPILE_ERROR),
            seen=tells_nothing,
            story="No error contains a path, an address, or text of the host's languages.",
        )
        for mark, wall, mechanism, script in _SCRIPT_ERRORS
    ),
]
