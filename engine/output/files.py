"""Files that commands read and write whole."""

import sys
from pathlib import Path

from lodger.engine.core.errors import Usage
from lodger.engine.core.files import replace_whole

#: More than any limit allows is not even read; the sandbox names the exact limit for what is.
MAX_BYTES = 64 * 1024 * 1024


def read_whole(path: Path, maximum: int = MAX_BYTES) -> bytes:
    """Read a file up to a maximum size; ``-`` is stdin.

    Raises:
        Usage: it is missing, a folder, unreadable or too large.
    """
    if str(path) == "-":
        given = sys.stdin.buffer.read(maximum + 1)
        if len(given) > maximum:
            raise Usage("file_too_large.stdin", maximum=maximum)
        return given
    if path.is_dir():
        raise Usage("file_is_folder", path=str(path))
    try:
        with path.open("rb") as file:
            given = file.read(maximum + 1)  # its size says nothing: it may grow, or be a device
    except FileNotFoundError:
        raise Usage("file_missing", path=str(path)) from None
    except OSError as error:
        raise Usage("file_unreadable", path=str(path), reason=error.strerror) from None
    if len(given) > maximum:
        raise Usage("file_too_large", path=str(path), maximum=maximum)
    return given


def write_whole(place: str, content: bytes) -> bool:
    """Write a file whole or not at all, readable by its owner only; ``-`` is stdout. Return whether it is a file.

    Raises:
        OSError: the disk is full, or the permission missing; an existing file is unchanged.
    """
    if place == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return False
    path = Path(place)
    if path.exists() and not path.is_file():  # a device or a pipe is no place for another file beside it
        path.write_bytes(content)
        return True
    replace_whole(path, content)
    return True
