"""The mistakes in a recurrence rule, each with its code, reason and cure; ``index`` counts characters from 0."""

from lodger.engine.recurrence.rule_errors import RuleInvalid

RULE_BYTES = 4096
TEXT_BYTES = 65_536
DATES = 1000
RULES = 16


def fault(code: str, what: str, index: int | None = None, *, why: str = "", fix: str = "") -> RuleInvalid:
    """Make the error; every code has one reason and one cure unless given."""
    reason, cure = TEACH.get(code, ("", ""))
    return RuleInvalid(code, what, why=why or reason, fix=fix or cure, index=index)


TEACH: dict[str, tuple[str, str]] = {
    "rule_empty": ("a recurrence needs at least one rule or date", "write for example FREQ=DAILY;BYHOUR=9"),
    "rule_too_long": (
        f"a rule has at most {RULE_BYTES} bytes and a whole set at most {TEXT_BYTES}",
        "split it into several schedules or shorten its lists",
    ),
    "too_many_dates": (
        f"RDATE and EXDATE together have at most {DATES} dates",
        "use a rule instead of dates",
    ),
    "too_many_rules": (
        f"a set has at most {RULES} RRULE and EXRULE lines",
        "split it into several schedules",
    ),
    "not_ascii": ("a rule is written in ASCII letters, digits and punctuation", "remove this character"),
    "space_in_rule": (
        "each property has its own line, without spaces inside; a folded line continues after one space",
        "remove the space",
    ),
    "property_unknown": (
        "a set has the properties DTSTART, RRULE, RDATE, EXDATE, EXRULE and DURATION",
        "remove the line",
    ),
    "property_repeated": ("DTSTART and DURATION occur at most once", "keep one of them"),
    "parameter_unknown": ("a property has only the parameters TZID and VALUE", "remove the parameter"),
    "part_malformed": ("a part is NAME=VALUE; semicolons separate parts", "write NAME=VALUE"),
    "part_unknown": (
        "RFC 5545 §3.3.10 defines FREQ, INTERVAL, COUNT, UNTIL, WKST, BYSETPOS and BYSECOND to BYMONTH",
        "remove the part or correct its name",
    ),
    "part_repeated": ("a part is given at most once (RFC 5545 §3.3.10)", "join the lists with commas"),
    "easter_unsupported": (
        "BYEASTER is an extension of one library and not part of RFC 5545",
        "list the dates with RDATE",
    ),
    "rscale_unsupported": (
        "only the Gregorian calendar is supported (RFC 7529 is optional)",
        "remove RSCALE and SKIP, or list the dates with RDATE",
    ),
    "freq_missing": ("every rule has FREQ", "begin with FREQ=DAILY or another frequency"),
    "freq_unknown": (
        "FREQ is SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY or YEARLY",
        "write one of them",
    ),
    "number_malformed": ("a number is written in digits", "write digits only"),
    "number_out_of_range": ("", "write a number inside the range"),
    "weekday_malformed": (
        "a weekday is MO, TU, WE, TH, FR, SA or SU, with a number from -53 to 53 before it where FREQ allows",
        "write for example MO, 1MO or -1FR",
    ),
    "weekday_number_forbidden": (
        "RFC 5545 §3.3.10 allows it only with FREQ=MONTHLY, or with FREQ=YEARLY without BYWEEKNO",
        "remove the number, or use FREQ=MONTHLY or FREQ=YEARLY",
    ),
    "count_and_until": (
        "a rule ends by COUNT or by UNTIL, not by both (RFC 5545 §3.3.10)",
        "remove one of them",
    ),
    "count_without_start": ("COUNT counts slots from DTSTART", "add DTSTART or use UNTIL"),
    "count_too_far": (
        "the last slot is computed when the rule is read, in a bounded number of steps",
        "use a smaller COUNT, or UNTIL",
    ),
    "setpos_alone": (
        "BYSETPOS selects from the times of other BY parts (RFC 5545 §3.3.10)",
        "add the BY part that it selects from, or remove BYSETPOS",
    ),
    "date_malformed": (
        "a date is YYYYMMDD, a time YYYYMMDDTHHMMSS with an optional Z for UTC (RFC 5545 §3.3.5)",
        "write for example 20261121T090000",
    ),
    "date_impossible": ("the calendar has no such date, or the day no such time", "correct the number"),
    "offset_forbidden": (
        "RFC 5545 §3.3.5 forbids offsets in a time: TZID names the zone",
        "write DTSTART;TZID=Area/City:... or a UTC time that ends in Z",
    ),
    "tzid_with_utc": ("TZID is not allowed with a UTC time (RFC 5545 §3.2.19)", "remove the Z or the TZID"),
    "tzid_with_date": ("TZID is not allowed with a DATE (RFC 5545 §3.2.19)", "remove the TZID"),
    "value_unsupported": ("dates and date-times are supported; periods are not", "use DATE or DATE-TIME"),
    "start_missing": ("RDATE and EXDATE need DTSTART", "add DTSTART"),
    "duration_malformed": (
        "a duration is positive, such as P1D, PT4H or PT90M (RFC 5545 §3.3.6)",
        "write for example DURATION:PT4H",
    ),
}
