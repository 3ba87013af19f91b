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

#: Edit → pairs of what is looked for in the glue (bootstrap.js, calls.js), found there once, and what stands there instead.
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


_GLUE = ("bootstrap.js", "calls.js")


def edited(sources: list[tuple[str, str]], edits: Iterable[str]) -> list[tuple[str, str]]:
    """Give the sources without what the edits take away. Raises EditFailed."""
    texts = dict(sources)
    for name in edits:
        for pattern, instead in EDITS[name]:
            count = 0
            for file in _GLUE:
                texts[file], found = re.subn(pattern, instead.replace("\\", r"\\"), texts[file])
                count += found
            if count != 1:
                raise EditFailed("edit_failed", f"the edit {name} found {count} places in the glue, not one")
    return list(texts.items())


def realm(edits: frozenset[str] = frozenset()) -> Artefact:
    """Give the suite's realm, baked at first use. Raises EditFailed, RealmUnavailable."""
    sources = edited(artefact.read_sources(), sorted(edits))
    sources.append(("cap-bridge.js", _BRIDGE))
    plain, metered = (artefact._ensure(None, sources, None, fuel=fuel) for fuel in (False, True))
    return replace(plain, metered=metered.module)
