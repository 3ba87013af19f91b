"""A rule in English as groups of days and times."""

from functools import partial

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.dial import TimeList
from lodger.engine.recurrence.calendar.grid import Grid
from lodger.engine.recurrence.calendar.yeardays import YearDays
from lodger.engine.recurrence.english.phrase import Clause, last_second
from lodger.engine.recurrence.english.words import clause_in_words
from lodger.engine.recurrence.groups import Group


def group_of(clause: Clause) -> Group:
    """Return the slots of one clause on the wall clock, within its bounds."""
    named = {year: clause.of_year(year) for year in clause.years()}
    days = YearDays(lambda year: clause.of_year(year, exact=False), named, clause.selection())
    times = TimeList(tuple(sorted({time for each in clause.times for time in each.times()})))
    begins = clause.begins if clause.bounded and clause.begins is not None else civil.MIN_LOCAL
    last = clause.last
    if last is None and clause.days and all(each.date and each.date.year for each in clause.days):
        last = max(each.date for each in clause.days if each.date)
    ends = civil.MAX_LOCAL if last is None else last_second(last)
    # Times that go round the clock follow it.
    recurring = all(each.whole_day() for each in clause.times)
    return Group(Grid(days, times, begins, ends), partial(clause_in_words, clause), recurring)
