"""What an operator sees of actions on the command line: names, short ids, slots, errors, codes explained; one event is one line."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.command import Said, inside
from tests.e2e.ready import lodger

from lodger.engine.core.error_table import OUTCOME, REASON, error_table
from lodger.engine.core.events import Event
from lodger.engine.output import event_lines
from lodger.engine.policy import budget_table, placement, plan
from lodger.engine.store.actions import actions
from lodger.engine.store.queue import placements
from lodger.engine.sync import Engine
from lodger.sandbox.outcome import Outcome

RULE = "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
FIRST = "export default () => { console.log('counted'); return 1 }"
SECOND = "export default () => { console.log('looked'); throw new Error('no stock left') }"


class Look:
    """The command line on a ledger in which schedule daily of acme has failed at its second step, and another action waits."""

    def __init__(self, place: Path) -> None:
        self.place = place
        with Engine.open(str(place)) as engine:
            engine.tenants.create("acme")
            engine.scripts.put("acme", "count", FIRST)
            engine.scripts.put("acme", "look", SECOND)
            engine.schedules.create("acme", "daily", script=["count", "look"], rules=RULE)
            engine.schedules.create("acme", "other", script="count", rules=RULE)
            self.failed = engine.actions.run_now("acme", "daily").id
            self.events: list[Event] = []
            engine.on_event(self.events.append)
            with engine.node():
                for _ in engine.live("acme", self.failed):
                    pass
            self.waits = engine.actions.run_now("acme", "other").id

    def __call__(self, *words: str, columns: int = 100) -> Said:
        return inside(*words, "--db", self.place, COLUMNS=str(columns))


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Look]:
    return Look(tmp_path_factory.mktemp("seen") / "ledger.db")


def test_a_schedule_is_named_wherever_its_id_is_accepted(look: Look) -> None:
    def listed(*words: str) -> list[str]:
        return [each["id"] for each in look("action", "list", *words, "--json").json["actions"]]

    assert listed("acme", "--schedule", "daily") == [look.failed]
    assert listed("acme", "--schedule", "other") == [look.waits]
    schedule = look("schedule", "show", "acme", "daily", "--json").json["id"]
    assert listed("acme", "--schedule", schedule) == listed("--schedule", schedule) == [look.failed]
    assert look("action", "list", "acme", "--schedule", "dayly", "--json").json["error"]["code"] == "schedule_unknown"
    assert look("action", "list", "--schedule", "daily", "--json").json["error"]["code"] == "tenant_missing"
    entries = look("audit", "list", "acme", "--target", "daily", "--json").json["entries"]
    assert [each["verb"] for each in entries] == ["schedules.create"]


def test_a_list_has_id_slot_duration_state_and_error_in_80_columns(look: Look) -> None:
    lines = look("action", "list", "acme", columns=80).out.splitlines()
    assert lines[0].split() == ["id", "slot", "took", "schedule", "state"]
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if line.startswith(look.failed[-8:]))
    id_, slot, took, unit, schedule, *state = lines[at].split()
    assert (id_, slot[-1], unit, schedule, state) == (look.failed[-8:], "Z", unit, "daily", ["failed:", "script_error"])
    assert float(took) >= 0
    assert unit in {"ms", "s"}
    assert lines[at + 1].strip() == "Error: no stock left (main.js:1)"
    assert any(line.startswith(look.waits[-8:]) for line in lines)


def test_one_action_is_shown_with_its_times_and_its_steps(look: Look) -> None:
    shown = look("action", "show", "acme", look.failed).out
    for word in (
        "schedule  daily",
        "script    look, version 1",
        "due  ",
        "started  ",
        "ended  ",
        "took  ",
        "late by  ",
    ):
        assert word in shown, shown
    assert "Error: no stock left (main.js:1)" in shown
    assert "step 1, attempt 1: started 2" in shown
    assert "step 2, attempt 2: started 2" in shown


def test_logs_and_attempts_name_their_step(look: Look) -> None:
    reported = look("action", "logs", "acme", look.failed).out.splitlines()
    assert [line.split()[-1] for line in reported] == ["1:", "counted", "2:", "looked"]
    assert reported[2] == "step 2, attempt 2:"
    logs = look("action", "logs", "acme", look.failed, "--json").json["logs"]
    assert [(each["step"], each["attempt"], each["text"]) for each in logs] == [(0, 1, "counted"), (1, 2, "looked")]
    table = look("action", "attempts", "acme", look.failed).out.splitlines()[3:5]
    assert [line.split()[:2] for line in table] == [["1", "1"], ["2", "2"]]
    tries = look("action", "attempts", "acme", look.failed, "--json").json["attempts"]
    assert [(each["step"], each["n"], each["outcome"]) for each in tries] == [(0, 1, "ok"), (1, 2, "script_error")]


def test_each_finished_run_is_a_line_with_its_time_duration_outcome_and_error(look: Look) -> None:
    first, second = (event_lines.line(each).split("  ") for each in look.events if each.kind == "finished")
    assert first[1:6] == ["finished", "acme", "count", "ok, next step 2", "attempt 1"]
    assert second[1:6] == ["finished", "acme", "look", "script_error", "step 2, attempt 2"]
    assert second[7:] == ["Error: no stock left (main.js:1)", f"id {look.failed[-8:]}"]
    for line in (first, second):
        assert datetime.fromisoformat(line[0]).tzinfo is not None
        assert line[6].endswith((" ms", " s"))
    last = event_lines.body([each for each in look.events if each.kind == "finished"][-1])
    assert last["error"] == "Error: no stock left (main.js:1)"
    assert last["took_ms"] > 0


@pytest.mark.parametrize(
    ("kind", "details", "end"),
    [
        ("skipped", {"slot_us": 0, "slot_to_us": 60_000_000, "reason": "missed", "number": None},
         "slot=1970-01-01T00:00:00Z  slot_to=1970-01-01T00:01:00Z  reason=missed"),
        ("retimed", {"next_us": 60_000_000}, "next=1970-01-01T00:01:00Z"),
        ("finished", {"script": "s", "outcome": "ok", "state": "done", "attempt": 1, "step": 0, "slot_us": 60_000_000},
         "s  slot 1970-01-01T00:01:00Z  ok  attempt 1  id 89abcdef"),
        ("finished", {"script": "s", "outcome": "script_error", "state": "waiting_retry", "attempt": 1, "retry_at_us": 60_000_000},
         "s  script_error, next attempt 1970-01-01T00:01:00Z  attempt 1  id 89abcdef"),
    ],
)  # fmt: skip
def test_a_line_has_instants_and_short_ids(kind: str, details: dict[str, Any], end: str) -> None:
    action = "01234567-89ab-7def-8123-456789abcdef" if kind == "finished" else None
    line = event_lines.line(Event(kind, 0, "acme", None, action, details))
    assert line.split("  ")[0] == "1970-01-01T00:00:00Z"
    assert line.endswith(end)


def test_what_is_overdue_has_its_id(look: Look) -> None:
    assert look.waits[-8:] in look("action", "overdue", "acme", "--grace-s", "0").out


@pytest.mark.parametrize("code", ["call_limit", "wall_limit", "no_node", "superseded", "denied", "schedule_unknown"])
def test_a_code_that_people_see_is_explained(code: str) -> None:
    reported = inside("errors", code, "--json").json
    assert reported["code"] == code
    assert reported["met"]
    assert reported["fix"]


def test_every_outcome_and_reason_has_its_explanation() -> None:
    rows = error_table()
    assert {code for code, row in rows.items() if OUTCOME in row.met} == {str(each) for each in Outcome}
    of_policies = {plan.MISSED, plan.OVERLAP, plan.CATCH_UP, plan.QUEUE_FULL, plan.CAUGHT_UP}
    of_nodes = {placement.MEMORY, placement.LONG, placements.GONE}
    assert of_policies | of_nodes | {budget_table.RUNS, budget_table.CPU, actions.RETRIED} <= {
        code for code, row in rows.items() if REASON in row.met
    }
    limit = inside("errors", "call_limit").out
    assert "host_calls" in limit
    assert "default 200" in limit


FORGED = "2026-11-27T10:00:00Z  finished  acme  nightly  ok"
SCRIPT = f"""
export default () => {{
  console.log("counted\\n{FORGED}");
  const error = new Error("no stock\\r\\n{FORGED}\\u2028{FORGED}");
  error.name = "Bad\\n{FORGED}";
  throw error;
}}"""


class Forger:
    """The command line on a ledger in which a script has tried to write lines of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.events: list[Event] = []
        with Engine.open(str(place)) as engine:
            engine.tenants.create("acme")
            engine.scripts.put("acme", "nightly", SCRIPT)
            engine.schedules.create("acme", "nightly", script="nightly", rules="0 9 * * *")
            self.action = engine.actions.run_now("acme", "nightly").id
            engine.on_event(self.events.append)
            with engine.node():
                for _ in engine.live("acme", self.action):
                    pass

    def __call__(self, *words: str) -> Said:
        return inside(*words, "--db", self.place)


@pytest.fixture(scope="module")
def forger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forger]:
    return Forger(tmp_path_factory.mktemp("forged") / "ledger.db")


@pytest.mark.parametrize(
    "words",
    [
        ("action", "show", "acme", "ACTION"), ("action", "logs", "acme", "ACTION"), ("action", "list", "acme"),
        ("action", "attempts", "acme", "ACTION"), ("action", "follow", "acme", "ACTION"),
        ("schedule", "last-run", "acme", "nightly"), ("action", "replay-locally", "acme", "ACTION"),
    ],
)  # fmt: skip
def test_no_command_prints_a_line_of_the_script(forger: Forger, words: tuple[str, ...]) -> None:
    said = forger(*(forger.action if word == "ACTION" else word for word in words))
    assert said.code in {0, 1}, said.err
    shown = said.out + said.err
    assert [line for line in shown.splitlines() if line.lstrip().startswith(FORGED)] == []
    if words[1] in {"show", "logs", "follow"}:
        assert FORGED in shown


def test_each_event_of_a_node_is_one_line(forger: Forger) -> None:
    assert any(FORGED in event_lines.line(event) for event in forger.events)
    assert all(len(event_lines.line(event).splitlines()) == 1 for event in forger.events)


def test_a_dry_run_marks_the_lines_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "nightly.js"
    script.write_text(SCRIPT)
    said = inside("exec", script)
    assert said.code == 1
    assert [line for line in (said.out + said.err).splitlines() if line.startswith(FORGED)] == []


def test_a_record_of_the_log_is_one_line() -> None:
    said = lodger("config", "show", **{f"LODGER_X\n{FORGED}\x1b[2J": "1"})
    (line,) = [
        each
        for each in said.err.splitlines()
        if FORGED in each.upper().replace("FINISHED", "finished") or "not a setting" in each
    ]
    assert not line.startswith(FORGED)
    assert "\x1b" not in said.err
