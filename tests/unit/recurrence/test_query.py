import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.query import MAX_SLOTS, answer, answer_lines

NOON = "2026-11-21T12:00:00Z"


def test_the_whole_answer() -> None:
    question = {"id": 7, "rule": "0 9 * * 1-5", "tz": "Europe/Berlin", "after": NOON, "n": 2}
    assert answer(question) == {
        "id": 7,
        "kind": "cron",
        "text": "At 09:00, on Monday through Friday (Europe/Berlin)",
        "tz": "Europe/Berlin",
        "next": ["2026-11-23T08:00:00Z", "2026-11-24T08:00:00Z"],
        "never": False,
        "reason": None,
        "shifted": [],
        "ends": False,
        "last": None,
    }


#: Questions, and parts of their answers.
ANSWERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"rule": "@daily", "n": 2, "previous": True},
     {"next": ["2026-11-21T00:00:00Z", "2026-11-20T00:00:00Z"], "previous": ["2026-11-21T00:00:00Z", "2026-11-20T00:00:00Z"]}),
    ({"rule": "0 9 * * 1-5", "counts": True}, {"most_per_day": 1, "smallest_gap_s": 86_400, "next_year": 261}),
    ({"rule": "* * * * *", "counts": True}, {"next_year": None}),
    ({"rule": "0 0 30 2 *", "counts": True}, {"most_per_day": 0}),
    ({"rule": "@hourly"}, {"next": ["2026-11-21T13:00:00Z"]}),
    ({"rule": "@hourly", "inclusive": True}, {"next": [NOON]}),
    ({"rule": "@hourly", "previous": True}, {"next": ["2026-11-21T11:00:00Z"]}),
    ({"rule": "@hourly", "previous": True, "inclusive": True}, {"next": [NOON]}),
    ({"rule": "0 0 31 2,4 *"}, {"next": [], "never": True}),
    ({"rule": "at 2020-01-01"}, {"next": [], "never": False, "reason": None, "ends": True, "last": "2020-01-01T00:00:00Z"}),
    ({"rule": "dates(2030/5/1..2030/5/9)"}, {"last": "2030-05-09T00:00:00Z"}),
    ({"rule": "30 2 * * *", "tz": "Europe/Berlin", "after": "2027-03-27T12:00", "n": 2},
     {"next": ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"], "shifted": ["2027-03-28T01:00:00Z"]}),
    ({"rule": "30 2 * * *", "tz": "Europe/Berlin", "after": "2027-03-27T12:00", "gap": "skip"}, {"next": ["2027-03-29T00:30:00Z"]}),
    ({"rule": "every 500ms", "n": 2}, {"next": ["2026-11-21T12:00:00.5Z", "2026-11-21T12:00:01Z"]}),
    ({"rule": "@daily", "tz": "Asia/Tokyo", "after": "2026-11-21T00:00"}, {"next": ["2026-11-21T15:00:00Z"]}),
    ({"rule": "FREQ=DAILY;COUNT=5", "dtstart": "9999-12-30T00:00:00", "after": "9999-12-30T12:00Z"},
     {"next": ["9999-12-31T00:00:00Z"], "ends": True, "last": "9999-12-31T00:00:00Z"}),
    ({"rule": "FREQ=DAILY", "after": "9999-12-31T12:00Z"}, {"next": [], "ends": False}),
    ({"rule": "every 3 days", "after": "0001-01-01T00:00Z", "tz": "America/Nuuk"}, {"next": ["0001-01-01T03:26:56Z"]}),
    ({"rule": "every 3 days", "after": "9999-12-31T23:59:59Z", "tz": "Asia/Gaza"}, {"next": []}),
    ({"rule": "@daily", "timezone": "UTC"}, {"ignored": ["timezone"]}),
    ({"rule": "@daily", "dtstart": "2026-11-21T12:30:00Z"}, {"ignored": ["dtstart"]}),
    ({"rule": "DTSTART:20270101T090000\nRRULE:FREQ=DAILY", "dtstart": "2026-11-21"}, {"ignored": ["dtstart"]}),
    ({"rule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-01-01", "n": 1}, {"next": ["2027-01-01T09:00:00Z"]}),
    ({"rule": "FREQ=DAILY", "dtstart": "2027-01-01", "n": 1}, {"next": ["2027-01-01T00:00:00Z"]}),
    ({"rule": "every 7h", "dtstart": "2026-11-21T12:30:00Z"}, {"next": ["2026-11-21T12:30:00Z"]}),
]  # fmt: skip


@pytest.mark.parametrize(("question", "part"), ANSWERS)
def test_a_question_has_its_answer(question: dict[str, Any], part: dict[str, Any]) -> None:
    body = answer({"after": NOON, "n": 1} | question)
    assert body == body | part
    assert ("ignored" in body, "next_year" in body) == ("ignored" in part, "counts" in question)


def test_never_has_its_reason() -> None:
    assert "February and April" in answer({"rule": "0 0 31 2,4 *", "after": NOON})["reason"]


def test_a_search_without_a_slot_names_the_exclusion_that_removes_the_most() -> None:
    found = answer({"rule": "0 9 * * *", "exclude": ["0 12 * * *", "every day"], "after": NOON})
    assert (found["next"], found["never"]) == ([], False)
    assert found["reason"].startswith("exclusion 2 (the whole day: Every day (UTC)) removes the most slots: ")


@pytest.mark.parametrize(
    ("rule", "tz", "named"),
    [
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", None, "Asia/Tokyo"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "Europe/Berlin", "Asia/Tokyo"),
        ('DTSTART;TZID="Europe/Berlin":20270101T090000\nRRULE:FREQ=DAILY', None, "Europe/Berlin"),
        ("DTSTART:20270101T090000Z\nRRULE:FREQ=DAILY\nEXDATE;TZID=Asia/Tokyo:20270101T090000", None, "UTC"),
        ("{h(9)} {m(30)}", "Europe/Berlin", "Europe/Berlin"),
        ("every 90s", "Europe/Berlin", "Europe/Berlin"),
        ("at 2027-01-01T00:00Z", None, "UTC"),
    ],
)
def test_the_zone_of_the_wall_clock_is_told(rule: str, tz: str | None, named: str) -> None:
    assert answer({"rule": rule, "tz": tz, "after": NOON})["tz"] == named


def test_now_stands_in_for_after() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert answer({"rule": "in 90s"}, now=now)["next"] == ["2026-11-21T12:01:30Z"]
    assert answer({"rule": "in 90s"})["error"]["code"] == "bad_request"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("kind", "crontab"),
        ("tz", "../../etc/passwd"),
        ("tz", "Mars/Olympus"),
        ("after", "yesterday"),
        ("after", "0001-01-01T00:00+14:00"),
        ("dtstart", "soon"),
        ("n", 0),
        ("n", True),
        ("n", 2.0),
        ("n", MAX_SLOTS + 1),
        ("n", 10**400),
        ("previous", "yes"),
        ("gap", "first"),
        ("fold", "none"),
        ("rule", "0 9 * * MOM"),
    ],
)
def test_hostile_parts(part: str, value: Any) -> None:
    body = answer({"id": "x", "rule": "every 1h", "after": NOON} | {part: value})
    assert body["id"] == "x"
    assert set(body) == {"id", "error"}
    assert body["error"]["code"]
    assert body["error"]["message"]
    assert "index" in body["error"]
    json.dumps(body)


def test_the_index_is_where_the_mistake_is() -> None:
    assert answer({"rule": "0 9 * * MOM", "after": NOON})["error"]["index"] == 8
    assert answer({"rule": "min(*%5) hours(25)", "after": NOON})["error"]["index"] == 15
    assert answer({"rule": "@daily", "after": "soon"})["error"]["index"] is None
    assert answer({"rule": "@daily", "after": NOON, "dtstart": "soon"})["error"]["code"] == "time_invalid"


def test_lines_keep_their_order() -> None:
    lines = [
        json.dumps({"id": 1, "rule": "@daily", "after": NOON, "n": 1}),
        "",
        "nonsense",
        "[]",
        "[" * 100_000,
        '{"id": 2, "rule": "' + "x" * 300_000 + '"}',
        json.dumps({"id": 3, "rule": "min(", "after": NOON}),
        '{"id": 4, "rule": "\\ud800", "after": "2026-11-21T12:00:00Z"}',
        json.dumps({"id": {"a": [None]}, "rule": "PT1H", "after": NOON, "n": 1}),
    ]
    body = [json.loads(line) for line in answer_lines(lines)]
    assert [one["id"] for one in body] == [1, None, None, None, None, 3, 4, {"a": [None]}]
    assert ["error" in one for one in body] == [False, True, True, True, True, True, True, False]
    assert body[5]["error"]["index"] == 4
    assert all("\n" not in line for line in answer_lines(lines))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.just(NOON),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PARTS = st.sampled_from(
    ["id", "rule", "kind", "dtstart", "tz", "after", "inclusive", "n", "previous", "gap", "fold", "x"]
)


@given(st.dictionaries(PARTS, JSON) | JSON)
def test_no_question_breaks_it(question: Any) -> None:
    if isinstance(question, dict):
        question = {"rule": "@daily", "after": NOON} | question
    (line,) = answer_lines([json.dumps(question)])
    body = json.loads(line)
    assert ("error" in body) != ("next" in body)
