"""Content of a script: JavaScript sources by file name, or one WebAssembly module, checked before it is stored."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from lodger.engine.core import strict_json
from lodger.engine.core.access import names
from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.store.scripts import source_maps
from lodger.engine.store.stored_modules import ENTRIES, LIBRARY, MAP, SUFFIXES, entries_of, is_library, is_tool_file
from lodger.sandbox.limits import Limits

ENTRY = ENTRIES[0]
#: Maximum number of files of a script, copies of other scripts' files included.
MAX_FILES = 500
MAX_FILE_NAME = 120
#: Maximum size of a source map, which source_bytes does not count: a multiple of it, and in all.
MAPS_PER_SOURCE, MAX_MAP = 4, 4 << 20
#: First bytes of a WebAssembly file; the compiler checks the rest.
MAGIC = b"\0asm"

#: Input forms of a script: the text of ``main.js``, source by file name, or the bytes of a WebAssembly module.
ScriptInput = str | Mapping[str, str] | bytes


@dataclass(frozen=True, slots=True)
class Content:
    """A script's content: either ``modules`` or ``wasm``.

    Attributes:
        modules: source by file name, the entry first, as of :mod:`lodger.engine.store.stored_modules`; empty
            for a WebAssembly module.
        wasm: bytes of the module.
        digest: SHA-256 of the content in hexadecimal.
        kind: script, library, ping or host.
    """

    modules: dict[str, str]
    wasm: bytes | None
    digest: str
    kind: str = "script"


def read(given: ScriptInput, limits: Limits, name: str | None = None) -> Content:
    """Check the input and return it as content; ``name`` is the script's, which one of its files may have.

    Raises:
        InputError: script_empty, entry_missing, entry_ambiguous, file_name_invalid, files_too_many, json_invalid,
            source_map_invalid, source_not_text, not_webassembly, source_too_large.
    """
    if isinstance(given, bytes | bytearray | memoryview):
        wasm = bytes(given)
        _check_module(wasm, limits.wasm_bytes)
        return Content({}, wasm, hashlib.sha256(b"wasm\0" + wasm).hexdigest())
    modules = _modules(given, limits.source_bytes, name)
    return Content(modules, None, digest_of(modules), LIBRARY if is_library(modules) else "script")


def digest_of(modules: Mapping[str, str]) -> str:
    """Return the SHA-256 of files with their names, in hexadecimal digits."""
    text = json.dumps(modules, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _check_module(wasm: bytes, limit: int) -> None:
    """Refuse bytes that are no WebAssembly module, or more than the limit."""
    if not wasm.startswith(MAGIC):
        raise InputError("not_webassembly")
    if len(wasm) > limit:
        raise InputError("source_too_large.module", size=len(wasm), maximum=limit)


def check_file_name(file: str) -> None:
    """Check the name of an author's file: a relative path that no tool takes for its own when it is written to a folder.

    Raises:
        InputError: file_name_invalid.
    """
    parts = file.split("/")
    shown = file[:MAX_FILE_NAME]
    if not file.isprintable() or len(file) > MAX_FILE_NAME or set(file) & set("\\:\"'") or "" in parts:
        raise InputError("file_name_invalid", file=shown, maximum=MAX_FILE_NAME)
    if any(names.is_of_tools(part) for part in parts):
        raise InputError("file_name_invalid.hidden", file=shown, packages=names.PACKAGES)
    if PurePosixPath(file).suffix not in SUFFIXES:
        raise InputError("file_name_invalid.suffix", file=shown, suffixes=sorted(SUFFIXES))
    if is_tool_file(parts[-1]):
        raise InputError("file_name_invalid.tool", file=shown)


def check_json(file: str, text: str) -> None:
    """Check a JSON file.

    Raises:
        InputError: json_invalid.
    """
    try:
        strict_json.parse(text, nodes=strict_json.MAX_NODES)
    except CallRefused:
        pass
    else:
        return
    why, line = "it is nested too deeply, too long, or has a key twice", None
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        why, line = f"{error.msg} at line {error.lineno}, column {error.colno}", error.lineno
    except (ValueError, RecursionError):
        pass
    raise InputError("json_invalid", file=file, reason=why, details={"file": file, "line": line})


def _modules(source: str | Mapping[str, str], limit: int, name: str | None) -> dict[str, str]:
    """Return the files of a source, checked."""
    modules = {ENTRY: source} if isinstance(source, str) else dict(source)
    entries = entries_of(modules, name)
    if not entries:
        raise InputError("entry_missing", entry=ENTRY, name=name)
    entry = entries[0]
    if len(entries) > 1:
        raise InputError("entry_ambiguous", one=entry, other=entries[1])
    if len(modules) > MAX_FILES:
        raise InputError("files_too_many", count=len(modules), maximum=MAX_FILES)
    size = 0
    for file, text in modules.items():
        check_file_name(file)
        try:
            length = len(text.encode())
        except UnicodeEncodeError as error:
            raise InputError("source_not_text.surrogates", file=file, index=error.start) from error
        if "\0" in text:
            raise InputError("source_not_text", file=file, index=text.index("\x00"))
        if file.endswith(".map"):
            _check_map(file, length, limit)
        else:
            size += length
    if size > limit:
        raise InputError("source_too_large", size=size, maximum=limit)
    if not modules[entry].strip():
        raise InputError("script_empty", entry=entry)
    for file, text in modules.items():
        if file.endswith(".json"):
            check_json(file, text)
    made = {MAP: source_maps.unpacked(modules[source_maps.FILE])} if source_maps.FILE in modules else {}
    return {entry: modules.pop(entry)} | dict(sorted(modules.items())) | made


def _check_map(file: str, size: int, limit: int) -> None:
    """Refuse a source map of another file than main.js, or one that is too large; ``limit`` is that of sources, bytes."""
    if file != source_maps.FILE:
        raise InputError("source_map_invalid.name", file=file, only=source_maps.FILE)
    maximum = min(MAPS_PER_SOURCE * limit, MAX_MAP)
    if size > maximum:
        raise InputError("source_too_large.map", file=file, size=size, maximum=maximum)
