"""``lodger next`` for people: the sentence, slots around an instant in the zone and in UTC, how often, until when, and mistakes."""

import json
import subprocess
import sys

import pytest

from lodger.engine.cli.entry import run

NEVER = "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        # The zone is the one that the rule names, however it names it.
        (
            ["CRON_TZ=Asia/Tokyo 0 9 * * *", "--after", "2026-11-22T12:00Z"],
            ["Daily at 09:00 (Asia/Tokyo)  (cron)", "Mon 2026-11-23 09:00:00 JST", "Mon 2026-11-23 00:00:00Z"],
        ),
        (
            ['DTSTART;TZID="Europe/Berlin":20260101T090000\nRRULE:FREQ=DAILY', "--after", "2026-07-01T00:00Z"],
            ["Wed 2026-07-01 09:00:00 CEST", "Wed 2026-07-01 07:00:00Z"],
        ),
        # Before standard time, and where the calendar ends.
        (
            ["0 9 * * *", "--tz", "Asia/Tokyo", "--after", "0999-12-31T12:00Z"],
            ["Wed 1000-01-01 09:00:00 LMT", "Tue 0999-12-31 23:41:01Z"],
        ),
        (
            ["every 1h", "--tz", "Asia/Tokyo", "--after", "9999-12-31T22:30Z"],
            ["beyond the calendar", "Fri 9999-12-31 23:30:00Z"],
        ),
        (["every 500ms", "--after", "2026-11-22T12:00Z"], ["12:00:00.500000Z"]),
        # What DST moved is marked, ahead and behind; and how often, until when.
        (
            ["30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-27T12:00Z"],
            [
                "Sun 2027-03-28 03:00:00 CEST",
                "  DST\n",
                "at most 1 per day",
                "at least 23 hours apart",
                "366 in the next 366 days.",
                "The rule never ends.",
            ],
        ),
        (
            ["30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-29T12:00Z"],
            [
                "Earlier slot: Mon 2027-03-29 02:30:00 CEST",
                "Earlier slot: Sun 2027-03-28 03:00:00 CEST",
                ", moved by DST",
            ],
        ),
        (
            ["* * * * *", "--after", "2026-11-22T12:00Z"],
            ["at most 1440 per day", "too many to count in the next 366 days"],
        ),
        (
            ["FREQ=DAILY;COUNT=3", "--dtstart", "20300101T000000", "--after", "2029-12-31T00:00Z"],
            ["3 in the next 366 days.", "The last slot is 2030-01-03T00:00:00Z."],
        ),
        (
            ["at 2020-01-01", "--after", "2026-11-22T12:00Z"],
            ["There is no slot after this instant.", "The last slot is"],
        ),
        (
            [
                "0 9,12 * * *",
                "--exclude",
                "0 12 * * *",
                "--exclude",
                "at 2026-11-23T09:00",
                "--after",
                "2026-11-22T10:00Z",
                "-n",
                "1",
            ],
            ["; but never daily at 12:00 (UTC); but never once", "Tue 2026-11-24 09:00:00Z"],
        ),
        (
            ["* * * * * *", "--exclude", "* * 0-8 * * *", "--after", "2026-11-22T00:00Z"],
            ["No slot was found before 2026-11-22T0", "the search stopped there"],
        ),
        (["0 0 30 2 *"], ["The rule never fires: No year of the calendar has such a day"]),
    ],
)
def test_what_it_shows(words: list[str], shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["next", *words]) == 0
    reported = capsys.readouterr().out
    for part in shown:
        assert part in reported, reported


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("0 9 * * MOM", 8),
        ("FREQ=DAILY;BYMONTH=13", 19),
        ("min(*%5) hours(25)", 15),
        ("every 3 blurps", 8),
        ("at 2027-13-01", 3),
    ],
)
def test_a_mistake_is_shown_where_it_stands(rule: str, place: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["next", rule]) == 1
    reported = capsys.readouterr().err
    assert f"  {rule}\n  {' ' * place}^\n" in reported, reported
    assert "why: " in reported
    assert "fix: " in reported


@pytest.mark.parametrize(("rule", "code"), [(NEVER, 0), ("FREQ=NEVER", 1)])
def test_the_process_ends_with_the_code_and_all_is_written(rule: str, code: int) -> None:
    command = [sys.executable, "-m", "lodger.engine.cli", "next", rule, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert ("error" in json.loads(done.stdout)) == bool(code)


def test_a_mistake_in_an_exclusion_is_shown_in_the_exclusion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["next", "0 9 * * *", "--exclude", "every weekend", "--exclude", "0 9 * * MOM"]) == 1
    reported = capsys.readouterr().err
    assert f"  0 9 * * MOM\n  {' ' * 8}^\n" in reported, reported
