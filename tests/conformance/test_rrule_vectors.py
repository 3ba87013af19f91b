"""RFC 5545 against the public vectors of libical and python-dateutil, minus the declared disputes."""

import itertools
import json
import os
import re
import tomllib
from datetime import UTC, datetime
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


def test_every_decision_is_in_the_docs() -> None:
    page = (ROOT / "docs/recurrence.md").read_text()
    for family in DISPUTES["family"]:
        assert f"`{family['reason']}`" in page
