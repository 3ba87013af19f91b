"""Atomic writing of files, readable by their owner only."""

import os
import sys
from pathlib import Path


def keep(place: str, content: bytes) -> bool:
    """Write a file; ``-`` is stdout. Return whether it is a file.

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
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return True
