"""Realms for the suite: the real one and a capability, ``bridge``, that lets a script say any call; and weakened ones.

An edit that finds nothing to edit is an error: the suite would otherwise claim to have taken away what still stands.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes import artefact
from lodger.sandbox.runtimes.artefact import Artefact

_BRIDGE = '$.provide("bridge", (context, call) => ({ call, callSync: $.callSync }));\n'

_LIVE_UNCURRY = (
    "const uncurry = (method) => function (self, ...rest) {"
    ' return typeof self[method.name] === "function" ? self[method.name](...rest) : Reflect.apply(method, self, rest); };'
)
_LIVE_JSON = "const parse = (...all) => JSON.parse(...all), stringify = (...all) => JSON.stringify(...all);"

#: Edit → pairs of what is looked for in bootstrap.js and what stands there instead.
EDITS: dict[str, tuple[tuple[str, str], ...]] = {
    "host_names": ((r"for \(const letter of [^;]*?\) delete globalThis\[[^;]*?\];", ""),),
    "all_globals": ((r"for \(const name of \[[^\]]*?SharedArrayBuffer[^;]*?delete globalThis\[[^;]*?\];", ""),),
    "written_twice": (
        (
            r"const json = stringify\((args === undefined \? null : args)\);",
            r"stringify(args === undefined ? null : args); const json = stringify(args === undefined ? null : args);",
        ),
    ),
    "live_builtins": (
        (r"const uncurry = Function\.prototype\.bind\.bind\(Function\.prototype\.call\);", _LIVE_UNCURRY),
        (r"const \{ parse, stringify \} = JSON;", _LIVE_JSON),
    ),
}


class EditFailed(SandboxError):
    """The realm's sources have changed, and an edit of the matrix no longer fits."""


def edited(text: str, edits: Iterable[str]) -> str:
    """Give bootstrap.js without what the edits take away. Raises EditFailed."""
    for name in edits:
        for pattern, instead in EDITS[name]:
            text, count = re.subn(pattern, instead.replace("\\", r"\\"), text)
            if count != 1:
                raise EditFailed("edit_failed", f"the edit {name} found {count} places in bootstrap.js, not one")
    return text


def realm(edits: frozenset[str] = frozenset()) -> Artefact:
    """Give the suite's realm, baked at first use. Raises EditFailed, RealmUnavailable."""
    sources = artefact.read_sources()
    sources = [(name, edited(text, sorted(edits)) if name == "bootstrap.js" else text) for name, text in sources]
    sources.append(("cap-bridge.js", _BRIDGE))
    plain, metered = (artefact._ensure(None, sources, None, fuel=fuel) for fuel in (False, True))
    return replace(plain, metered=metered.module)
