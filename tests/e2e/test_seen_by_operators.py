"""What an operator sees of actions on the command line: names and short ids, slots, durations, errors, steps, codes explained."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.command import Said, inside

from lodger.engine.core.error_table import OUTCOME, REASON, error_table
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


def test_a_list_says_what_ran_how_long_and_what_went_wrong(look: Look) -> None:
    row = next(line for line in look("action", "list", "acme", columns=140).out.splitlines() if "daily" in line)
    assert row.split()[:2] == [look.failed[-8:], "daily"]
    assert "failed: script_error" in row
    assert "Error: no stock left" in row
    assert " ms " in row or " s " in row
    narrow = look("action", "list", "acme", columns=80).out
    assert look.failed[-8:] in narrow
    assert look.waits[-8:] in narrow


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
    told = look("action", "logs", "acme", look.failed).out.splitlines()
    assert [line.split()[-1] for line in told] == ["1:", "counted", "2:", "looked"]
    assert told[2] == "step 2, attempt 2:"
    logs = look("action", "logs", "acme", look.failed, "--json").json["logs"]
    assert [(each["step"], each["attempt"], each["text"]) for each in logs] == [(0, 1, "counted"), (1, 2, "looked")]
    tries = look("action", "attempts", "acme", look.failed, "--json").json["attempts"]
    assert [(each["step"], each["n"], each["outcome"]) for each in tries] == [(0, 1, "ok"), (1, 2, "script_error")]


def test_what_is_overdue_has_its_id(look: Look) -> None:
    assert look.waits[-8:] in look("action", "overdue", "acme", "--grace-s", "0").out


def test_the_end_of_an_id_is_enough(look: Look) -> None:
    whole = look("action", "show", "acme", look.failed, "--json").json
    for part in (look.failed[-8:], look.failed[-12:], look.failed[-17:].upper()):
        assert look("action", "show", "acme", part, "--json").json == whole
    assert look("action", "compared", "acme", look.failed[-8:], "--json").code == 0
    assert look("action", "retry", "acme", look.waits[-8:], "--json").json["error"]["code"] == "action_not_failed"
    many = look("action", "show", "acme", look.failed[:6], "--json")
    assert (many.code, many.json["error"]["code"]) == (2, "action_ambiguous")
    assert look("action", "show", "acme", "beef", "--json").json["error"]["code"] == "action_unknown"


@pytest.mark.parametrize("code", ["call_limit", "wall_limit", "no_node", "superseded", "denied", "schedule_unknown"])
def test_a_code_that_people_see_is_explained(code: str) -> None:
    told = inside("errors", code, "--json").json
    assert told["code"] == code
    assert told["met"]
    assert told["fix"]


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
