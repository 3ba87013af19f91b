"""UUIDv7 ids: ordered by the time they were made, unique across nodes, with nothing of a tenant in them."""

import os
import re
import threading
from collections.abc import Callable

#: The tenant that is reserved for the platform itself: its schedules, its scripts that others may bind. Always there.
PLATFORM = "@platform"
#: What the names of the platform's scripts begin with for everybody else; no tenant's id or script begins so.
PLATFORM_PREFIX = "@"

_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_VERSION = 0x7
_VARIANT = 0b10


class Identities:
    """Makes UUIDv7 text (RFC 9562 §5.7), strictly ascending within one process even inside one microsecond.

    The 12 bits after the millisecond carry its fraction (RFC 9562 §6.2, method 3); when two ids fall on the same
    fraction, or the clock steps back, the later id takes the next fraction.

    Args:
        now_us: the injected clock's wall time, microseconds since 1970.
        entropy: returns a number of random bytes; replaced in simulations, so that they depend on their seed only.
    """

    def __init__(self, now_us: Callable[[], int], entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._now_us = now_us
        self._entropy = entropy
        self._last = 0
        self._lock = threading.Lock()

    def new(self) -> str:
        """Return a fresh id: 36 characters, lower case."""
        return self.new_batch(1)[0]

    def new_batch(self, number: int) -> list[str]:
        """Return several fresh ids, ascending, with one call of ``entropy``: every call releases the interpreter's lock."""
        ms, us = divmod(self._now_us(), 1000)
        with self._lock:
            first = max(ms << 12 | (us << 12) // 1000, self._last + 1)
            self._last = max(self._last, first + number - 1)
        chance = self._entropy(8 * number)
        return [_text(first + each, chance[8 * each : 8 * each + 8]) for each in range(number)]


def _text(stamp: int, chance: bytes) -> str:
    """Return the UUIDv7 text of a time stamp and random bytes."""
    random = int.from_bytes(chance, "big") >> 2
    number = (stamp >> 12) << 80 | _VERSION << 76 | (stamp & 0xFFF) << 64 | _VARIANT << 62 | random
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def first_id_at(instant_us: int) -> str:
    """Return the smallest id that can be made from this instant on, microseconds since 1970."""
    return _text(instant_us // 1000 << 12, bytes(8))


def is_id(text: str) -> bool:
    """Whether a text has the form of an id; PostgreSQL refuses to compare ids with other texts."""
    return _TEXT.fullmatch(text) is not None


def id_time_us(identity: str) -> int:
    """Milliseconds of a UUIDv7 as microseconds since 1970."""
    return int(identity.replace("-", "")[:12], 16) * 1000
