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
from lodger.engine.store.stored_modules import ENTRIES, LIBRARY, MAP, SUFFIXES, entry_of, is_library, is_tool_file
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


def read(given: ScriptInput, limits: Limits) -> Content:
    """Check the input and return it as content.

    Raises:
        InputError: script_empty, entry_missing, entry_ambiguous, file_name_invalid, files_too_many, json_invalid,
            source_map_invalid, source_not_text, not_webassembly, source_too_large.
    """
    if isinstance(given, bytes | bytearray | memoryview):
        wasm = bytes(given)
        _check_module(wasm, limits.wasm_bytes)
        return Content({}, wasm, hashlib.sha256(b"wasm\0" + wasm).hexdigest())
    modules = _modules(given, limits.source_bytes)
    return Content(modules, None, digest_of(modules), LIBRARY if is_library(modules) else "script")


def digest_of(modules: Mapping[str, str]) -> str:
    """Return the digest of files."""
    text = json.dumps(modules, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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


def check_file_name(file: str) -> None:
    """Check the name of an author's file: a relative path that no tool takes for its own when it is written to a folder.

    Raises:
        InputError: file_name_invalid.
    """
    parts = file.split("/")
    why = ""
    if not file.isprintable() or len(file) > MAX_FILE_NAME or set(file) & set("\\:\"'") or "" in parts:
        why = f"it is a relative path of at most {MAX_FILE_NAME} printable characters, without \\ : \" and '"
    elif any(names.is_of_tools(part) for part in parts):
        why = f"no part of it may begin with a dot or be {names.PACKAGES}"
    elif PurePosixPath(file).suffix not in SUFFIXES:
        why = f"the files of a script are {', '.join(sorted(SUFFIXES))}"
    elif is_tool_file(parts[-1]):
        why = "tools such as npm and ESLint run commands from files of this name"
    if why:
        shown = f"{file[:MAX_FILE_NAME]!r} cannot be the name of a file of a script"
        raise InputError("file_name_invalid", shown, why=why, fix="rename the file, or leave it out")


def _check_json(file: str, text: str) -> None:
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
    raise InputError("json_invalid", f"{file} is not JSON", why=why, fix="correct the file", file=file, line=line)


def _modules(source: str | Mapping[str, str], limit: int) -> dict[str, str]:
    modules = {ENTRY: source} if isinstance(source, str) else dict(source)
    entry = entry_of(modules)
    if entry is None:
        raise InputError(
            "entry_missing",
            f"the script has no {ENTRY}",
            why="a script starts in its main.js or main.ts; a library has an index.js or index.ts",
            fix=f"name one of the files {ENTRY}",
        )
    if all(each in modules for each in ENTRIES):
        raise InputError(
            "entry_ambiguous",
            "the script has both main.js and main.ts",
            why="a script starts in one of them",
            fix="leave one of them out",
        )
    if len(modules) > MAX_FILES:
        raise too_many(len(modules))
    size = 0
    for file, text in modules.items():
        check_file_name(file)
        try:
            length = len(text.encode())
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
        if file.endswith(".map"):
            _check_map(file, length, limit)
        else:
            size += length
    if size > limit:
        raise too_large(f"the script has {size} bytes", limit)
    if not modules[entry].strip():
        raise InputError(
            "script_empty",
            f"{entry} is empty",
            why="an empty file has nothing to run",
            fix="export a default function",
        )
    for file, text in modules.items():
        if file.endswith(".json"):
            _check_json(file, text)
    made = {MAP: source_maps.unpacked(modules[source_maps.FILE])} if source_maps.FILE in modules else {}
    return {entry: modules.pop(entry)} | dict(sorted(modules.items())) | made


def _check_map(file: str, size: int, limit: int) -> None:
    if file != source_maps.FILE:
        raise InputError(
            "source_map_invalid",
            f"{file} cannot be stored",
            why=f"a script has at most one source map, {source_maps.FILE}",
            fix="leave the file out",
        )
    maximum = min(MAPS_PER_SOURCE * limit, MAX_MAP)
    if size > maximum:
        raise _too_large(f"{file} has {size} bytes", f"maps of this tenant have at most {maximum}", "source_bytes")


def too_many(count: int) -> InputError:
    """Return the error for a script with too many files."""
    return InputError(
        "files_too_many",
        f"the script has {count} files",
        why=f"a script has at most {MAX_FILES} files, with those that it imports from other scripts",
        fix="bundle them: lodger bundle makes one file",
    )


def too_large(what: str, limit: int) -> InputError:
    """Return the error for a source that is larger than the tenant's limit."""
    return _too_large(what, f"scripts of this tenant have at most {limit}", "source_bytes")


def _too_large(what: str, why: str, limit: str) -> InputError:
    return InputError(
        "source_too_large",
        what,
        why=f"{why} (limit {limit})",
        fix="make it smaller, or ask the operator for a higher limit",
    )
