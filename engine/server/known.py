"""Whose token or session opened something before. This memory decides who is served next and nothing else: what a token opens the
gate asks anew each time. It is the same at every address, because whoever shows a token has it.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

#: Shown tokens and sessions whose owner is remembered, by digest.
KEPT = 20_000
#: Headers that could say who asks, in small letters.
SHOWING = frozenset({b"authorization", b"cookie"})


class Known:
    """Owners by the digest of what they showed; those who showed it last are kept."""

    def __init__(self) -> None:
        self._owners: OrderedDict[bytes, str] = OrderedDict()

    def owner(self, shown: bytes) -> str | None:
        """Give whose it is, None for what opened nothing yet."""
        return self._owners.get(shown)

    def note(self, shown: bytes, owner: str | None) -> None:
        """Remember whose it is; None: that it opened nothing."""
        if owner is None:
            self._owners.pop(shown, None)
            return
        self._owners[shown] = owner
        self._owners.move_to_end(shown)
        if len(self._owners) > KEPT:
            self._owners.popitem(last=False)

    def __len__(self) -> int:
        return len(self._owners)


def digest(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Give a digest of what could say who asks; names are in small letters."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in headers:
        if name in SHOWING:
            found.update(b"%b:%b\n" % (name, value))
    return found.digest()
