"""Calendars of days as a grid: a row for each weekday, a column for each week, a colour and a text for each day."""

from calendar import Calendar, month_abbr
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby

from lodger.engine.service.humanize import words_of
from lodger.engine.store.schedules.run_history import ComingDay, PastDay
from lodger.engine.web.texts import _

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cell:
    """One day. ``mark`` is a sign that shows failures without colour."""

    day: date
    colour: str
    text: str
    mark: str = ""
    today: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Seven rows of cells, None before the first and after the last day.

    Attributes:
        months: name and number of columns of each month.
    """

    months: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def past(days: Sequence[PastDay]) -> Grid:
    """Return the grid of past days, coloured by the share of failures, then by the number of actions."""
    largest = max((sum(each.actions.values()) for each in days), default=0)
    return _grid([_past_cell(each, largest) for each in days], today=len(days) - 1)


def coming(days: Sequence[ComingDay]) -> Grid:
    """Return the grid of coming days, coloured by the number of slots."""
    largest = max((each.slots for each in days), default=0)
    cells = [
        Cell(each.day, f"slots-{_strength(each.slots, largest)}" if each.slots else "none", slots(each.slots))
        for each in days
    ]
    return _grid(cells, today=0)


def months(days: Mapping[str, int]) -> Iterator[tuple[str, list[list[tuple[int, int]]]]]:
    """Yield the first two months of days: name, and weeks of days, each with its number of slots; day 0 is of another month."""
    for month in list(dict.fromkeys(day[:7] for day in days))[:2]:
        year, number = map(int, month.split("-"))
        weeks = Calendar().monthdayscalendar(year, number)
        yield (
            f"{_(month_abbr[number])} {year}",
            [[(day, days.get(f"{month}-{day:02}", 0)) for day in week] for week in weeks],
        )


def weekdays() -> list[str]:
    """Return the short names of the days of the week, from Monday."""
    return _("Mon Tue Wed Thu Fri Sat Sun").split()


def _past_cell(day: PastDay, largest: int) -> Cell:
    """Return the cell of a past day; ``largest`` is the most actions of any day."""
    done, failed = day.actions.get("done", 0), day.actions.get("failed", 0)
    missed = sum(count for state, count in day.actions.items() if state not in ("done", "failed"))
    words = [f"{count} {_(words_of(state))}" for state, count in day.actions.items()]
    words += [_("gap: {0}", _(words_of(reason))) for reason in day.gaps]
    text = ", ".join(words) or _("nothing ran")
    if failed:
        return Cell(day.day, "failed-2" if failed >= done else "failed-1", text, "!")
    if done:
        return Cell(day.day, f"done-{_strength(done, largest)}", text)
    return Cell(day.day, "gap" if missed or day.gaps else "none", text)


def _strength(count: int, largest: int) -> int:
    """Return 1 to 3, the third of the largest count that a count lies in."""
    return min(3, 1 + 3 * count // max(1, largest + 1))


def slots(count: int) -> str:
    """Return a number of slots in words."""
    return _("no slots") if count == 0 else _("1 slot") if count == 1 else _("{0} slots", count)


def _grid(cells: Sequence[Cell], today: int) -> Grid:
    """Return the cells of days as seven rows, one for each weekday; ``today`` is the index of today's."""
    if not cells:
        return Grid((), ())
    shown = [Cell(each.day, each.colour, each.text, each.mark, at == today) for at, each in enumerate(cells)]
    before = shown[0].day.weekday()
    padded: list[Cell | None] = [*([None] * before), *shown]
    padded += [None] * (-len(padded) % 7)
    monday = shown[0].day - before * _DAY
    weeks = [monday + number * 7 * _DAY for number in range(len(padded) // 7)]
    named = tuple(
        (_(name) if len(some) > 1 else "", len(some))
        for (name, _year), found in groupby(weeks, key=lambda each: (each.strftime("%b"), each.year))
        for some in [list(found)]
    )
    return Grid(named, tuple((name, tuple(padded[at::7])) for at, name in enumerate(weekdays())))
