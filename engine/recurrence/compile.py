"""From what the ledger keeps of a schedule to the Recurrence that answers; compiled schedules are kept."""

from datetime import datetime
from functools import lru_cache

from lodger.engine.recurrence.errors import RuleInvalid, RuleNeverFires
from lodger.engine.recurrence.meter import Metered, TooLong
from lodger.engine.recurrence.on_changes import OnChanges
from lodger.engine.recurrence.parse import parse_rule, recognise
from lodger.engine.recurrence.rrule.parser import parse_set
from lodger.engine.recurrence.rule import Density, Kind, Recurrence, RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned

MOST_RULES = 32


def compile_schedule(rules: ScheduleRules, *, now: datetime | None = None) -> Union:
    """Make the Recurrence of a schedule.

    Args:
        rules: rules, exclusions, zone and bounds.
        now: aware instant from which ``in 90s`` counts; nothing else looks at it.

    Raises:
        RuleInvalid: a rule is none, with the position; ``details["rule"]`` is its 0-based index among the rules and
            then the exclusions.
    """
    try:
        return _compiled(rules, now)
    except TypeError:  # unhashable values that came out of JSON
        return _compile(rules, now)


def compile_firing(rules: ScheduleRules, *, now: datetime | None = None) -> Union:
    """Like compile_schedule, but refuse a schedule that never fires.

    Raises:
        RuleNeverFires: ``schedule_never_fires`` with the proof in words.
    """
    schedule = compile_schedule(rules, now=now)
    reason = schedule.proves_never()
    if reason is not None:
        raise RuleNeverFires(
            "schedule_never_fires",
            "the schedule has no slot before year 10000",
            why=reason,
            fix="change the rules, or the exclusions and bounds that leave nothing of them",
        )
    return schedule


def demand_density(
    schedule: Union,
    *,
    smallest_gap_s: float | None = None,
    most_per_day: int | None = None,
    since: datetime | None = None,
) -> Density:
    """Hold a schedule, from an instant on, against a minimum interval and a budget of slots per UTC day; give its density.

    Raises:
        RuleInvalid: ``schedule_too_dense``; ``details`` has ``smallest_gap_s`` and ``most_per_day`` as they are.
    """
    density = schedule.density(since)
    gap = density.smallest_gap_s
    if smallest_gap_s is not None and gap is not None and gap < smallest_gap_s:
        what = f"two of its slots can be {gap:g} s apart, and {smallest_gap_s:g} s is the least allowed"
    elif most_per_day is not None and density.most_per_day > most_per_day:
        what = f"it can fire {density.most_per_day} times a day, and {most_per_day} is the most allowed"
    else:
        return density
    raise RuleInvalid(
        "schedule_too_dense",
        what,
        why="that is counted, with its exclusions and the changes of clocks"
        if density.exact
        else "that is a bound, proved over its rules and changes of clocks; to count what its exclusions leave is too much work",
        fix="let it fire less often, or ask for a larger allowance",
        smallest_gap_s=gap,
        most_per_day=density.most_per_day,
    )


def _compile(rules: ScheduleRules, now: datetime | None) -> Union:
    try:
        with Metered():
            return _read(rules, now)
    except TooLong:
        raise RuleInvalid(
            "schedule_too_large",
            "to work out what it says would take longer than saving one schedule may",
            why="whoever saves a schedule holds up others while it is read, so the work that reading is, is counted",
            fix="use fewer rules, exclusions and EXRULEs, above all such whose steps or windows drift through day and year",
        ) from None


def _read(rules: ScheduleRules, now: datetime | None) -> Union:
    if not rules.rules:
        raise RuleInvalid("schedule_empty", "the schedule has no rule", fix="give at least one rule")
    if len(rules.rules) + len(rules.exclusions) > MOST_RULES:
        raise RuleInvalid(
            "schedule_too_large",
            f"the schedule has more than {MOST_RULES} rules and exclusions",
            why="a question about a schedule has bounded work",
            fix="split it into several schedules",
        )
    for name in ("start", "end"):
        bound: datetime | None = getattr(rules, name)
        if bound is not None and bound.tzinfo is None:
            raise RuleInvalid("bound_naive", f"{name} has no zone", fix="give an aware UTC datetime")
    included = []
    for i, spec in enumerate(rules.rules):
        try:
            included.append(parse_rule(spec, default_tz=rules.tz, dst=rules.dst, now=now))
        except RuleInvalid as error:
            error.details["rule"] = i
            raise
    if rules.end is not None and any(isinstance(rule, OnChanges) for rule in included):
        raise RuleInvalid(
            "changes_end",
            "a schedule that runs on changes has no end",
            why="the instant at which it would end is none of its slots",
            fix="leave the end out; pause or delete the schedule then",
        )
    excluded = []
    for i, spec in enumerate(rules.exclusions, len(rules.rules)):
        try:
            excluded.append(_windows(spec, rules, now))
        except RuleInvalid as error:
            error.details["rule"] = i
            raise
    schedule = Union(included, excluded, start=rules.start, end=rules.end)
    if len(included) + len(excluded) > 1 or isinstance(included[0], Union):
        from lodger.engine.recurrence import effort

        effort.make_ready([*included, *(window.opens for window in excluded)])
    if excluded:
        _take_away(schedule)
    elif len(included) > 1 or isinstance(included[0], Union | Zoned):
        _demand_few(included)
    return schedule


def _demand_few(rules: list[Recurrence]) -> None:
    """Refuse rules that are more sequences than one question can ask in its time."""
    from lodger.engine.recurrence import effort

    if sum(map(effort.first_us, rules)) <= effort.MOST_US:
        return
    cost = sum(effort.first_us(each, known=True) for each in rules)
    if cost > effort.MOST_US:
        raise RuleInvalid(
            "schedule_too_large",
            f"its rules are so many that a question about them would cost {cost} where {effort.MOST_US} is the most",
            why="a question about a schedule has bounded work, and that is counted when it is saved",
            fix="write rules with the same days as one, or split it into several schedules",
        )
    for each in rules:
        effort.work_out(each)


def _take_away(schedule: Union) -> None:
    """Free the rules of what exclusions close; refuse those of which it is not proved that questions stay short."""
    from lodger.engine.recurrence.blackout import Undecided, freed

    try:
        schedule.asked = freed(schedule)
    except Undecided:
        raise RuleInvalid(
            "exclusions_too_dense",
            "its exclusions cover so many slots one after another that the next free one cannot be found in bounded work",
            why="a question about a schedule has bounded work, and that is proved when it is saved",
            fix="write the blackout as windows (DTSTART with DURATION, or whole days), or the rule so that it avoids them",
        ) from None


_compiled = lru_cache(maxsize=4096)(_compile)


def _windows(spec: RuleSpec, rules: ScheduleRules, now: datetime | None) -> Windows:
    opens = parse_rule(spec, default_tz=rules.tz, dst=rules.dst, now=now)
    if (spec.kind or recognise(spec.text)) is not Kind.RRULE:
        return Windows(opens)
    read = parse_set(spec.text, spec.dtstart, spec.tz or rules.tz)
    if read.duration_s is not None:
        return Windows(opens, read.duration_s)
    return Windows(opens, whole_days=read.date_only)
