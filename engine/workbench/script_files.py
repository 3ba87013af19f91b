"""Files of scripts: read and written without following links, up to a size."""

import sys
from pathlib import Path

from lodger.engine.core.access.names import PACKAGES
from lodger.engine.core.errors import Usage
from lodger.engine.core.plain_text import visible
from lodger.engine.output.files import MAX_BYTES, read_whole
from lodger.engine.store.stored_modules import SUFFIXES, is_tool_file

#: Most files of one script.
MAX_FILES = 500
#: What a WebAssembly file begins with.
WASM = b"\0asm"
#: The file of a script that is run, and the file of a library that is imported: one of them makes a folder a script's.
MAIN = "main.js"
ENTRIES = (MAIN, "main.ts", "index.js", "index.ts")
_LINK = "what it leads to may lie outside the folder"
#: Code that scripts elsewhere can import.
CODE = frozenset({".tsx", ".mts", ".cts", ".jsx", ".mjs", ".cjs"})


def script(path: Path) -> str | bytes | dict[str, str]:
    """Read a script: a file of UTF-8 text, a folder of them, or a WebAssembly module, recognized by its first bytes.

    Raises:
        Usage: as :func:`read_whole`; or it is none of them.
    """
    if path.is_dir():
        return folder(path)
    raw = read_whole(path)
    if raw.startswith(WASM):
        return raw
    text = _text(path, raw)
    return {"main.ts": text} if path.suffix == ".ts" else text


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
    return raw.decode("utf-8")


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
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Usage("not_text", path=str(path), position=error.start) from None
