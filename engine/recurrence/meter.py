"""How much work reading one schedule may be: counted while it is done, four to eight to a microsecond, so that every machine decides alike.

What a hostile rule makes reading do is looking at every year of the calendar again and again, or at every step of a long turn.
Those who do so say beforehand how much it is; nothing looks at a clock. Whoever reads without a meter reads as long as it takes.
"""

from contextvars import ContextVar, Token

#: A microsecond.
US = 4
#: So much may one schedule take: a quarter to half a second.
MOST = 2_000_000


class TooLong(Exception):
    """Reading has become more work than one schedule may be."""


_LEFT: ContextVar[list[int] | None] = ContextVar("left", default=None)


class Metered:
    """While it is entered, work is counted; inside another one it goes on counting there."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._token: Token[list[int] | None] | None = None

    def __enter__(self) -> None:
        if _LEFT.get() is None:
            self._token = _LEFT.set([self._most])

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _LEFT.reset(self._token)
            self._token = None


def spend(work: int) -> None:
    """Say that so much work follows.

    Raises:
        TooLong: it is more than is left.
    """
    left = _LEFT.get()
    if left is not None:
        left[0] -= work
        if left[0] < 0:
            raise TooLong
