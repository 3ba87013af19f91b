"""A disk of a few megabytes, and a way to fill it."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes, in memory."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "small", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("NOT TESTED as root: this user may not mount a small file system (run as root)")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as out:
        for size in (1024 * 1024, 4096):
            with suppress(OSError):
                while True:
                    out.write(b"x" * size)
    return filler
