"""Files of scripts: read and written without following links, up to a size."""

import os
import sys
from pathlib import Path

from lodger.engine.core.access.names import PACKAGES, is_of_tools
from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import visible
from lodger.engine.output.files import MAX_BYTES, read_whole
from lodger.engine.store.stored_modules import ENTRIES as SCRIPT_ENTRIES
from lodger.engine.store.stored_modules import LIBRARY_ENTRIES, SUFFIXES, is_tool_file
from lodger.sandbox.runtimes.js.modules import joined
from lodger.sandbox.source_faults import Outline

#: Most files of one script, and number of folders above it in which a schedules.toml is looked for.
MAX_FILES, MAX_DEPTH = 500, 8
#: What a WebAssembly file begins with.
WASM = b"\0asm"
#: The file of a script that is run, and the file of a library that is imported: one of them makes a folder a script's.
MAIN = SCRIPT_ENTRIES[0]
ENTRIES = (*SCRIPT_ENTRIES, *LIBRARY_ENTRIES)
_LINK = "what it leads to may lie outside the folder"
#: Code that scripts elsewhere can import.
CODE = frozenset({".tsx", ".mts", ".cts", ".jsx", ".mjs", ".cjs"})


def script(path: Path, root: Path | None = None, raw: bytes | None = None) -> dict[str, str] | bytes:
    """Read the files of a script from a file of UTF-8 text, with its imports, or from a folder; or the bytes of a WebAssembly module.

    Names are paths below the script's own folder, or below ``root`` if it imports files outside of that folder; the
    entry comes first.

    Args:
        root: no file outside of this folder is read; by default :func:`root_of`.
        raw: the file's content if it has been read: a pipe can be read once only.

    Raises:
        Usage: as :func:`read_whole`; or it is none of them.
    """
    root = root_of(path) if root is None else root
    if path.is_dir():
        files = folder(path)
        entry = next(each for each in ENTRIES if each in files)
        files = {entry: files[entry]} | files
        inside = _place(path, root) if path != root else ""
        files = {f"{inside}/{name}": text for name, text in files.items()} if inside else files
        wider = files if entry in LIBRARY_ENTRIES else with_imports(root, files)
        return (
            wider
            if len(wider) > len(files)
            else {name.removeprefix(f"{inside}/"): text for name, text in files.items()}
        )
    if path.suffix in CODE:
        raise not_javascript(path)
    raw = read_whole(path) if raw is None else raw
    if raw.startswith(WASM):
        return raw
    if path.suffix not in {"", ".js", ".ts"} and path.is_file():
        wasm = path.suffix == ".wasm"
        raise Usage("file_not_javascript.wasm" if wasm else "file_not_javascript.other", path=str(path))
    place = _place(path, root) if path.suffix else MAIN
    return with_imports(root, {place: _text(path, raw)})


def not_javascript(path: Path) -> Usage:
    """Return the error for a file of code that cannot be stored under its name."""
    name = path.stem + (".ts" if "t" in path.suffix else ".js")
    jsx = path.suffix in {".jsx", ".tsx"}
    return Usage("file_not_javascript.jsx" if jsx else "file_not_javascript.one", path=str(path), name=name)


def root_of(path: Path) -> Path:
    """Return the folder of scripts around a script: the nearest with a schedules.toml, else the script's own or the one around it."""
    around = path.absolute().parent
    for each in (around, *around.parents)[:MAX_DEPTH]:
        if (each / "schedules.toml").is_file():
            return each
    if path.name in ENTRIES or path.is_dir():
        return (path if path.is_dir() else path.parent) / ".."
    # Without a schedules.toml it is as far up as the file's own imports go.
    text = path.read_text("utf-8", "replace") if path.suffix in {".js", ".ts"} and path.is_file() else ""
    ups = max((wanted.count("../") for wanted, _at, _dynamic in Outline(text).imports), default=0)
    return path.parent.joinpath(*[".."] * min(ups, MAX_DEPTH))


def _place(path: Path, root: Path) -> str:
    """Return a path below a root, with slashes."""
    return Path(os.path.relpath(path, root)).as_posix()


def with_imports(root: Path, files: dict[str, str]) -> dict[str, str]:
    """Return files with those below ``root`` that they import by their paths, named by their paths below ``root``.

    Raises:
        Usage: as :func:`read_whole`; a file is no text, or code that cannot be stored (.mjs, .tsx); there are too many.
    """
    found, left = dict(files), MAX_BYTES - sum(map(len, files.values()))
    texts = list(files.items())
    while texts:
        file, text = texts.pop()
        for wanted, _at, _dynamic in Outline(text).imports if file.endswith((".js", ".ts")) else ():
            place = _imported(root, file, wanted)
            if place is None or place in found:
                continue
            if (root / place).suffix in CODE:
                raise not_javascript(root / place)
            raw = read_whole(root / place, left)
            left -= len(raw)
            found[place] = _text(root / place, raw)
            if len(found) > MAX_FILES:
                raise Usage("folder_unusable.many", path=str(root), count=len(found), maximum=MAX_FILES)
            texts.append((place, found[place]))
    return found


def _imported(root: Path, file: str, wanted: str) -> str | None:
    """Return the path below ``root`` of the file that an import by path means; None if there is no such file that a script can have."""
    path = joined(file.encode(), wanted.encode())
    base = path.decode() if path is not None and wanted.startswith(("./", "../")) else ".."
    if base.startswith("..") or any(is_of_tools(part) for part in base.split("/")):
        return None
    typed = [base.removesuffix(".js") + ".ts"] if base.endswith(".js") else []
    for place in (base, *typed, f"{base}/index.js", f"{base}/index.ts"):
        parts = [root / place, *(root / place).parents][: place.count("/") + 1]
        usable = (
            (root / place).suffix in SUFFIXES | CODE
            and not place.endswith(".d.ts")
            and not is_tool_file(place.rpartition("/")[2])
        )
        if usable and (root / place).is_file() and not any(each.is_symlink() for each in parts):
            return place
    return None


def folder(path: Path) -> dict[str, str]:
    """Read a script of several files: every .js, .ts, .json and .map file below a folder, by its relative path.

    Files of tools are left out, with a note on standard error; hidden folders are skipped.

    Raises:
        Usage: as :func:`read_whole`; a file is no text, or code that cannot be stored (.mjs, .tsx); there are too many.
    """
    files: list[Path] = []
    others: list[str] = []
    packages = 0
    for each in sorted(path.rglob("*")) if is_script(path) else ():
        place = each.relative_to(path)
        if any(part.startswith(".") for part in place.parts) or not each.is_file() or each.is_symlink():
            continue
        if PACKAGES in place.parts:
            packages += each.suffix == ".js"
        elif is_tool_file(each.name) or each.name.endswith(".d.ts"):
            continue
        elif each.suffix in SUFFIXES:
            files.append(each)
        elif each.suffix in CODE:
            others.append(place.as_posix())
    if packages:
        sys.stderr.write(
            f"{visible(str(path / PACKAGES))}: left out, with {packages} JavaScript files; bundle the modules that the script imports\n"
        )
    if others:
        raise Usage("file_not_javascript", path=str(path), files=others[:5])
    if not files:
        raise Usage("folder_unusable", path=str(path), maximum=MAX_FILES, entries=ENTRIES)
    if len(files) > MAX_FILES:
        raise Usage("folder_unusable.many", path=str(path), count=len(files), maximum=MAX_FILES)
    found, left = {}, MAX_BYTES
    for each in files:
        raw = read_whole(each, left)
        left -= len(raw)
        found[each.relative_to(path).as_posix()] = _text(each, raw)
    return found


def refuse_link(path: Path) -> None:
    """Refuse a path that is a link.

    Raises:
        Usage: file_is_link.
    """
    if path.is_symlink():
        raise Usage("file_is_link", path=str(path), rule=_LINK)


def regular(path: Path, maximum: int) -> str:
    """Read the text of a file in a folder of scripts.

    Raises:
        FileNotFoundError: there is none.
        OSError, ValueError: it is no regular file, too large or not UTF-8.
    """
    if not path.is_file() and path.exists():
        raise OSError(f"{path.name} is not a regular file")
    with path.open("rb") as file:
        raw = file.read(maximum + 1)
    if len(raw) > maximum:
        raise ValueError(f"{path.name} has more than {maximum} bytes")
    return raw.decode("utf-8-sig")


def put(folder: Path, file: str, data: bytes) -> None:
    """Write a file below a folder that is not known to be harmless: through a link it could lie anywhere.

    Raises:
        Usage: file_is_link.
    """
    place = folder
    for part in Path(file).parts:
        place /= part
        refuse_link(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def is_script(path: Path) -> bool:
    """Whether a folder is that of a script or a library."""
    return any((path / entry).is_file() for entry in ENTRIES)


def _text(path: Path, raw: bytes) -> str:
    """Return the text of a file, which must be UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Usage("not_text", path=str(path), position=error.start) from None
