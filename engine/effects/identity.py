"""Keys of new rows: UUIDv7 (RFC 9562), which sort by the time they were made."""

import os
import uuid


def new_key(now_us: int) -> str:
    """Make a UUIDv7 as text: 48 bits of milliseconds, 74 random ones."""
    milliseconds = now_us // 1000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds << 80) | random
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(uuid.UUID(int=value))
