"""``lodger next RULE --json``: the short way gives the very answer of the whole command line, and imports little."""

import json
import subprocess
import sys

import pytest

from lodger.engine.cli import next_json
from lodger.engine.cli.entry import run

NEVER = "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"
AT = ["--after", "2026-11-21T12:00:00Z"]


@pytest.mark.parametrize(
    "words",
    [
        [NEVER, "--json", *AT],
        ["0 9 * * 1-5", *AT, "--json", "--tz", "Europe/Berlin"],
        ["--json", "FREQ=DAILY", "--dtstart", "20260101T090000", *AT, "--previous", "--inclusive"],
        ["FREQ=DAILY;BYMONTH=13", "--json", *AT],
        ["every 90s", "--kind", "cron", "--json", *AT],
        ["every 90s", "--kind", "klingon", "--json", *AT],
        ["every 90s", "--after", "soon", "--json"],
    ],
)  # fmt: skip
def test_both_ways_answer_alike(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = next_json.quick(words)
    short = capsys.readouterr().out
    assert code is not None
    assert run(["next", *words]) == code
    assert capsys.readouterr().out == short
    assert ("error" in json.loads(short)) == bool(code)


@pytest.mark.parametrize(
    "words",
    [[], ["--json"], [NEVER], [NEVER, "--json", "-n", "3"], [NEVER, "--json", "--help"], ["a", "b", "--json"], ["--tz", "--json"]],
)  # fmt: skip
def test_everything_else_is_left_to_the_whole_command_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert next_json.quick(words) is None
    assert capsys.readouterr().out == ""


def test_a_rule_is_answered_without_option_parser_event_loop_or_database() -> None:
    code = (
        "import sys, lodger.engine.cli; from lodger.engine.cli.next_json import quick\n"
        f"assert quick([{NEVER!r}, '--json']) == 0\n"
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    answer, modules = done.stdout.splitlines()
    told = json.loads(answer)
    assert told["never"] is True
    assert "calendar" in told["reason"]
    loaded = set(modules.split())
    assert not {"typer", "asyncio", "sqlalchemy", "alembic", "logging", "dateutil", "rich"} & loaded


@pytest.mark.parametrize(("rule", "code"), [(NEVER, 0), ("FREQ=NEVER", 1), ('at "noon"', 1)])
def test_the_process_ends_with_the_code_and_all_is_written(rule: str, code: int) -> None:
    """It ends without taking itself apart; what it wrote into a pipe is there all the same."""
    command = [sys.executable, "-c", "from lodger.engine.cli import main; main()", "next", rule, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert ("error" in json.loads(done.stdout)) == bool(code)


def test_an_answer_that_cannot_be_written_is_no_success() -> None:
    command = [sys.executable, "-c", "from lodger.engine.cli import main; main()", "next", NEVER, "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode
    assert "Traceback" not in done.stderr
