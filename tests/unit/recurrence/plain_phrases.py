"""The table of English phrases, and a plain reading of its days and times: day by day, with ``datetime`` alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

START = datetime(2026, 11, 27, tzinfo=UTC)
#: Days of the table are looked at up to here: some February 29 and Friday the 13th are far away.
_END = date(2041, 1, 1)
_WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_UNITS = {"s": 1, "m": 60, "h": 3600}


def table(name: str) -> list[tuple[str, str]]:
    """Return the lines of a table as phrase and meaning."""
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [(line.split(" => ")[0], line.split(" => ")[1]) for line in lines if " => " in line and line[0] != "#"]


@dataclass(frozen=True)
class Meaning:
    """Days and times of one rule in a zone."""

    conditions: tuple[str, ...]
    times: str
    zone: ZoneInfo

    def slots(self) -> Iterator[datetime]:
        """Yield the slots from the start on, in UTC."""
        begin = START.astimezone(self.zone).date() - timedelta(days=1)
        seconds = sorted(set(_seconds(self.times)))
        for day in (begin + timedelta(days=each) for each in range((_END - begin).days)):
            if all(_holds(each, day) for each in self.conditions):
                for second in seconds:
                    local = datetime.combine(day, time(), self.zone) + timedelta(seconds=second)
                    if local.astimezone(UTC) >= START:
                        yield local.astimezone(UTC)


def meanings(text: str) -> list[Meaning]:
    """Read a meaning of the table."""
    found = []
    for rule in text.split(" + "):
        days, times = rule.split(" @ ")
        words = days.split()
        zone = words.pop(0)[1:] if words[0].startswith("z") else "UTC"
        found.append(Meaning(tuple(words), times, ZoneInfo(zone)))
    return found


def _second(text: str) -> int:
    """Return a time of day in seconds."""
    hour, minute, second = (*map(int, text.split(":")), 0)[:3]
    return hour * 3600 + minute * 60 + second


def _seconds(text: str) -> Iterator[int]:
    """Yield the times of day of a list with ranges and steps, in seconds."""
    for each in text.split(","):
        span, slash, step = each.partition("/")
        first, _, last = span.partition("-")
        if slash:
            begin, end = (_second(first), _second(last)) if span else (0, 86_399)
            yield from range(begin, end + 1, int(step[:-1]) * _UNITS[step[-1]])
        else:
            yield _second(first)


def _last_of_month(day: date) -> int:
    return ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day


def _holds(condition: str, day: date) -> bool:
    """Whether a day fulfils one condition of the table."""
    first = START.date()
    if condition == "*":
        return True
    if condition.startswith("!"):
        return not _holds(condition[1:], day)
    if condition.startswith(".."):
        return day <= date.fromisoformat(condition[2:])
    if condition.endswith(".."):
        return day >= date.fromisoformat(condition[:-2])
    if condition.startswith("mo") and condition[2:].isdigit():
        return (day.year * 12 + day.month - first.year * 12 - first.month) % int(condition[2:]) == 0
    if condition.startswith("wd"):
        workdays = [n for n in range(1, _last_of_month(day) + 1) if day.replace(day=n).weekday() < 5]
        return day.day in {_nth(workdays, int(each[2:])) for each in condition.split(",")}
    if condition[0] == "n":
        return (day - first).days % int(condition[1:]) == 0
    if condition[0] == "w" and condition[1:].isdigit():
        monday = first - timedelta(days=first.weekday())
        return (day - monday).days // 7 % int(condition[1:]) == 0
    if condition[0] == "d" and condition[1] in "-0123456789":
        last = _last_of_month(day)
        return day.day in {n if n > 0 else last + 1 + n for n in map(int, condition[1:].split(","))}
    if condition[0] == "m" and condition[1].isdigit():
        return day.month in map(int, condition[1:].split(","))
    if condition.count("-") == 2 and condition[4] == "-":
        return day == date.fromisoformat(condition)
    if condition[2:3] == "-" and condition[:2].isdigit():
        return (day.month, day.day) == tuple(map(int, condition.split("-")))
    if condition[0] in "-0123456789":
        named = [(int(each[:-3]), _WEEK.index(each[-3:])) for each in condition.split(",")]
        return any(
            day.weekday() == weekday
            and day.day
            == _nth([n for n in range(1, _last_of_month(day) + 1) if day.replace(day=n).weekday() == weekday], number)
            for number, weekday in named
        )
    return day.weekday() in _weekdays(condition)


def _nth(days: list[int], number: int) -> int | None:
    place = number - 1 if number > 0 else len(days) + number
    return days[place] if 0 <= place < len(days) else None


def _weekdays(condition: str) -> set[int]:
    found = set()
    for each in condition.split(","):
        first, _, last = each.partition("-")
        found |= set(range(_WEEK.index(first), _WEEK.index(last or first) + 1))
    return found
