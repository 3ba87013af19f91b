"""Lines of running attempts: read once and in order, in whatever batches they are stored, and deleted when no longer needed."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event
from tests.store.bench import Bench

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.store.actions import action_stream
from lodger.engine.store.lifecycle import running_lines
from lodger.engine.store.lifecycle.running_lines import KEPT_US, Batch, LogStream
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

LINES = tuple(LogLine("info", text, 10 * number) for number, text in enumerate(("a", "b", "c", "d")))


class Hall:
    """A running attempt, and a listener."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.tenant()
        self.id = bench.engine.run_in("acme", "job", 0).id
        (self.claim,) = bench.claim()
        self.stream = LogStream("acme", self.id)
        self.number = 0

    def say(self, *lines: LogLine, claim: Claim | None = None) -> None:
        claim = claim or self.claim
        batch = Batch("acme", claim.action_id, claim.step, claim.attempt, self.number, lines)
        self.number += 1
        with self.bench.engine.context.database.write() as connection:
            running_lines.write(connection, [batch], self.bench.clock.us)

    def end(self, logs: Sequence[LogLine], outcome: Outcome = Outcome.OK) -> None:
        self.bench.commit(self.claim, finished=Finished(outcome, result="1", logs=tuple(logs)))

    def heard(self, stream: LogStream | None = None) -> list[str]:
        with self.bench.engine.context.database.read() as connection:
            return [line.text for _place, line in (stream or self.stream).poll(connection)]

    def kept(self) -> object:
        return self.bench.scalar("SELECT count(*) FROM lodger_running_lines")

    def logs(self) -> list[str]:
        return [line.text for line in self.bench.engine.actions.logs("acme", self.id)]

    def forget(self) -> int:
        key = ("acme", self.id, self.claim.step, self.claim.attempt)
        with self.bench.engine.context.database.write() as connection:
            return len(running_lines.delete_stored(connection, [key]))


@pytest.fixture
def hall(bench: Bench) -> Hall:
    return Hall(bench)


def test_each_line_is_told_once_and_in_order(hall: Hall) -> None:
    assert hall.heard() == []
    hall.say(LINES[0])
    assert hall.heard() == ["a"]
    assert hall.heard() == []
    hall.say(LINES[1])
    hall.say(LINES[2])
    assert hall.heard() == ["b", "c"]
    assert hall.logs() == ["a", "b", "c"]
    hall.end(LINES)
    assert hall.heard() == ["d"]
    assert hall.logs() == ["a", "b", "c", "d"], "the record takes the place of what was said"
    hall.say(LINES[3])  # late
    assert hall.heard() == []
    assert hall.logs() == ["a", "b", "c", "d"]
    assert hall.heard(LogStream("acme", hall.id)) == ["a", "b", "c", "d"]


def test_a_line_that_came_between_and_one_that_was_blotted_out_later_are_no_doubles(hall: Hall) -> None:
    hall.say(LINES[0], LINES[2])
    assert hall.heard() == ["a", "c"]
    hall.end((LogLine("info", "[secret KEY]", 0), LINES[1], LINES[2], LINES[3]))
    assert hall.heard() == ["b", "d"]


def test_lines_alike_are_as_many_as_were_said(hall: Hall) -> None:
    again = LogLine("info", "again", 5)
    hall.say(again, again)
    assert hall.heard() == ["again"] * 2
    hall.end((again,) * 3)
    assert hall.heard() == ["again"]


def test_the_next_attempt_is_heard_after_the_one_before(hall: Hall) -> None:
    hall.say(LINES[0])
    hall.say(LINES[1])
    hall.end(LINES[:2], Outcome.WORKER_LOST)
    while not (claimed := hall.bench.claim()):
        hall.bench.clock.us += 60_000_000
    hall.number = 0
    hall.say(LogLine("info", "once more", 7), claim=claimed[0])
    assert hall.heard() == ["a", "b", "once more"]


def test_what_is_stored_is_forgotten_and_what_is_not_is_kept(hall: Hall) -> None:
    hall.say(LINES[0])
    assert hall.forget() == 0
    hall.end(LINES)
    assert (hall.forget(), hall.kept()) == (1, 0)


def test_history_is_not_read_to_find_them(hall: Hall, kind: str) -> None:
    """Twice a second, while any script runs and logs."""
    if kind == "postgresql":
        pytest.skip("it plans by how large a table is")
    asked: dict[str, Any] = {}
    database = hall.bench.engine.context.database

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(
        _connection: object, _cursor: object, statement: str, parameters: Any, _context: object, many: bool
    ) -> None:
        if statement.startswith(("SELECT", "DELETE")) and not many:
            asked[statement] = parameters

    hall.say(LINES[0])
    hall.forget()
    hall.end(LINES[:1])
    asked.clear()
    hall.say(LINES[0])
    hall.forget()
    event.remove(database.engine, "before_cursor_execute", note)
    assert len(asked) == 3, "actions, attempts, and the lines that go"
    with database.read() as connection:
        plans = [
            row.detail
            for statement, parameters in asked.items()
            for row in connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters)
        ]
    assert [plan for plan in plans if "lodger_actions" in plan or "lodger_attempts" in plan]
    assert not [plan for plan in plans if plan.startswith(("SCAN lodger_actions", "SCAN lodger_attempts"))], plans


def test_what_a_lost_node_left_goes_after_a_day(hall: Hall) -> None:
    hall.say(LINES[0])
    for later, left in ((KEPT_US, 1), (KEPT_US + 1, 0)):
        with hall.bench.engine.context.database.write() as connection:
            running_lines.sweep(connection, hall.bench.clock.us + later)
        assert hall.kept() == left


def test_a_tenant_that_is_deleted_leaves_no_line_and_gets_none(hall: Hall) -> None:
    hall.say(LINES[0])
    hall.bench.engine.tenants.delete("acme")
    assert hall.kept() == 0
    hall.say(LINES[1])
    assert hall.kept() == 0
    assert hall.forget() == 1


def test_nobody_hears_anothers(hall: Hall) -> None:
    hall.bench.engine.tenants.create("other")
    hall.say(LINES[0])
    assert hall.heard(LogStream("other", hall.id)) == []


def test_a_pulse_changes_with_all_that_there_is_to_tell(hall: Hall) -> None:
    other = hall.bench.engine.run_in("acme", "job", 1000).id
    keys = [("acme", hall.id), ("acme", other), ("bolt", hall.id), ("acme", "0" * 8 + hall.id[8:])]

    def reported() -> dict[tuple[str, str], tuple[str, int, int, int]]:
        with hall.bench.engine.context.database.read() as connection:
            return action_stream.change_stamps(connection, keys)

    first = reported()
    assert set(first) == {("acme", hall.id), ("acme", other)}
    hall.say(LINES[0])
    said = reported()
    hall.say(LINES[1])
    again = reported()
    hall.end(LINES)
    ended = reported()
    hall.forget()
    assert len({each["acme", hall.id] for each in (first, said, again, ended)}) == 4
    assert reported()["acme", hall.id] != again["acme", hall.id]
    assert first["acme", other] == reported()["acme", other]
