"""Times, weekdays and months in English; different sets never share words."""

from collections.abc import Sequence
from itertools import pairwise

from lodger.engine.recurrence.calendar.civil import DAY_S
from lodger.engine.recurrence.calendar.dial import ALL_HOURS, ALL_MINUTES, ALL_SECONDS, Dial, members, stride

_MONTHS = "January February March April May June July August September October November December"
MONTHS = ("", *_MONTHS.split())
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: Up to so many times of day are listed one by one; more than so many are a series where they lie equally far apart.
MAX_LISTED, MIN_SERIES = 8, 4
#: Up to so many times are looked through for a series.
_MAX_SERIES = 288


def joined(words: list[str], last: str = "and") -> str:
    """Join words as in ``a, b and c``; ``last`` is the word before the final one."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def ordinal(number: int) -> str:
    """Return a number as an ordinal, such as ``1st``, ``2nd`` or ``11th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int) -> str:
    """Return a number as an ordinal; negative ones count from the end: ``last``, ``2nd last``."""
    return ordinal(number) if number > 0 else "last" if number == -1 else f"{ordinal(-number)} last"


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
    """Return the step of a set that is exactly 0, n, 2n, ... with n dividing the size; 0 for any other set."""
    count = bits.bit_count()
    step = size // count if count else 0
    return step if count > 1 and size % count == 0 and bits == stride(0, size, step) else 0


def series(values: Sequence[int]) -> int:
    """Step of many ascending numbers that lie equally far apart, more than 1; 0 for any others."""
    if len(values) < MIN_SERIES:
        return 0
    step = values[1] - values[0]
    return step if step > 1 and all(b - a == step for a, b in pairwise(values)) else 0


def clock(second: int, *, exact: bool = False) -> str:
    """A second of the day as 09:00, with its seconds where it has some or ``exact`` asks for them."""
    minutes, second = divmod(second, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}" + (f":{second:02d}" if second or exact else "")


def every(step: int) -> str:
    """Return a step of seconds in words, such as ``every 30 minutes``."""
    unit, name = next(
        (unit, name) for unit, name in ((3600, "hour"), (60, "minute"), (1, "second")) if step % unit == 0
    )
    return f"every {name}" if step == unit else f"every {step // unit} {name}s"


def clock_times(dial: Dial) -> str | None:
    """Times of day listed one by one or as a series, without a preposition; None when they are too many."""
    if dial.count() > _MAX_SERIES:
        return None
    times = dial.all()
    over_midnight = next((i for i in range(1, len(times)) if times[i] - times[i - 1] > DAY_S + times[0] - times[-1]), 0)
    turned = times[over_midnight:] + [time + DAY_S for time in times[:over_midnight]]
    step = series(turned)
    if step and (over_midnight or dial.count() > MIN_SERIES):
        return f"{every(step)} from {clock(turned[0])} through {clock(turned[-1] % DAY_S)}"
    if dial.count() <= MAX_LISTED:
        return f"at {joined([clock(time, exact=dial.seconds != 1) for time in times])}"
    return None


def _unit(bits: int, size: int, name: str) -> str:
    """Return the values of a unit of time, such as minutes, in words."""
    step = _every(bits, size)
    if step == 1:
        return f"every {name}"
    if step:
        return f"every {step} {name}s"
    values = members(bits)
    if step := series(values):
        return f"every {step} {name}s from {name} {values[0]} through {values[-1]}"
    return f"at {name}{'s' if len(values) > 1 else ''} {listed(bits)}"


def hours_in_words(bits: int) -> str:
    """Return hours in words, such as ``hours 9 through 17`` or ``every 2nd hour from 1 through 23``."""
    values = members(bits)
    if step := series(values):
        return f"every {ordinal(step)} hour from {values[0]} through {values[-1]}"
    return f"hour{'s' if len(values) > 1 else ''} {listed(bits)}"


def spoken(dial: Dial, *, recurring: bool) -> str:
    """Return in words when in a day a rule fires, without capital letter."""
    if not recurring and (times := clock_times(dial)) is not None:
        return times
    parts = []
    if dial.seconds != 1:
        parts.append(_unit(dial.seconds, 60, "second"))
    if dial.minutes != ALL_MINUTES or not parts:
        parts.append(_unit(dial.minutes, 60, "minute"))
    elif dial.seconds != ALL_SECONDS and not _every(dial.seconds, 60):
        parts.append("of every minute")
    if not recurring:
        parts.append(f"past {'each of ' if dial.hours.bit_count() > 1 else ''}{hours_in_words(dial.hours)}")
    elif dial.hours == ALL_HOURS:
        if dial.minutes == 1 and dial.seconds == 1:
            return "every hour"
        if parts[-1].startswith("at ") or " from " in parts[-1]:
            parts.append("of every hour")
    elif (step := _every(dial.hours, 24)) > 1:
        if dial.minutes == 1 and dial.seconds == 1:
            return f"every {step} hours"
        parts.append(f"in every {ordinal(step)} hour from midnight")
    elif parts[-1].startswith("every ") and " from " not in parts[-1] and (span := _stretch(dial.hours)):
        parts.append(f"between {span[0]:02d}:00 and {span[1]:02d}:59")
    else:
        parts.append(f"in {hours_in_words(dial.hours)}")
    return " ".join(parts)


def _stretch(hours: int) -> tuple[int, int] | None:
    """Return the first and last of hours that follow one another, also over midnight; None when they do not."""
    starts = [hour for hour in members(hours) if not hours >> (hour - 1) % 24 & 1]
    if len(starts) != 1:
        return None
    return starts[0], (starts[0] + hours.bit_count() - 1) % 24


def timed(when: str, days: str) -> str:
    """Return the words for times with their days; *every day* is said by *daily*, or by the times."""
    if days != "every day":
        return f"{when}, {days}"
    return f"daily {when}" if when.startswith("at ") and "minute" not in when and "second" not in when else when


def sentence(text: str) -> str:
    """Return the text with a capital letter."""
    return text[:1].upper() + text[1:]
