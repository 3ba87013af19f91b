"""Times, weekdays and months in English; what is said determines the set, so no two share words."""

from lodger.engine.recurrence.calendar.dial import ALL_HOURS, ALL_MINUTES, ALL_SECONDS, Dial, members, stride

MONTHS = (
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MOST_LISTED = 8


def joined(words: list[str], last: str = "and") -> str:
    """``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``, ..."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(bits: int, names: tuple[str, ...] | None = None) -> str:
    """Members of a set: three or more in a row become ``first through last``."""
    words: list[str] = []
    run: list[int] = []
    for member in [*members(bits), None]:
        if run and (member is None or member != run[-1] + 1):
            spelled = [names[each] if names else str(each) for each in run]
            words += [f"{spelled[0]} through {spelled[-1]}"] if len(run) > 2 else spelled
            run = []
        if member is not None:
            run.append(member)
    return joined(words)


def _every(bits: int, size: int) -> int:
    """Step of a set that is exactly 0, n, 2n, ... with n dividing the size; 0 for any other set."""
    count = bits.bit_count()
    step = size // count if count else 0
    return step if count > 1 and size % count == 0 and bits == stride(0, size, step) else 0


def _times(dial: Dial) -> list[str]:
    exact = dial.seconds != 1
    return [
        f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if exact else "")
        for hour in members(dial.hours)
        for minute in members(dial.minutes)
        for second in members(dial.seconds)
    ]


def _unit(bits: int, size: int, name: str) -> str:
    step = _every(bits, size)
    if step == 1:
        return f"every {name}"
    if step:
        return f"every {step} {name}s"
    plural = "s" if bits.bit_count() > 1 else ""
    return f"at {name}{plural} {listed(bits)}"


def spoken(dial: Dial, *, recurring: bool) -> str:
    """When in a day, without capital letter.

    Args:
        dial: the times; must not be empty.
        recurring: the rule follows the running clock (through both hours of a fold) and is said with
            ``every`` or with
            its minutes; otherwise each time of day comes once a day, and is said as clock time or with
            those words.
    """
    if not recurring and dial.count() <= MOST_LISTED:
        return f"at {joined(_times(dial))}"
    parts = []
    if dial.seconds != 1:
        parts.append(_unit(dial.seconds, 60, "second"))
    if dial.minutes != ALL_MINUTES or not parts:
        parts.append(_unit(dial.minutes, 60, "minute"))
    elif dial.seconds != ALL_SECONDS and not _every(dial.seconds, 60):
        parts.append("of every minute")
    if dial.hours == ALL_HOURS:
        if parts[-1].startswith("at "):
            parts.append("of every hour")
    elif (step := _every(dial.hours, 24)) > 1:
        parts.append(f"in every {ordinal(step)} hour from midnight")
    else:
        parts.append(f"in hour{'s' if dial.hours.bit_count() > 1 else ''} {listed(dial.hours)}")
    said = " ".join(parts)
    return said if recurring else f"{said}, each once a day"


def sentence(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]
