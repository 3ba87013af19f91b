"""The common meaning of a clause's parts; parts without effect, contradictions and double meanings are refused."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.civil import DAY_S
from lodger.engine.recurrence.english.phrase import HOUR_S, Clause, Date, Days, Phrase, Series, dated
from lodger.engine.recurrence.english.vocabulary import Unread
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS, clock, counted, listed, ordinal

if TYPE_CHECKING:
    from lodger.engine.recurrence.english.grammar import Draft

QUARTERS = {True: 0b0010010010010, False: 0b1001001001000}
_EVERY = (Days(),)
#: 28 years have every weekday at every date.
_YEARS = range(2001, 2029)
_WHEN, _DAYS, _BOUNDS = ("times", "interval"), ("days", "step"), ("months", "first", "last", "but")


def meant(text: str, drafts: Sequence["Draft"], zone: str | None) -> Phrase:
    """Return the phrase of the drafts that were read.

    Raises:
        Unread: a part has no effect, contradicts another, or the parts have more than one meaning.
    """
    if len(drafts) > 1:
        if zone is None and any({"interval"} <= each.parts.keys() <= {"interval", "first", "last"} for each in drafts):
            own = tuple(text[slice(*_span(each))] for each in drafts)
            what = "an interval that goes on through the days is a rule of its own, beside others in a schedule"
            raise Unread(what, _span(drafts[0])[0], own, drops=True)
        _complete(text, drafts)
    clauses = [_Meaning(text, draft, zoned=zone is not None).clause() for draft in drafts]
    for place, one in enumerate(clauses):
        for other in (*clauses[:place], *clauses[place + 1 :]):
            if _covered(one, other):
                raise _without(text, drafts[place], "a rule names only times that another one names")
    for place, (one, other) in enumerate(pairwise(clauses)):
        before, after = drafts[place : place + 2]
        if one.step[1] in ("week", "month") and "days" in after.parts and "step" not in after.parts:
            _step_of_each(text, one, after)
        joined = text[_span(before)[1] : _span(after)[0]].strip()
        if joined in (",", ";") and not {"interval", "step"} & {*before.parts, *after.parts} and _narrower(other, one):
            raise _instead_or_too(text, before, after)
    return Phrase(tuple(clauses), zone)


def _span(draft: "Draft") -> tuple[int, int]:
    """Return begin and end of a clause in the text."""
    return min(place for place, _ in draft.parts.values()), max(end for _, end in draft.parts.values())


def _without(text: str, draft: "Draft", what: str) -> Unread:
    """Return the error of a clause that must go, naming the text without it."""
    place, end = _span(draft)
    return Unread(what, place, (text[:place] + text[end:],), drops=True)


def _narrower(one: Clause, other: Clause) -> bool:
    """Whether a clause has some of another clause's days, and no others."""
    pairs = list(zip(_of_years(one), _of_years(other), strict=False))
    return all(not mine & ~theirs for mine, theirs in pairs) and any(mine != theirs for mine, theirs in pairs)


def _instead_or_too(text: str, before: "Draft", after: "Draft") -> Unread:
    """Return the error of days that have other times after a comma: they may replace the times before it, or add to them."""
    (_, end), (place, _) = _span(before), _span(after)
    days = text[slice(*after.parts["days"])]
    texts = f"{text[:end]} except {days}; {text[place:]}", f"{text[:end]} and {text[place:]}"
    return Unread(f"the times of {days!r} may come instead of those before or beside them", place, texts)


def _step_of_each(text: str, stepped: Clause, after: "Draft") -> None:
    """Refuse days that follow a step without ``every``: the step may be theirs, too."""
    begin, end = after.parts["days"]
    if re.match("(?:every|each) |.* of (?:the|every|each) month$", text[begin:end], re.IGNORECASE):
        return
    place, (count, unit) = _span(after)[0], stepped.step
    days = text[begin:end].removeprefix("on ")
    each = f"every {days}" if unit == "week" else f"on {days} of the month"
    texts = f"{text[:place]}every {count} {unit}s {text[place:]}", f"{text[:begin]}{each}{text[end:]}"
    raise Unread(f"the step may belong to {days!r} too", begin, texts)


def _complete(text: str, drafts: Sequence["Draft"]) -> None:
    """Refuse two rules in one text if one of them lacks days, times or bounds that the other has."""
    for kinds, name in ((_WHEN, "times"), (_DAYS, "days")):
        has = [
            any(kind in draft.parts for kind in kinds) or (kinds is _DAYS and {"interval", "but"} <= set(draft.parts))
            for draft in drafts
        ]
        if any(has) and not all(has):
            lacking, given = drafts[has.index(False)], drafts[has.index(True)]
            raise _lacking(text, lacking, given, kinds, name)
    for kind in _BOUNDS:
        has = [kind in draft.parts for draft in drafts]
        if any(has) and not all(has):
            span = drafts[has.index(True)].parts[kind]
            ends = {place for draft in drafts for place in _span(draft)}
            counted_from = kind == "first" and not drafts[has.index(True)].bounded
            if counted_from or (min(ends) < span[0] and span[1] < max(ends)):
                continue  # it stands amid the parts of its own rule, or counts a step, which the others lack
            said = text[slice(*span)]
            texts = [text[slice(*_span(draft))] + ("" if kind in draft.parts else f" {said}") for draft in drafts]
            raise Unread(f"{said!r} may belong to one rule or to each", span[0], (", ".join(texts),))


_EXCEPT = re.compile(r"(?:except|excluding|without|but)(?: not)?(?: for)?(?: on)? ", re.IGNORECASE)


def _lacking(text: str, lacking: "Draft", given: "Draft", kinds: Sequence[str], name: str) -> Unread:
    """Refuse a rule without days or times of its own, naming it with those that the other one has or excepts."""
    words = " ".join(text[slice(*span)] for kind, span in given.parts.items() if kind in kinds)
    place, end = _span(lacking)
    own = text[place:end]
    texts: tuple[str, ...] = (f"{text[:end]} {words}{text[end:]}",)
    if name == "days" and "but" in given.parts:
        but = _EXCEPT.sub("", text[slice(*given.parts["but"])], count=1)
        if [each.second_of_day() for each in lacking.times] == [each.second_of_day() for each in given.times]:
            texts = (text[:place] + text[end:],)
        else:
            before = re.sub(r"[ ,;]*(?:\band)?[ ,;]*$", "", text[:place], flags=re.IGNORECASE)
            texts = (f"{before}; {but} {own}{text[end:]}",)
            if "times" in given.parts and re.search(r"\band\b", text[len(before) : place], re.IGNORECASE):
                stop = given.parts["times"][1]
                texts = f"{text[:stop]} and {own}{text[stop : len(before)]}{text[end:]}", *texts
    return Unread(f"{own!r} has no {name} of its own", place, texts)


def series_text(every: str, times: Sequence[int], tail: str) -> str:
    """Return the rule for a series of times of day, in seconds, on the days that ``tail`` names."""
    if len(times) == 1:
        return f"at {clock(times[0])}{tail or ' every day'}"
    return f"{every} from {clock(times[0])} to {clock(times[-1])}{tail}"


def _dated(days: Days) -> Days:
    """Return a day of the month in exactly one month as a date; other days unchanged."""
    if len(days.month_days) == 1 and days.month_days[0] > 0 and days.months.bit_count() == 1 and not days.weekdays:
        return Days(date=Date(None, days.months.bit_length() - 1, days.month_days[0]))
    return days


def _of_years(clause: Clause) -> list[int]:
    """Return the days of a clause, as bits, for each of the years by which clauses are compared."""
    return [clause.of_year(year) for year in (*_YEARS, *sorted(clause.years()))]


def _covered(one: Clause, other: Clause) -> bool:
    """Whether another clause names every slot that this one names."""
    if one.step != other.step or (one.first, one.last) != (other.first, other.last):
        return one == other
    times, others = ({time for each in clause.times for time in each.times()} or {0} for clause in (one, other))
    if not times <= others:
        return False
    days = zip(_of_years(one), _of_years(other), strict=False)
    return all(not mine & ~theirs for mine, theirs in days)


class _Meaning:
    def __init__(self, text: str, draft: "Draft", *, zoned: bool) -> None:
        self.text, self.draft, self.zoned = text, draft, zoned

    def span(self, kind: str) -> tuple[int, int]:
        """Return the places of a part; months may stand among the days."""
        return self.draft.parts[kind if kind in self.draft.parts else "days"]

    def words(self, kind: str) -> str:
        """Return the part of the text that was read as a kind of part, such as the days."""
        return self.text[slice(*self.span(kind))]

    def other(self, what: str, kind: str, *texts: str) -> Unread:
        """Return the error of a part of this kind, with other texts to write in its place."""
        place, end = self.span(kind)
        return Unread(what, place, tuple(self.text[:place] + each + self.text[end:] for each in texts))

    def anew(self, what: str, kind: str, *texts: str, drops: bool = False) -> Unread:
        """Return the error of a part of this kind, with other texts for the whole rule."""
        return Unread(what, self.span(kind)[0], texts, drops=drops)

    def dropped(self, what: str, *kinds: str) -> Unread:
        """Refuse a part, naming the texts without each of these."""
        spans = [self.span(kind) for kind in kinds]
        return self.anew(what, kinds[0], *(self.text[:place] + self.text[end:] for place, end in spans), drops=True)

    def clause(self) -> Clause:
        """Return the clause that the parts mean together."""
        draft = self.draft
        if draft.interval_s:
            times, period_us = self._interval()
        else:
            times, period_us = self._times(), 0
        days, months = tuple(draft.days) if tuple(draft.days) != _EVERY else (), draft.months
        if months and days and all((each.month_days or each.nth) and not each.months for each in days):
            days, months = tuple(replace(each, months=months) for each in days), 0
        if months and any(each.months for each in days):
            raise self.dropped("the days are those of months that are said already", "months")
        common = {each.months for each in days if each.weekdays and not each.month_days} if not months else set()
        if len(common) == 1 and all(each.weekdays and not each.month_days for each in days):
            days, months = tuple(replace(each, months=0) for each in days), common.pop()
        bounds = draft.first, self._last(), draft.begins, draft.bounded
        clause = Clause(days, months, (0, ""), tuple(draft.but), times, period_us, *bounds)
        if draft.first and not (draft.bounded or draft.step[0] or period_us):
            said = re.sub(r"^counted (?:from )?", "starting ", self.words("first"), flags=re.IGNORECASE)
            raise self.other("only a step is counted from a day", "first", said, "")
        if draft.step[0]:
            clause = self._stepped(clause)
        elif not (draft.interval_s or "days" in draft.parts):
            raise self._no_days()
        if draft.unit != "year" and (draft.dated or any(each.date and not each.date.year for each in draft.days)):
            self._every_year()
        return self._effective(replace(clause, days=tuple(_dated(each) for each in clause.days)))

    def _last(self) -> Date | None:
        """Return the last day; without a year it is the next such date after a first day with one."""
        first, last = self.draft.first, self.draft.last
        if first is None or last is None:
            return last
        if first.year is None:
            said = self.words("first")
            once = re.sub(r"^(?:from|between) ", "starting ", said, flags=re.IGNORECASE)
            if last.year is not None:
                year = last.year - (first[1:] > last[1:])
                texts = f"{said} {year}", f"{said} {year - 1}"
                raise self.other("the year of the first day is not said", "first", *texts)
            if self.draft.bounded and once != said:
                raise self.other("a range of dates without a year comes every year, or once", "first", once)
        elif last.year is None:
            return dated(last, civil.day_of(first.year, first.month, first.day))
        elif last < first:
            raise self.other("the last day lies before the first", "last")
        return last

    # Times

    def _times(self) -> tuple[Series, ...]:
        """Return the times of day of the clause."""
        draft = self.draft
        if draft.window:
            days = self._tail().removeprefix(" on").removeprefix(" every")
            text = f"every hour {self.words('window')}" + (f" on{days}" if days else "")
            raise self.anew("how often it runs in this time is not said", "window", text)
        if draft.minutes:
            minute = draft.minutes[0]
            texts = f"every hour {self.words('minutes')}{self._tail()}", f"every day at 00:{minute:02d}"
            raise self.anew("minutes of the hour go with every hour", "minutes", *texts)
        seconds = [each.second_of_day() for each in draft.times]
        if len(set(seconds)) < len(seconds):
            raise self.other(
                "a time is named twice", "times", "at " + " and ".join(clock(each) for each in dict.fromkeys(seconds))
            )
        return tuple(Series(each, each) for each in sorted(seconds))

    def _tail(self) -> str:
        """Return the text of the days, to be put after a time; "" for every day, or without days."""
        if "days" not in self.draft.parts or tuple(self.draft.days) == _EVERY:
            return ""
        return " " + self.words("days")

    def _interval(self) -> tuple[tuple[Series, ...], int]:
        """Return the times of an interval, and its seconds."""
        draft, step = self.draft, self.draft.interval_s
        every, tail = self.words("interval") if "interval" in draft.parts else "every hour", self._tail()
        if "times" in draft.parts:
            said = self.words("times")
            at = said if said.startswith("at") else f"at {said}"
            what = "a step of hours, minutes or seconds has no times of day"
            bare = [each for each in draft.times if step == HOUR_S and not each.minute and not each.half]
            minutes = [f"{every} at minute {each.hour}{tail}" for each in bare[: len(draft.times) == 1]]
            texts = (f"every day {at}{tail}", *minutes, f"{every}{tail}")
            raise self.anew(what, "times", *texts, drops=True)
        if draft.minutes:
            if draft.window or step != HOUR_S:
                raise self._minutes_of_series(every, tail)
            return tuple(
                Series(minute * 60, DAY_S - HOUR_S + minute * 60, HOUR_S) for minute in sorted(set(draft.minutes))
            ), 0
        if draft.window:
            return self._window(step), 0
        # Beside days, and on a zone's clock, an interval begins at midnight; alone it counts from the start.
        if not (self.zoned or any(kind in draft.parts for kind in ("days", "step", "months", "but"))):
            return (), step * 1_000_000
        if DAY_S % step:
            what = "this step does not fit a day, so that it begins anew in each: say from when to when"
            raise self.other(what, "interval", f"{every} from 00:00 to 23:59")
        return (Series(0, DAY_S - step, step),), 0

    def _minutes_of_series(self, every: str, tail: str) -> Unread:
        """Refuse minutes of the hour beside a window or a step that is not an hour; a window says them with its ends."""
        step, series = self.draft.interval_s, []
        begin, end = 0, 23 * HOUR_S + 3599
        if self.draft.window:
            begin, end = (each.second_of_day() for each in self.draft.window)
        for minute in self.draft.minutes:
            first = begin + (minute * 60 - begin) % HOUR_S
            last = end - (end - first) % step
            # A step that is no longer than the minute begins at no other time because of it.
            if minute * 60 < step and first < last:
                series.append(f"{every} from {clock(first)} to {clock(last)}{tail}")
        all_series = "; ".join(series) if len(series) == len(self.draft.minutes) else ""
        plain = not self.draft.window and step <= HOUR_S
        hourly = (f"every hour {self.words('minutes')}{tail}",) if plain else ()
        return self.anew("minutes of the hour go with every hour", "minutes", all_series, *hourly)

    def _window(self, step: int) -> tuple[Series, ...]:
        """Return the times of an interval within a window of the day."""
        draft = self.draft
        assert draft.window is not None
        first, last = (each.second_of_day() for each in draft.window)
        length = (last - first) % DAY_S
        if step > length:
            text = f"every day at {clock(first)}{self._tail()}"
            raise self.anew("the step is longer than this time", "window", text, drops=True)
        if last < first and (draft.months or draft.but or (draft.days and tuple(draft.days) != _EVERY)):
            nights = self._nights(first, last, step)
            raise self.anew("a time over midnight belongs to two days", "window", *nights)
        return (Series(first, (first + length // step * step) % DAY_S, step),)

    def _nights(self, first: int, last: int, step: int) -> Iterable[str]:
        """Yield the rules of each weekday's evening and the morning after it."""
        bits = self.draft.days[0].weekdays if len(self.draft.days) == 1 else 0
        if self.draft.days != [Days(bits)] or self.draft.months or self.draft.but:
            return
        every, times = self.words("interval"), range(first, last + DAY_S + 1, step)
        evening, morning = ([each % DAY_S for each in times if each // DAY_S == day] for day in (0, 1))
        after = (bits << 1 | bits >> 6) & 127
        rules = [series_text(every, evening, f" on {listed(bits, WEEKDAYS)}")]
        rules += [series_text(every, morning, f" on {listed(after, WEEKDAYS)}")] if morning else []
        yield "; ".join(rules)

    # Steps

    def _no_days(self) -> Unread:
        """Return the error of a rule without days, with texts that have some."""
        draft = self.draft
        if not draft.parts:
            return Unread("the rule names no days", 0, (f"every day {self.text}",))
        if draft.months:
            said = re.sub(r"^(?:every|each|in|during) ", "", self.words("months"), flags=re.IGNORECASE)
            place, end = draft.parts["months"]
            first = f"every 1 {said}" if draft.months.bit_count() == 1 else f"on the 1st of {said}"
            head, tail = self.text[:place], self.text[end:]
            texts = f"{head}{first}{tail}", f"{head}every day in {said}{tail}"
            return self.anew("the day is not said", "months", *texts)
        kind = next(iter(draft.parts))
        return self.anew("the days are not said", kind, f"every day {self.text}")

    def _stepped(self, clause: Clause) -> Clause:
        """Return the clause with its step, such as every 2 weeks, from its unit and number."""
        count, unit = self.draft.step
        name = self.draft.unit
        if unit == "day":
            if clause.days or clause.months:
                second = "days" if clause.days else "months"
                days = ("on Monday, Wednesday and Friday" + self._at(),) if count == 2 and second == "days" else ()
                every = (f"every day {self.words(second)}{self._at()}",) if second == "months" else ()
                error = self.dropped("every few days and named days do not go together", second, "step")
                raise Unread(error.what, error.place, (*days, *every, *error.instead))
            return replace(clause, step=(count, unit))
        if unit == "week":
            return self._weeks(clause, count)
        if unit == "year":
            return self._years(clause, count)
        return self._months(clause, count, name)

    def _every_year(self) -> None:
        """Refuse a date without a year that is not said to come every year."""
        words = self.words("days")
        if words.lower().startswith(("every ", "each ")):
            return
        bare = re.sub(r"^(?:on|from) ", "", words, flags=re.IGNORECASE).removeprefix("the ")
        bare = re.sub(r"^between (.*?) (?:and|&) ", r"\1 to ", bare, flags=re.IGNORECASE)
        raise self.other("a date without a year comes every year, or once", "days", f"every {bare}")

    def _at(self) -> str:
        """Return the text of the times, to be put after days; "" without times."""
        return f" {self.words('times')}" if "times" in self.draft.parts else ""

    def _weeks(self, clause: Clause, count: int) -> Clause:
        """Return the clause with a step of so many weeks."""
        if clause.months:
            raise self.dropped("weeks are not counted within months", "months")
        if any(each.month_days or each.nth or each.date for each in clause.days):
            raise self.dropped("weeks have no days of the month", "step", "days")
        if not clause.days and "days" in self.draft.parts:
            raise self.dropped("a step of weeks and every day do not go together", "step", "days")
        if not clause.days and clause.times:
            first = self.draft.first
            weekday = civil.weekday(civil.day_of(first.year, first.month, first.day)) if first and first.year else 0
            every = "every week" if count == 1 else f"every {count} weeks"
            raise self.other("the weekday is not said", "step", f"{every} on {WEEKDAYS[weekday]}")
        return replace(clause, step=(0, "") if count == 1 and clause.days else (count, "week"))

    def _months(self, clause: Clause, count: int, name: str) -> Clause:
        """Return the clause with a step of so many months."""
        every = "every month" if count == 1 else f"every {count} months"
        quarter, first = name == "quarter" and count == 3, self.draft.first
        if quarter and "days" not in self.draft.parts:
            if first and (first.day != 1 or not QUARTERS[True] >> first.month & 1):
                texts = f"every 3 months on the {ordinal(first.day)}", "every quarter on the 1st"
                raise self.other(
                    "the quarter may begin with this day, or in January, April, July and October", "step", *texts
                )
            clause = replace(clause, days=(Days(month_days=(1,)),))
        if not clause.days:
            raise self.other(
                "the day of the month is not said", "step", f"{every} on the {ordinal(first.day if first else 1)}"
            )
        if any(each.date for each in clause.days):
            raise self.dropped("a date comes once a year", "step")
        if len(clause.days) > 1 and any(each.weekdays and not each.month_days for each in clause.days):
            raise self.dropped("a month has several of a weekday", "step")
        if any(each.weekdays and not each.month_days for each in clause.days):
            bits, said = clause.days[0].weekdays, self.words("days")
            nth = f"on the 1st {WEEKDAYS[bits.bit_length() - 1]} of {'each quarter' if quarter else 'the month'}{self._at()}"
            weekly = f"{said}{self._at()}", *([nth] if bits.bit_count() == 1 else [])
            raise self.anew("a month has several of a weekday", "step", *weekly)
        if quarter:
            if clause.months or any(each.months for each in clause.days):
                raise self.dropped("the months of a quarter are January, April, July and October", "step")
            try:
                return replace(clause, days=tuple(in_quarter(each) for each in clause.days))
            except ValueError:
                raise self.dropped("first and last days of a quarter stand in a rule of their own", "days") from None
        if count > 1 and (clause.months or any(each.months for each in clause.days)):
            raise self.dropped("a step of months and named months do not go together", "step")
        return replace(clause, step=(0, "") if count == 1 else (count, "month"))

    def _years(self, clause: Clause, count: int) -> Clause:
        """Return the clause with a step of so many years."""
        if not clause.days:
            if clause.months:
                raise self._no_days()
            first = self.draft.first or Date(None, 1, 1)
            every = f"every {count} years on" if count > 1 else "every"
            raise self.other("the date is not said", "step", f"{every} {first.day} {MONTHS[first.month]}")
        if not clause.months and any(not (each.months or (each.date and not each.date.year)) for each in clause.days):
            raise self.other("the month is not said", "step", "in January")
        return replace(clause, step=(0, "") if count == 1 else (count, "year"))

    # Effects

    def _effective(self, clause: Clause) -> Clause:
        """Refuse filters and alternatives that change no day, and clauses without any day."""
        if not (clause.days or clause.months or clause.but):
            return clause
        for each in clause.days:
            for counted_days in (each.month_days, each.nth):
                if len(set(counted_days)) < len(counted_days):
                    raise self.other("one of the days is named twice", "days", *self._fewer())
        days = _of_years(clause)
        if not any(days):
            raise self._never(clause)
        if clause.months and clause.days and days == _of_years(replace(clause, months=0)):
            raise self.dropped("the months change nothing", "months")
        if self.draft.but_range:  # what it holds beside the days is no part of its own
            for each in clause.but:
                fewer = replace(clause, but=tuple(other for other in clause.but if other != each))
                clause = fewer if fewer.but and days == _of_years(fewer) else clause
        for place in range(len(clause.but)):
            if days == _of_years(replace(clause, but=(*clause.but[:place], *clause.but[place + 1 :]))):
                raise self.dropped("the exception changes nothing", "but")
        if len(clause.days) > 1:
            for place in range(len(clause.days)):
                fewer = replace(clause, days=(*clause.days[:place], *clause.days[place + 1 :]))
                if days == _of_years(fewer):
                    raise self.other("one of the days is named twice", "days", *self._fewer())
        return clause

    def _fewer(self) -> Iterable[str]:
        """Yield texts with fewer days, to write instead."""
        words = self.words("days")
        for sign in (" and ", ", ", " or "):
            head, found, tail = words.partition(sign)
            if found:
                yield head
                yield tail

    def _never(self, clause: Clause) -> Unread:
        """Return the error of a clause without any day."""
        if clause.but:
            if clause.days and not self._is_week(clause):
                return self.dropped("the exceptions leave no day", "but")
            return self.anew("the exceptions leave no day", "but", f"every day{self._at()} {self.words('but')}")
        for each in clause.days:
            months = each.months or clause.months
            if months and each.month_days:
                names = " and ".join(MONTHS[month] for month in range(1, 13) if months >> month & 1)
                return self.other("these months have no such day", "days", f"on the last day of {names}")
        return self.other("no year has such a day", "days")

    @staticmethod
    def _is_week(clause: Clause) -> bool:
        """Whether a clause names its days by the weekday only."""
        return all(each.weekdays and not each.month_days for each in clause.days)


def in_quarter(days: Days) -> Days:
    """Return days of the month as days of the quarter: counted in its first month, or from the end in its last.

    Raises:
        ValueError: some are counted from the beginning and some from the end.
    """
    numbers = [*days.month_days, *(number for number, _ in days.nth)]
    sides = {number > 0 for number in numbers}
    if len(sides) != 1:
        raise ValueError(f"{', '.join(map(counted, numbers))} of the quarter")
    return replace(days, months=QUARTERS[sides.pop()])
