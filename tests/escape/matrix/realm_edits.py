"""Realms with parts removed, for the matrix only: edits of the sources from which the realm is baked.

An edit with a text that is not found is an error: the matrix would otherwise test a realm without the edit.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from lodger.escape.arena import BRIDGE, write_source
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.runtimes.settings import native_settings

#: A method of the library's own calls the built-in that it replaces: an inner call goes to that.
_LIVE_UNCURRY = (
    "const uncurry = (method) => { let within = false; return function (self, ...rest) {"
    ' if (within || typeof self[method.name] !== "function") return Reflect.apply(method, self, rest);'
    " within = true; try { return self[method.name](...rest); } finally { within = false; } }; };"
)
#: The library's own JSON.parse calls parse again, so the inner call goes to the built-in.
_LIVE_JSON = (
    "let $within = false; const $live = (name, real) => (...all) => { if ($within) return real(...all); $within = true;"
    " try { return JSON[name](...all); } finally { $within = false; } };"
    ' const parse = $live("parse", JSON.parse), stringify = $live("stringify", JSON.stringify);'
)
_ENCODE = r"const json = \$\.json\((args === undefined \? null : args)\);"
_LENIENT = (
    "const json = (() => { try { return stringify(Object.hasOwn(args, 'valueOf') ? args.valueOf() : args) ?? stringify(String(args)); }"
    ' catch { return "null"; } })();'
)
_ANY_NAME = (
    'const plain = text(op).replace(/[^!-~]|.{250}.*/gu, "");'
    ' host.async(id + " " + (/echo/.test(plain) ? "echo" : plain || "echo") + " " + json);'
)

Edit = tuple[str, str, str]

#: Maps an edit to its replacements: file, text to find, new text.
EDITS: dict[str, tuple[Edit, ...]] = {
    "host_names": (("bootstrap.js", r"for \(const letter of [^;]*?\) delete globalThis\[[^;]*?\];", ""),),
    "all_globals": (
        ("bootstrap.js", r"for \(const name of \[[^\]]*?SharedArrayBuffer[^;]*?delete globalThis\[[^;]*?\];", ""),
        ("timer.js", r'\$\.global\("performance", \{', "void ({"),
    ),
    "shown_frames": (
        ("bootstrap.js", r'Object\.defineProperty\(Error, "prepareStackTrace"[^;]*?;', ""),
        ("errors.js", r" \|\| indexOf\(line, OURS\) >= 0\) continue;", ") continue;"),
        ("errors.js", r"= ours\(file\) \? null : ", "= "),
    ),
    "written_twice": (
        (
            "calls.js",
            _ENCODE,
            r"$.json(args === undefined ? null : args); const json = $.json(args === undefined ? null : args);",
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
}


class EditFailed(SandboxError):
    """An edit's text is not found in the realm's sources."""


def edited(sources: Iterable[tuple[str, str]], edits: Iterable[str]) -> list[tuple[str, str]]:
    """Return the sources with the edits applied; edits of other files are ignored. Raises EditFailed."""
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
def realm(edits: frozenset[str]) -> dict[str, str]:
    """Return the settings of the suite's realm with edits. Raises EditFailed, RealmUnavailable."""
    return artefact.baked([*edited(artefact.read_sources(), sorted(edits)), BRIDGE]).settings()


@lru_cache(maxsize=64)
def native(edits: frozenset[str]) -> dict[str, str]:
    """Return the settings of that realm in the native engine. Raises EditFailed, SandboxError."""
    settings = native_settings()
    originals = {path.name: path for path in map(Path, settings["library"].split("\n"))}
    sources = [(name, path.read_text("utf-8")) for name, path in originals.items()]
    pairs = zip(sources, edited(sources, sorted(edits)), strict=True)
    places = [originals[after[0]] if before == after else write_source(*after) for before, after in pairs]
    return settings | {"library": "\n".join(map(str, [*places, write_source(*BRIDGE)]))}
