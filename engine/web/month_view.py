"""Calendars as months: a colour and a text for each day of a schedule's past, and for each coming day with slots."""

from calendar import Calendar, month_abbr
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lodger.engine.service.humanize import words_of
from lodger.engine.store.schedules.run_history import PastDay
from lodger.engine.web.texts import _


@dataclass(frozen=True, slots=True)
class Cell:
    """One day. ``mark`` is a sign that shows failures without colour."""

    colour: str
    text: str
    mark: str = ""


def past(days: Sequence[PastDay]) -> dict[str, Cell]:
    """Return the cells of past days by date, coloured by the share of failures, then by the number of actions."""
    largest = max((sum(each.actions.values()) for each in days), default=0)
    return {each.day.isoformat(): _past_cell(each, largest) for each in days}


def coming(days: Mapping[str, int]) -> dict[str, Cell]:
    """Return the cells of days with slots by date."""
    return {day: Cell("slots-2", slots(count)) for day, count in days.items() if count}


def slots(count: int) -> str:
    """Return a number of slots in words."""
    return _("1 slot") if count == 1 else _("{0} slots", count)


def months(days: Mapping[str, Cell]) -> Iterator[tuple[str, list[list[tuple[int, Cell | None]]]]]:
    """Yield each month that has some of the days: name, and weeks of days, each with its cell; day 0 is of another month."""
    for month in dict.fromkeys(day[:7] for day in sorted(days)):
        year, number = map(int, month.split("-"))
        weeks = Calendar().monthdayscalendar(year, number)
        yield (
            f"{_(month_abbr[number])} {year}",
            [[(day, days.get(f"{month}-{day:02}")) for day in week] for week in weeks],
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
        return Cell("failed-2" if failed >= done else "failed-1", text, "!")
    if done:
        # The third of the largest count that this one lies in.
        return Cell(f"done-{min(3, 1 + 3 * done // (largest + 1))}", text)
    return Cell("gap" if missed or day.gaps else "none", text)
