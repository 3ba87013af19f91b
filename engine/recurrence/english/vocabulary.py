"""Words of English rules, and the split of a text into tokens: each word has one kind, by which the grammar goes on."""

import re
from itertools import islice
from typing import Any, NamedTuple

from lodger.engine.recurrence.english.phrase import HOUR_S, WEEKEND, WORKDAYS, Date
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS


class Token(NamedTuple):
    """A piece of the text.

    Attributes:
        kind: word class; a word with a part of its own in the grammar is its own kind.
        value: number, date, bits of weekdays, seconds of a time, …
        text: as written, in lower case.
        place, end: 0-based positions in the text.
    """

    kind: str
    value: Any
    text: str
    place: int
    end: int


_SHORT_DAYS = ("mon", "tue tues", "wed weds", "thu thur thurs", "fri", "sat", "sun")
_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
#: Seconds of a unit, or the unit of the calendar that it counts in with how many of it.
UNITS: dict[str, int | tuple[str, int]] = {
    "second": 1, "minute": 60, "hour": HOUR_S,
    "day": ("day", 1), "week": ("week", 1), "fortnight": ("week", 2), "month": ("month", 1), "quarter": ("month", 3), "year": ("year", 1),
}  # fmt: skip
_UNIT_NAMES = {
    "second": "second seconds sec secs s", "minute": "minute minutes min mins m", "hour": "hour hours hr hrs h",
    "day": "day days d", "week": "week weeks wk wks w", "fortnight": "fortnight fortnights", "month": "month months mo mos",
    "quarter": "quarter quarters", "year": "year years yr yrs y",
}  # fmt: skip
_ADVERBS = {
    "hourly": "hour", "daily": "day", "weekly": "week", "fortnightly": "fortnight", "monthly": "month",
    "quarterly": "quarter", "yearly": "year", "annually": "year",
}  # fmt: skip
_DAY_SETS = {"weekday": WORKDAYS, "workday": WORKDAYS, "weekend": WEEKEND}
_KINDS = {
    "every": "every each all", "other": "other alternate", "at": "at @", "on": "on", "the": "the", "of": "of", "in": "in during within",
    "from": "from between", "start": "starting beginning counted since", "until": "until till",
    "to": "to through thru - –", "and": "and & or / plus also", ",": ", ;", "except": "except excluding without but",
    "not": "not", "for": "for", "last": "last", "edge": "start end beginning", "business": "business working work",
    "past": "past", "half": "half", "ampm": "am pm", "oclock": "o'clock oclock", "a": "a an", "once": "once",
    "per": "per", "time": "time", "run": "run",
}  # fmt: skip
_NUMBER_WORDS = {
    **{name: number for number, name in enumerate(_NUMBERS.split(), 1)}, "thirty": 30, "forty": 40, "forty-five": 45, "fifty": 50,
    "twenty-five": 25,
    "sixty": 60, "ninety": 90,
}  # fmt: skip

#: Kind and value of each word.
WORDS: dict[str, tuple[str, Any]] = {
    **{word: (kind, word) for kind, words in _KINDS.items() for word in words.split()},
    **{name: ("nth", number) for number, name in enumerate(_ORDINALS, 1)},
    **{word: ("unit", unit) for unit, words in _UNIT_NAMES.items() for word in words.split()},
    **{word: ("adverb", unit) for word, unit in _ADVERBS.items()},
    **{name: ("number", number) for name, number in _NUMBER_WORDS.items()},
    **{word: ("days", bits) for name, bits in _DAY_SETS.items() for word in (name, f"{name}s")},
    **{
        word: ("weekday", number)
        for number, (full, short) in enumerate(zip(WEEKDAYS, _SHORT_DAYS, strict=True))
        for word in (full.lower(), f"{full.lower()}s", *short.split())
    },
    **{
        word: ("month", number)
        for number, full in enumerate(MONTHS)
        if full
        for word in {full.lower(), full[:3].lower(), *(["sept"] if number == 9 else [])}
    },
    "noon": ("moment", 12 * HOUR_S), "midday": ("moment", 12 * HOUR_S), "midnight": ("moment", 0),
}  # fmt: skip
AREAS = (
    "africa|america|antarctica|arctic|asia|atlantic|australia|brazil|canada|chile|etc|europe|indian|mexico|pacific|us"
)
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:"
    r"(?P<zone>\([^()]{1,80}\)|(?:" + AREAS + r")(?:/[a-z0-9_+-]+)+|utc\b|gmt\b)"
    r"|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"|(?P<slashed>[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}|(?<!at )[0-9]{1,2}/[0-9]{1,2}(?![0-9/]))"
    r"|(?P<clock>(?P<hour>[0-9]{1,2})(?:[:.](?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?[ ]?(?P<half>a\.m\.?|p\.m\.?|am\b|pm\b)"
    r"|(?P<xhour>[0-9]{1,2})[:.](?P<xminute>[0-9]{2})(?::(?P<xsecond>[0-9]{2}))?(?![0-9]))"
    r"|(?P<hours>[0-9]{1,2}h[0-9]{2})\b"
    r"|(?P<ordinal>[0-9]{1,3})(?:st|nd|rd|th)\b"
    r"|(?P<length>(?:[0-9]+[a-z]+)+)\b"
    r"|:(?P<past>[0-9]{2})\b"
    r"|(?P<number>[0-9]+)"
    r"|(?P<word>(?:twenty|forty)-five|o'clock|[^\W\d_]+(?:['’][^\W\d_]+)?)"
    r"|(?P<sign>[^\s\w]))"
)  # fmt: skip


_CLASSES = ("zone", "date", "slashed", "clock", "hours", "ordinal", "length", "past", "number", "word", "sign")


class Unread(Exception):
    """A text that no grammar reads.

    Attributes:
        what: what is wrong.
        place: where.
        instead: texts to write instead.
        example: they are examples of rules, and not what was meant.
        drops: they leave a part of the text out.
    """

    def __init__(
        self, what: str, place: int, instead: tuple[str, ...] = (), *, example: bool = False, drops: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.place, self.instead, self.example, self.drops = what, place, instead, example, drops


def tokens(text: str) -> list[Token]:
    """Return the words and numbers of a rule."""
    found, at = [], 0
    # Some capital letters have several small ones: the places must stay.
    lower = "".join(each.lower() if len(each.lower()) == 1 else each for each in text)
    end = len(text.rstrip(" \t\r\n.,;"))
    while at < end:
        match = _TOKEN.match(lower, at, end)
        if match is None:
            raise Unread(f"{text[at:].strip()[:20]!r} is not a word of a rule", at)
        at = match.end()
        if match["sign"] == "." and lower[at : at + 1].isdigit():
            raise Unread("fractions stand in a rule of their own, such as every 90 minutes", at - 1)
        if match["sign"] != ".":  # of an abbreviation
            found.append(_token(match, text))
    for place, each in enumerate(found):  # "between x and y" is "from x to y"
        if each.text == "between":
            ends = (after for after in range(place, len(found)) if found[after].text in ("and", "&"))
            for after in islice(ends, 1):
                found[after] = found[after]._replace(kind="to", text="to")
    return [_second(found, place) if each.text == "second" else each for place, each in enumerate(found)]


def _second(found: list[Token], place: int) -> Token:
    """Return the token ``second`` as the ordinal 2nd if something follows that it can count; else as the unit of time."""
    after = [each.kind for each in found[place + 1 : place + 4]]
    if place and found[place - 1].kind == "number":
        return found[place]
    if place and found[place - 1].kind == "the":
        return found[place]._replace(kind="nth", value=2)
    counts = after[:1] and after[0] in ("weekday", "days", "business", "unit", "month", "of")
    listed = after[:1] and after[0] in ("and", ",") and {"nth", "last"} & set(after[1:3])
    return (
        found[place]._replace(kind="nth", value=2) if counts or listed or after[:2] == ["to", "last"] else found[place]
    )


def _token(match: re.Match[str], text: str) -> Token:
    """Return the token that a match of a text is."""
    name = next(each for each in _CLASSES if match[each] is not None)
    place, end, word = match.start(name) - (name == "past"), match.end(), match[name]
    if name == "zone":
        return Token("zone", text[place:end].strip("()").strip(), word, place, end)
    if name == "date":
        return Token("date", Date(*map(int, word.split("-"))), word, place, end)
    if name == "clock":
        return Token("clock", _clock(match, place, end), word, place, end)
    if name == "hours":
        hour, minute = map(int, word.split("h"))
        return Token("clock", (hour, minute, 0, "", True), word, place, end)
    if name == "ordinal":
        return Token("nth", int(word), word, place, end)
    if name in ("word", "sign"):
        kind, value = WORDS.get(word.replace("’", "'"), ("unknown", word))
        return Token(kind, value, word, place, end)
    return Token(name, int(word) if name != "length" and name != "slashed" else word, word, place, end)


def _clock(match: re.Match[str], place: int, end: int) -> tuple[int, int, int, str, bool]:
    """Return hour, minute, second, ``am`` or ``pm``, and whether the hour can only be one of 24."""
    half = (match["half"] or "")[:1]
    hour, minute, second = (match[f"{'' if half else 'x'}{part}"] for part in ("hour", "minute", "second"))
    return int(hour), int(minute or 0), int(second or 0), f"{half}m" if half else "", hour.startswith("0") and not half
