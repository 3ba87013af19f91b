"""Single keys of the terminal."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Read in place of a key when standard input has ended.
END = "\x04"


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """Read single keys for the block; yields a function that waits some seconds for a key and returns it, '' if none was pressed."""
    import termios
    import time
    import tty

    def no_key(seconds: float) -> str:
        time.sleep(seconds)
        return ""

    waiting = ""

    def pressed(seconds: float) -> str:
        nonlocal waiting
        if not waiting and select.select([sys.stdin], [], [], seconds)[0]:
            # Not by the stream, which would hold back keys that were pressed quickly.
            waiting = os.read(sys.stdin.fileno(), 64).decode("ascii", "ignore") or END
        key, waiting = waiting[:1], waiting[1:]
        return key

    if not sys.stdin.isatty():
        yield no_key
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
