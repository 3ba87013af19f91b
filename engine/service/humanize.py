"""Durations for people."""

_UNITS = ((31_556_952, "y"), (86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def humanize_duration(seconds: float) -> str:
    """Return a duration in its two largest units, truncated: ``2 h 5 min``, ``350 ms``."""
    if seconds < 1:
        return f"{max(0, int(seconds * 1000))} ms"
    if seconds < 10:
        return f"{int(seconds * 10) / 10:g} s"
    left, words = int(seconds), []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {unit}")
        elif words:
            break
        if len(words) == 2:
            break
    return " ".join(words)
