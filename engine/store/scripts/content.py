"""Content of a script: JavaScript sources by file name, or one WebAssembly module, checked before it is stored."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from lodger.engine.core.errors import InputError
from lodger.sandbox.limits import Limits

ENTRY = "main.js"
#: First bytes of a WebAssembly file; the compiler checks the rest.
MAGIC = b"\0asm"

#: Input forms of a script: the text of ``main.js``, source by file name, or the bytes of a WebAssembly module.
ScriptInput = str | Mapping[str, str] | bytes


@dataclass(frozen=True, slots=True)
class Content:
    """A script's content: either ``modules`` or ``wasm``.

    Attributes:
        modules: source by file name, ``main.js`` first; empty for a WebAssembly module.
        wasm: bytes of the module.
        digest: SHA-256 of the content in hexadecimal.
        kind: script, ping or host.
    """

    modules: dict[str, str]
    wasm: bytes | None
    digest: str
    kind: str = "script"


def read(given: ScriptInput, limits: Limits) -> Content:
    """Check the input and return it as content.

    Raises:
        InputError: script_empty, entry_missing, source_not_text, not_webassembly, source_too_large.
    """
    if isinstance(given, bytes | bytearray | memoryview):
        wasm = bytes(given)
        _check_module(wasm, limits.wasm_bytes)
        return Content({}, wasm, hashlib.sha256(b"wasm\0" + wasm).hexdigest())
    modules = _modules(given, limits.source_bytes)
    text = json.dumps(modules, sort_keys=True)
    return Content(modules, None, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _check_module(wasm: bytes, limit: int) -> None:
    if not wasm.startswith(MAGIC):
        raise InputError(
            "not_webassembly",
            "these bytes are not a WebAssembly module",
            why="the file does not begin with 00 61 73 6d",
            fix="give JavaScript as text, or a compiled WASI preview 1 module",
        )
    if len(wasm) > limit:
        raise _too_large(
            f"the module has {len(wasm)} bytes", f"modules of this tenant have at most {limit}", "wasm_bytes"
        )


def _modules(source: str | Mapping[str, str], limit: int) -> dict[str, str]:
    modules = {ENTRY: source} if isinstance(source, str) else dict(source)
    if ENTRY not in modules:
        raise InputError(
            "entry_missing",
            f"the script has no {ENTRY}",
            why="a script starts in its main.js",
            fix=f"name one of the files {ENTRY}",
        )
    size = 0
    for file, text in modules.items():
        try:
            size += len(text.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                "source_not_text",
                f"{file} is not text",
                why="a source must be Unicode text without lone surrogates",
                fix="store the script as UTF-8",
                index=error.start,
            ) from error
        if "\0" in text:
            raise InputError(
                "source_not_text",
                f"{file} is not text",
                why="it has a NUL character, like a binary file",
                fix="give JavaScript source, or a WebAssembly module as bytes",
                index=text.index("\0"),
            )
    if size > limit:
        raise _too_large(f"the script has {size} bytes", f"scripts of this tenant have at most {limit}", "source_bytes")
    if not modules[ENTRY].strip():
        raise InputError(
            "script_empty",
            f"{ENTRY} is empty",
            why="an empty file has nothing to run",
            fix="export a default function",
        )
    return {ENTRY: modules.pop(ENTRY)} | dict(sorted(modules.items()))


def _too_large(what: str, why: str, limit: str) -> InputError:
    return InputError(
        "source_too_large",
        what,
        why=f"{why} (limit {limit})",
        fix="make it smaller, or ask the operator for a higher limit",
    )
