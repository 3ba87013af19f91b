"""RFC 5545 against the public vectors of libical and python-dateutil, minus the declared disputes."""

import itertools
import json
import os
import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dateutil.rrule import rrulestr

from lodger.engine.recurrence import rrule
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import SearchedTo

ROOT = Path(__file__).resolve().parent.parent.parent
VECTORS = Path(os.environ.get("LODGER_VECTORS", ROOT / "../shared/vectors"))
DISPUTES = tomllib.loads(Path(__file__).with_name("rrule_disputes.toml").read_text())
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
WEEKDAYS = {
    "MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday", "SA": "Saturday", "SU": "Sunday",
}  # fmt: skip
UNITS = {"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour", "MINUTELY": "minute"}
#: Sentences of the public vectors that are ours but for the midnight and the zone.
AGREED = 13


def vectors(name: str) -> list[dict[str, Any]]:
    path = VECTORS / name
    if not path.exists():
        pytest.skip(f"NOT TESTED with public vectors: {path} is absent (set LODGER_VECTORS to their folder)")
    cases: list[dict[str, Any]] = json.loads(path.read_text())
    return cases


def instant(text: str) -> datetime:
    shape = "%Y%m%dT%H%M%S" if "T" in text else "%Y%m%d"
    return datetime.strptime(text.rstrip("Z"), shape).replace(tzinfo=UTC)


def text_of(case: dict[str, Any]) -> str:
    return case["text"] if "text" in case else f"DTSTART:{case['dtstart']}\nRRULE:{case['rrule']}"


def dispute(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return the documented dispute that a test vector belongs to, None if it belongs to none."""
    written = case.get("rrule", "")
    for family in DISPUTES["family"]:
        if family["source"] in case["src"] and written in family["rrules"]:
            return family
    return next((refused for refused in DISPUTES["refused"] if refused["part"] in written), None)


def slots_forward(rule: Recurrence, at_most: int) -> list[datetime]:
    """Return the first slots of a rule."""
    slots: list[datetime] = []
    slot = rule.next_after(FIRST, inclusive=True)
    while slot is not None and len(slots) < at_most:
        if isinstance(slot, SearchedTo):
            slot = rule.next_after(slot.instant, inclusive=True)
            continue
        slots.append(slot)
        slot = rule.next_after(slot)
    return slots


def slots_backward(rule: Recurrence, at_most: int) -> list[datetime]:
    """Return the last slots of a rule, newest first."""
    slots: list[datetime] = []
    slot = rule.previous_before(LAST)
    while slot is not None and len(slots) < at_most:
        if isinstance(slot, SearchedTo):  # a bounded search goes on from where it stopped
            slot = rule.previous_before(slot.instant, inclusive=True)
            continue
        slots.append(slot)
        slot = rule.previous_before(slot)
    return slots[::-1]


@pytest.mark.parametrize(
    ("name", "total", "refused", "disputed"),
    [("rfc5545-libical.json", 90, 14, 1), ("rfc5545-dateutil.json", 249, 21, 11)],
)
def test_public_vectors(name: str, total: int, refused: int, disputed: int) -> None:
    """Slots forwards, backwards and by seeking into the middle are the vector's; every dispute really differs."""
    counts = {"refused": 0, "disputed": 0, "agreed": 0}
    for case in vectors(name):
        expected = [instant(each) for each in case["expect"]]
        declared = dispute(case)
        if declared is not None and "error" in declared:
            with pytest.raises(RuleInvalid) as caught:
                rrule.parse(text_of(case))
            assert caught.value.code == declared["error"], case
            counts["refused" if "part" in declared else "disputed"] += 1
            continue
        rule = rrule.parse(text_of(case))
        found = slots_forward(rule, len(expected) + 2)
        if declared is not None:
            assert found != expected, f"no dispute any more: {case}"
            counts["disputed"] += 1
            continue
        assert found == expected, case
        assert slots_backward(rule, len(expected) + 2) == expected, case
        for earlier, later in itertools.pairwise(expected):
            between = earlier + (later - earlier) / 2
            assert rule.next_after(between) == later
            assert rule.previous_before(between) == earlier
        if "start_at" in case:
            seek = instant(case["start_at"])
            assert rule.next_after(seek, inclusive=True) == next(each for each in expected if each >= seek)
        counts["agreed"] += 1
    assert counts == {"refused": refused, "disputed": disputed, "agreed": total - refused - disputed}


def test_dateutil_vectors_as_its_objects() -> None:
    """The same vectors read by dateutil and given as its objects, also those disputed as text; a first week in mid-week is refused."""
    agreed = refused = 0
    for case in vectors("rfc5545-dateutil.json"):
        if "BYEASTER" in text_of(case):
            continue
        try:
            rule = parse_rule(rrule.from_dateutil(rrulestr(text_of(case))))
        except RuleInvalid:
            refused += 1  # WEEKLY with BYSETPOS, and DTSTART in the middle of a week
            continue
        expected = [instant(each) for each in case["expect"]]
        assert slots_forward(rule, len(expected) + 2) == expected, case
        assert slots_backward(rule, len(expected) + 2) == expected, case
        agreed += 1
    assert (agreed, refused) == (227, 1)


def test_public_sentences() -> None:
    """Without the midnight and the zone, which the vectors leave out, a sentence is the vector's or a dispute with its reason."""
    disputes = {each["rrule"]: each for each in DISPUTES["wording"]}
    agreed = 0
    for case in vectors("rrule-text.json"):
        dispute = disputes.pop(case["rrule"], None)
        if dispute is not None and "error" in dispute:
            with pytest.raises(RuleInvalid) as caught:
                rrule.parse(case["rrule"])
            assert caught.value.code == dispute["error"]
            continue
        sentence = rrule.parse(case["rrule"]).text()
        assert missing_facts(case["rrule"], sentence) == [], (case["rrule"], sentence)
        bare = re.sub(r" \([A-Z][A-Za-z_/]+\)$", "", sentence).replace(" at 00:00", "").casefold()
        if dispute is None:
            assert bare == case["text"].casefold(), case["rrule"]
            agreed += 1
        else:
            assert dispute["text"] == case["text"]
            assert sentence == dispute["says"]
            assert bare != case["text"].casefold(), f"no dispute any more: {case}"
    assert not disputes, "a listed difference has no vector"
    assert agreed == AGREED


def test_wording_disputes_have_a_reason_of_their_own() -> None:
    reasons = [each["why"] for each in DISPUTES["wording"]]
    assert all(len(reason.split()) > 5 for reason in reasons)
    assert len(set(reasons)) == len(reasons)


def missing_facts(text: str, sentence: str) -> list[str]:
    """What the parts of a rule demand of its sentence, and the sentence does not say."""
    parts = dict(part.split("=") for part in text.split("RRULE:")[1].split(";"))
    unit = UNITS[parts["FREQ"]]
    interval = int(parts.get("INTERVAL", "1"))
    byday = parts.get("BYDAY", "")
    weekdays = set(re.findall("[A-Z]{2}", byday))
    if weekdays == set(WEEKDAYS):
        unit, weekdays = "day", set()
    zone = re.search(r"TZID=([^:]+):", text)
    wanted = [f"Every {unit}" if interval == 1 else f"Every {interval} {unit}s", f" ({zone[1] if zone else 'UTC'})"]
    if unit not in {"hour", "minute"}:
        wanted += [f"{int(hour):02d}:00" for hour in parts.get("BYHOUR", "0").split(",")]
    if "UNTIL" in parts:
        until = instant(parts["UNTIL"])
        wanted.append(f"until {until:%B} {until.day}, {until.year} at {until:%H:%M}")
    if zone:
        start = instant(text.split("\n")[0].split(":")[1])
        wanted.append(f"starting {start:%B} {start.day}, {start.year} at {start:%H:%M}")
    wanted += [f"{ordinal(int(number))} {WEEKDAYS[day]}" for number, day in re.findall(r"([+-]\d+)([A-Z]{2})", byday)]
    days = [int(day) for day in parts.get("BYMONTHDAY", "").split(",") if day]
    wanted += [ordinal(day) for day in (days if len(days) < 4 else [days[0], days[-1]])]
    if weekdays and named_weekdays(sentence) != weekdays:
        wanted.append(f"the weekdays {sorted(weekdays)}")
    return [fact for fact in wanted if fact not in sentence]


def ordinal(number: int) -> str:
    """``3rd``, ``3rd last``, ``last``."""
    size = abs(number)
    spelled = f"{size}{'th' if 10 < size % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(size % 10, 'th')}"
    return spelled if number > 0 else "last" if number == -1 else f"{spelled} last"


def named_weekdays(sentence: str) -> set[str]:
    """Weekdays that a sentence names, those between the ends of a range included."""
    codes, names = list(WEEKDAYS), list(WEEKDAYS.values())
    found = {codes[names.index(name)] for name in names if name in sentence}
    for first, last in re.findall(r"(\w+day) through (\w+day)", sentence):
        found |= set(codes[names.index(first) : names.index(last) + 1])
    return found


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("2 weeks", "week"),
        ("Monday through", "Tuesday and"),
        ("09:00", "10:00"),
        ("June 1,", "June 2,"),
        ("America/New_York", "UTC"),
    ],
)
def test_missing_facts_are_found(right: str, wrong: str) -> None:
    rule = "DTSTART;TZID=America/New_York:20220601T000000\nRRULE:INTERVAL=2;FREQ=WEEKLY;BYDAY=MO,TU,WE;BYHOUR=9"
    sentence = "Every 2 weeks on Monday through Wednesday at 09:00; starting June 1, 2022 at 00:00 (America/New_York)"
    assert missing_facts(rule, sentence) == []
    assert missing_facts(rule, sentence.replace(right, wrong)) != []


def test_every_decision_is_in_the_docs() -> None:
    page = (ROOT / "docs/recurrence.md").read_text()
    for family in DISPUTES["family"]:
        assert f"`{family['reason']}`" in page


def test_the_walk_sees_a_planted_slot() -> None:
    rule = rrule.parse("DTSTART:20260101T000000\nRRULE:FREQ=DAILY;COUNT=3\nRDATE:20260102T120000")
    assert len(slots_forward(rule, 9)) == 4
    assert slots_forward(rule, 9) == slots_backward(rule, 9)
    assert slots_forward(rule, 9)[1] + timedelta(hours=12) == slots_forward(rule, 9)[2]
