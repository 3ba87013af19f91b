"""The lines that a script wrote, within the limits: cut and dropped lines are marked, memory is bounded whatever the worker sends."""

from lodger.sandbox.frames import LEVELS
from lodger.sandbox.job import LogLine
from lodger.sandbox.limits import Limits

_CUT = "… [cut]"


class Logbook:
    """Keeps what fits. An honest worker applies the same limits before it sends; this is for the others."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lines: list[LogLine] = []
        self._bytes = 0
        self._full = False
        self.dropped = 0

    def add(self, level: int, text: bytes, us: int) -> LogLine | None:
        """Keep a line, cut if need be; None when it was dropped."""
        limits = self._limits
        room = min(limits.log_line_bytes, limits.log_bytes - self._bytes)
        if self._full or len(self._lines) >= limits.log_lines or room <= 0:
            self._full = True
            self.dropped += 1
            return None
        kept = text[:room]
        self._bytes += len(kept)
        words = kept.decode("utf-8", "ignore" if len(kept) < len(text) else "replace")
        line = LogLine(
            LEVELS[level] if level < len(LEVELS) else "info", words + _CUT if len(kept) < len(text) else words, us
        )
        self._lines.append(line)
        return line

    def lines(self, us: int) -> tuple[LogLine, ...]:
        """Give what was kept, with a last line that says what was not."""
        if not self.dropped:
            return tuple(self._lines)
        limits = self._limits
        mark = f"[{self.dropped} more lines dropped: at most {limits.log_lines} lines and {limits.log_bytes} bytes are kept]"
        return (*self._lines, LogLine("warn", mark, us))
