"""Files that are written whole or not at all."""

import os
from pathlib import Path


def replace_whole(path: Path, content: bytes) -> None:
    """Replace a file, readable by its owner only; after a power cut it is the old one or the new one.

    Raises:
        OSError: the disk is full, or the permission missing; an existing file is unchanged.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
