"""What people give on the command line: files of source and JSON, read with errors that say what is wrong."""

import json
from pathlib import Path
from typing import Any

from lodger.engine.cli.failure import Usage

#: More than any limit allows is not even read; the sandbox names the exact limit for what is.
MOST_BYTES = 64 * 1024 * 1024
#: What a WebAssembly file begins with.
WASM = b"\0asm"


def source(path: Path) -> bytes:
    """Read a script's file; ``-`` is stdin.

    Raises:
        Usage: it is missing, a folder, unreadable or larger than anything that could run.
    """
    if str(path) == "-":
        import sys

        return sys.stdin.buffer.read(MOST_BYTES)
    if path.is_dir():
        raise Usage("file_is_folder", f"{str(path)!r} is a folder", fix="name the script's file")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Usage("file_too_large", f"{str(path)!r} is larger than {MOST_BYTES} bytes")
        return path.read_bytes()
    except FileNotFoundError:
        raise Usage("file_missing", f"there is no file {str(path)!r}", fix="check the path and its spelling") from None
    except OSError as error:
        raise Usage("file_unreadable", f"{str(path)!r} cannot be read: {error.strerror}") from None


def script(path: Path) -> str | bytes:
    """Read a script's file: UTF-8 text, or the bytes of a WebAssembly module, which its first bytes tell.

    Raises:
        Usage: as :func:`source`; or it is neither.
    """
    raw = source(path)
    return raw if raw.startswith(WASM) else _text(path, raw)


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Usage(
            "not_text",
            f"{str(path)!r} is not UTF-8 text",
            why=f"byte {error.start} cannot begin or continue a character",
            fix="a script is a text file of JavaScript",
        ) from None


def value(name: str, given: str | None) -> Any:  # noqa: ANN401 - any JSON value
    """Read an option that is JSON text.

    Raises:
        Usage: it is not JSON.
    """
    if given is None:
        return None
    try:
        return json.loads(given, parse_constant=_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Usage(
            "not_json",
            f"{name} is not JSON: {error}",
            fix=f"""{name} '{{"name": "value"}}'""",
        ) from None


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is larger than a number can be")
    return number
