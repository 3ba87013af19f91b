"""Realms for the suite: the real one and a capability, ``bridge``, that lets a script say any call; and weakened ones.

An edit that finds nothing to edit is an error: the suite would otherwise claim to have taken away what still stands.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes import artefact
from lodger.sandbox.runtimes.artefact import Artefact
from lodger.sandbox.runtimes.native_settings import native_settings

_BRIDGE_FILE = "cap-bridge.js"
_BRIDGE = '$.provide("bridge", (context, call) => ({ call, callSync: $.callSync }));\n'

_LIVE_UNCURRY = (
    "const uncurry = (method) => function (self, ...rest) {"
    ' return typeof self[method.name] === "function" ? self[method.name](...rest) : Reflect.apply(method, self, rest); };'
)
_LIVE_JSON = "const parse = (...all) => JSON.parse(...all), stringify = (...all) => JSON.stringify(...all);"
_ENCODE = r"const json = stringify\((args === undefined \? null : args)\);"
_LENIENT = (
    "const json = (() => { try { return stringify(Object.hasOwn(args, 'valueOf') ? args.valueOf() : args) ?? stringify(String(args)); }"
    ' catch { return "null"; } })();'
)
_ANY_NAME = (
    'const plain = text(op).replace(/[^!-~]|.{250}.*/gu, "");'
    ' host.async(id + " " + (/echo/.test(plain) ? "echo" : plain || "echo") + " " + json);'
)

Edit = tuple[str, str, str]

#: Edit → what is changed: a file, what is looked for, and what stands there instead.
EDITS: dict[str, tuple[Edit, ...]] = {
    "host_names": (("bootstrap.js", r"for \(const letter of [^;]*?\) delete globalThis\[[^;]*?\];", ""),),
    "all_globals": (
        ("bootstrap.js", r"for \(const name of \[[^\]]*?SharedArrayBuffer[^;]*?delete globalThis\[[^;]*?\];", ""),
    ),
    "shown_frames": (
        ("bootstrap.js", r'Object\.defineProperty\(Error, "prepareStackTrace"[^;]*?;', ""),
        ("errors.js", r'if \(indexOf\(line, OURS\) >= 0 \|\| line === ""\) continue;', ""),
    ),
    "written_twice": (
        (
            "calls.js",
            _ENCODE,
            r"stringify(args === undefined ? null : args); const json = stringify(args === undefined ? null : args);",
        ),
    ),
    "lenient_text": (("calls.js", _ENCODE, _LENIENT),),
    "live_answers": (("calls.js", r"const value = parse\(json\);", 'const value = (0, eval)("(" + json + ")");'),),
    "any_name": (
        (
            "calls.js",
            r'if \(typeof op !== "string" \|\| exec\(NAME, op\) === null\) throw [^;]*;',
            "",
        ),
        (
            "calls.js",
            r'host\.async\(id \+ " " \+ op \+ " " \+ json\);',
            _ANY_NAME,
        ),
    ),
    "assigned_lists": (("bootstrap.js", r"defineProperty\(list, list\.length, [^;]*;", "list[list.length] = value;"),),
    "live_builtins": (
        (
            "bootstrap.js",
            r"const uncurry = Function\.prototype\.bind\.bind\(Function\.prototype\.call\);",
            _LIVE_UNCURRY,
        ),
        ("bootstrap.js", r"const \{ parse, stringify \} = JSON;", _LIVE_JSON),
    ),
    "kept_result": (
        (
            "bootstrap.js",
            r"function finish\(value\) \{\n",
            "function finish(value) {\n    globalThis.$converted = value;\n",
        ),
    ),
    "fine_clock": (
        ("native.js", r"return epoch \+ trunc\(ticks\(counter\) - start\);", "return epoch + ticks(counter) - start;"),
    ),
}


class EditFailed(SandboxError):
    """The realm's sources have changed, and an edit of the matrix no longer fits."""


def edited(sources: Iterable[tuple[str, str]], edits: Iterable[str]) -> list[tuple[str, str]]:
    """Give the sources without what the edits take away; an edit of a file that is not among them changes nothing. Raises EditFailed."""
    changed = dict(sources)
    for name in edits:
        for file, pattern, instead in EDITS[name]:
            if file not in changed:
                continue
            changed[file], count = re.subn(pattern, instead.replace("\\", r"\\"), changed[file])
            if count != 1:
                raise EditFailed("edit_failed", f"the edit {name} found {count} places in {file}, not one")
    return list(changed.items())


@lru_cache(maxsize=64)
def realm(edits: frozenset[str] = frozenset()) -> Artefact:
    """Give the suite's realm, baked at first use. Raises EditFailed, RealmUnavailable."""
    sources = edited(artefact.read_sources(), sorted(edits))
    sources.append((_BRIDGE_FILE, _BRIDGE))
    plain = artefact._ensure(None, sources, None, fuel=False)
    if edits:
        return plain
    return replace(plain, metered=artefact._ensure(None, sources, None, fuel=True).module)


@lru_cache(maxsize=64)
def native(edits: frozenset[str] = frozenset()) -> dict[str, str]:
    """Give the settings of the same realm in the native engine. Raises EditFailed, SandboxError."""
    settings = native_settings()
    originals = {path.name: path for path in map(Path, settings["library"].split("\n"))}
    sources = [(name, path.read_text("utf-8")) for name, path in originals.items()]
    places = []
    for before, after in zip(sources, edited(sources, sorted(edits)), strict=True):
        places.append(originals[after[0]] if before == after else _written(*after))
    places.append(_written(_BRIDGE_FILE, _BRIDGE))
    return settings | {"library": "\n".join(map(str, places))}


def _written(name: str, text: str) -> Path:
    """Put a source beside the baked realms, under the name of its content."""
    for folder in artefact.candidates():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if artefact.is_ours(folder):
            break
    else:
        raise SandboxError("no_cache_folder", "there is no folder for the suite's realm", fix="set XDG_CACHE_HOME")
    place = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}-{name}"
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as fresh:
        fresh.write(text)
    Path(fresh.name).replace(place)
    return place
