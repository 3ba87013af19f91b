"""Classes 5, 6 and 39: a script replaces built-ins before the glue uses them, and changes values between check and use.

The glue stored its built-ins when the realm was baked; the matrix bakes a realm that looks them up on use.
"""

from lodger.escape.attack_files import attacks, cases_of
from lodger.escape.case import Case
from lodger.escape.evidence import answers

_SCRIPTS = attacks(__file__)

_STOLEN = "globalThis.stolen = (globalThis.stolen ?? 0) + 1;"
_STORY = "The script replaces a built-in; the glue must not call the replacement."


def _replaced(name: str, place: str, given: str = "...a", passed: str = "this, a") -> tuple[str, str, str]:
    """Return a row of the table: a built-in, replaced by a function that calls it and counts its calls."""
    call = f"real.apply({passed})" if passed else f"real({given})"
    text = f"const real = {place}; {place} = function ({given}) {{ STEAL return {call}; }};"
    return name, f"{place} replaced", text


#: Built-ins that the glue uses; the script returns how often its replacement was called by the glue.
_POISONS = (
    _replaced("json-stringify", "JSON.stringify", passed=""),
    _replaced("json-parse", "JSON.parse", passed=""),
    _replaced("string-slice", "String.prototype.slice"),
    _replaced("string-index-of", "String.prototype.indexOf"),
    _replaced("map-get", "Map.prototype.get"),
    _replaced("map-set", "Map.prototype.set"),
    _replaced("map-delete", "Map.prototype.delete"),
    _replaced("regexp-exec", "RegExp.prototype.exec"),
    _replaced("well-formed", "String.prototype.toWellFormed", "", "this"),
    _replaced("array-join", "Array.prototype.join"),
    _replaced("map-for-each", "Map.prototype.forEach"),
    _replaced("object-to-string", "Object.prototype.toString", "", "this"),
    _replaced("set-for-each", "Set.prototype.forEach"),
    _replaced("replace-all", "String.prototype.replaceAll"),
)
_WORK = dict(_SCRIPTS["shared"])["work"]

#: Accessors on shared prototypes that would receive temporaries of the glue; none may be called. Calls by the engine's JSON.stringify, which
#: assigns the script's own objects to a list, are not counted: the stack is the error's name, the setter and stringify.
_FROM_GLUE = "if (typeof v !== 'object' || !/^.*\\n.*\\n.*stringify \\(native\\)/.test(new Error().stack)) { STEAL }"
_TRAPS = tuple(
    (
        f"array-{name}",
        f"a setter for element {at} on Array.prototype",
        f"Object.defineProperty(Array.prototype, '{at}', {{ set(v) {{ {_FROM_GLUE} }}, configurable: true }});",
    )
    for at, name in enumerate(("zero", "one"))
)


def _poisoned(rows: tuple[tuple[str, str, str], ...], klass: int, mark: str, wall: str = "primordials") -> list[Case]:
    """Return cases that replace built-in objects which the glue uses."""
    return [
        Case(
            f"A{klass}-{mark}-{name}",
            wall,
            mechanism,
            _WORK.replace("POISON", poison.replace("STEAL", _STOLEN)),
            seen=answers(0),
            story=_STORY,
        )
        for name, mechanism, poison in rows
    ]


#: Every way known to see the bytes of a key while it is used: methods, getters, iterators, setters and conversions, all replaced. The
#: spies look for the key, as bytes or as a text, and for the pads of HMAC.
_KEY = dict(_SCRIPTS["shared"])["key"]

CASES = [
    *(
        Case(
            f"A5-key-{hash_.lower()}",
            "primordials",
            f"every built-in watches a key that is not extractable, with {hash_}",
            _KEY.replace("HASH", hash_),
            seen=answers([0, True]),
            story="The script may use a key that is not extractable, and never sees its bytes.",
            limits={"cpu_ms": 1000, "wall_ms": 5000},
        )
        for hash_ in ("SHA-1", "SHA-256", "SHA-512")
    ),
    *_poisoned(_POISONS, 5, "poison"),
    *_poisoned(_TRAPS, 6, "trap", "glue_lists"),
    *cases_of(__file__),
]
