"""Linking: copies of the files that a script imports from other scripts and libraries, taken when a version is stored."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress

from sqlalchemy import Connection

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import PLATFORM, PLATFORM_PREFIX
from lodger.engine.store.records import ScriptVersion
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.content import MAX_FILES, Content, digest_of
from lodger.engine.store.stored_modules import MAP, USES, authored, is_library, runnable
from lodger.sandbox.limits import Limits
from lodger.sandbox.runtimes.js.modules import LIB, joined, sibling

#: An import of another file. It also matches in a comment or a text, and then copies files that nothing imports.
_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s{0,20}\(?\s{0,20}["']((?:lib:|\.\.?/)[^"'\n\\]{1,300})["']""")


def link(connection: Connection, tenant_id: str, name: str, content: Content, limits: Limits) -> Content:
    """Return content with copies of the files that it imports from other scripts of its tenant and from libraries.

    ``../SCRIPT/FILE`` is the newest version of a script, and so is ``./SCRIPT.js`` if the script has no such file;
    ``lib:NAME@VERSION`` is a library of the tenant and ``lib:@NAME@VERSION`` one that the platform offers.

    Raises:
        InputError: import_unknown, library_not_closed, import_cycle, source_too_large, files_too_many.
    """
    linked, uses = dict(content.modules), dict[str, int]()
    size = sum(len(text.encode()) for file, text in linked.items() if file != MAP and not file.endswith(".map"))
    texts = [(file, text) for file, text in content.modules.items() if file.endswith((".js", ".ts"))]
    tried: set[str] = set()
    while texts:
        file, text = texts.pop()
        for match in _IMPORT.finditer(text):
            root = _root(file, match[1], linked)
            if root is None or root in tried:
                continue
            tried.add(root)
            if len(tried) > MAX_FILES:
                raise InputError("files_too_many", count=len(tried), maximum=MAX_FILES)
            if root == f"../{name}":
                raise InputError("import_cycle", file=file, imported=match[1])
            at = f"{file}, line {text.count(chr(10), 0, match.start(1)) + 1}"
            found: ScriptVersion | None
            if root.startswith(LIB):
                found = _library(connection, tenant_id, root, at)
            else:
                if is_library(content.modules) and not match[1].startswith("./"):
                    raise InputError("library_not_closed", imported=match[1], at=at)
                found = None if is_library(content.modules) else _script(connection, tenant_id, root)
            if found is None:
                continue
            uses[root] = found.version
            for copied, copy in authored(runnable(scripts.content(connection, found).modules)).items():
                linked[f"{root}/{copied}"] = copy
                size += len(copy.encode())
                if copied.endswith((".js", ".ts")):
                    texts.append((f"{root}/{copied}", copy))
            if size > limits.source_bytes:
                raise InputError("source_too_large", size=size, maximum=limits.source_bytes)
            if len(linked) > MAX_FILES:
                raise InputError("files_too_many", count=len(linked), maximum=MAX_FILES)
    if not uses:
        return content
    linked[USES] = json.dumps(uses, sort_keys=True)
    return Content(linked, None, digest_of(linked), content.kind)


def imported_scripts(files: Mapping[str, str]) -> set[str]:
    """Return the names of the tenant's scripts and libraries that these files seem to import."""
    found = set()
    for file, text in files.items():
        roots = (_root(file, match[1], files) for match in _IMPORT.finditer(text) if file.endswith((".js", ".ts")))
        found |= {root[len(LIB) :].rpartition("@")[0] if root.startswith(LIB) else root[3:] for root in roots if root}
    return found


def _root(file: str, wanted: str, linked: Mapping[str, str]) -> str | None:
    """Return the beginning of an import that leaves the script: ``lib:NAME@VERSION`` or ``../SCRIPT``; None if it does not."""
    found = joined(file.encode(), wanted.encode())
    if found is None:
        return None
    path, beside = found.decode(), sibling(found)
    if wanted.startswith("./") and beside is not None and path not in linked and path[:-3] + ".ts" not in linked:
        path = beside.decode()
    parts = path.split("/")
    if parts[0].startswith(LIB):
        return parts[0]
    return "/".join(parts[:2]) if parts[0] == ".." and len(parts) > 1 else None


def _script(connection: Connection, tenant_id: str, root: str) -> ScriptVersion | None:
    """Return the script or library that an import refers to; None if there is none."""
    found = scripts.find_latest(connection, tenant_id, root.removeprefix("../"))
    return found if found is not None and found.modules and found.kind in ("script", "library") else None


def _library(connection: Connection, tenant_id: str, root: str, at: str) -> ScriptVersion:
    """Return the version of a library that an import names."""
    name, _, number = root.removeprefix(LIB).rpartition("@")
    owner = PLATFORM if name.startswith(PLATFORM_PREFIX) else tenant_id
    own_name = name.removeprefix(PLATFORM_PREFIX) if owner == PLATFORM else name
    newest = scripts.find_latest(connection, owner, own_name) if own_name else None
    hidden = owner != tenant_id and newest is not None and not scripts.is_offered(connection, newest.script_id)
    if newest is None or hidden or newest.kind != "library":
        raise InputError("import_unknown", root=root, at=at)
    if number.isascii() and number.isdecimal() and len(number) < 10:
        with suppress(NotFound):
            return scripts.get(connection, owner, own_name, int(number))
    raise InputError("import_unknown.version", root=root, at=at, name=name, newest=newest.version)
