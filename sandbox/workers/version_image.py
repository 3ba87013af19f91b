"""The image of a version as the parent holds it: a sealed file, and its layout, which is checked before any worker is told."""

import os
from dataclasses import dataclass

from lodger.sandbox.frames import IMAGE_HEAD, MAX_RUNS, PAGE, RUN
from lodger.sandbox.runtimes.js.modules import WAYS

_MAX_MEMORY_PAGES = 1 << 20  # of 4 KiB: what WebAssembly can address


@dataclass(frozen=True, slots=True)
class VersionImage:
    """Pages of a guest's memory that an attempt maps; the holder closes it.

    Attributes:
        descriptor: of the sealed file.
        layout: payload of the IMAGE frame.
    """

    descriptor: int
    layout: bytes

    def close(self) -> None:
        """Close the descriptor; call once."""
        os.close(self.descriptor)


def read_image(descriptor: int, size: int) -> VersionImage | None:
    """Return the image in a file, which takes over its descriptor; None if it is no image, because a worker that wrote it is not trusted.

    The runs are in order, apart, inside the memory, and hold as many pages as the file has after the bundle.
    """
    layout = read_layout(descriptor, size)
    if layout is None:
        os.close(descriptor)
        return None
    return VersionImage(descriptor, layout)


def read_layout(descriptor: int, size: int) -> bytes | None:
    """Return the layout at the end of an image's file; None if it is malformed."""
    end = size - IMAGE_HEAD.size
    if end < 0:
        return None
    head = os.pread(descriptor, IMAGE_HEAD.size, end)
    count, pages, bundle_bytes, way, *_facts = IMAGE_HEAD.unpack(head)
    start = end - count * RUN.size
    if not 0 < pages <= _MAX_MEMORY_PAGES or way >= len(WAYS) or not 0 < count <= MAX_RUNS or start < 0:
        return None
    runs = os.pread(descriptor, end - start, start)
    held, free = -(-bundle_bytes // PAGE), 0
    for first, length in RUN.iter_unpack(runs):
        if first < free or not length or first + length > pages:
            return None
        held, free = held + length, first + length
    return head + runs if held * PAGE == start else None
