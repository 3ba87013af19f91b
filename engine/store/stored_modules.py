"""The files of a version as they are stored: those of its author, and beside them the files made of them at upload.

One JSON object of texts by name. An author's file has no colon in its name and does not leave its folder, so these names are free:

* ``lib:NAME@VERSION/FILE`` and ``../SCRIPT/FILE``: copies of other scripts' files that it imports, as of the upload;
* ``uses:``: their versions, JSON;
* ``stripped:FILE``: what runs instead of a TypeScript file;
* ``map:``: the source map of main.js, unpacked.

The file that is run, or that a library exports from, is the first one.

A run therefore needs nothing but its own version, whatever becomes of the scripts that were copied.
"""

import json
from collections.abc import Mapping

from lodger.sandbox.runtimes.js.modules import found as imported_file
from lodger.sandbox.source_faults import Outline

#: Files that a script starts in, unless it has one of its own name, and that a library exports from.
ENTRIES = ("main.js", "main.ts")
LIBRARY_ENTRIES = ("index.js", "index.ts")
LIBRARY = "library"
#: Suffixes of an author's files; a source map lies beside main.js.
SUFFIXES = frozenset({".js", ".ts", ".json", ".map"})
#: Files of tools, which run commands from them or look up further settings in them. ``NAME.config.js`` is one, too.
TOOL_FILES = frozenset({
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "tsconfig.json", "jsconfig.json", "deno.json",
})  # fmt: skip
STRIPPED = "stripped:"
USES = "uses:"
MAP = "map:"
#: Start of the JSON text of a library's files; the entry is the first one.
LIBRARY_START = '{"index.'


def is_authored(name: str) -> bool:
    """Whether a stored name is that of an author's file."""
    return ":" not in name and not name.startswith("../")


def is_tool_file(name: str) -> bool:
    """Whether a file name (without folders) is one from which tools run commands."""
    base = name.casefold()
    return base in TOOL_FILES or base.rpartition(".")[0].endswith(".config")


def authored(stored: Mapping[str, str]) -> dict[str, str]:
    """Return the author's files."""
    return {name: text for name, text in stored.items() if is_authored(name)}


def runnable(stored: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a run: copies of other scripts' files included, TypeScript as JavaScript, no declarations.

    Under ``map:`` it has the source map, which is no module.
    """
    return {
        name: stored.get(STRIPPED + name, text)
        for name, text in stored.items()
        if not name.startswith((STRIPPED, USES)) and not name.endswith((".d.ts", ".map"))
    }


def used(stored: Mapping[str, str]) -> dict[str, int]:
    """Return the versions of the scripts that were copied, by the name that imports begin with."""
    found: dict[str, int] = json.loads(stored.get(USES, "{}"))
    return found


def entries_of(modules: Mapping[str, str], name: str | None) -> list[str]:
    """Return the files that a script of this name can start in (``main.js``, ``NAME.js``, ``NAME/main.js``), else those of a library.

    Without such a file, it is the one that no other imports.
    """
    own = (
        [] if name is None or name == "index" else [f"{name}.js", f"{name}.ts", *(f"{name}/{each}" for each in ENTRIES)]
    )
    scripts = [each for each in (*ENTRIES, *own) if each in modules]
    found = scripts or [each for each in LIBRARY_ENTRIES if each in modules][:1]
    if found:
        return found
    code = {file: Outline(text) for file, text in modules.items() if file.endswith((".js", ".ts"))}
    files = {file.encode() for file in modules}
    imported = {
        imported_file(files, file.encode(), each[0].encode())
        for file, outline in code.items()
        for each in outline.imports
    }
    roots = [file for file in code if file.encode() not in imported]
    return roots if len(roots) == 1 else []


def entry_of(stored: Mapping[str, str]) -> str:
    """Return the file that a stored script starts in or that a library exports from: its first one."""
    return next(iter(stored), ENTRIES[0])


def kind_of(kind: str, start: str) -> str:
    """Return the kind of a script, given the start of its files; a library is stored as a script."""
    return LIBRARY if kind == "script" and start.startswith(LIBRARY_START) else kind


def is_library(stored: Mapping[str, str]) -> bool:
    """Whether stored files are those of a library, which cannot be run but imported."""
    return entry_of(stored) in LIBRARY_ENTRIES
