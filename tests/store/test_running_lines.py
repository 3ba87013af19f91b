"""Lines of running attempts: read once and in order, in whatever batches they are stored, and deleted when no longer needed."""

from collections.abc import Sequence

import pytest
from tests.store.bench import Bench

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.store.actions import action_stream
from lodger.engine.store.lifecycle import running_lines
from lodger.engine.store.lifecycle.running_lines import KEPT_US, Batch, LogStream
from lodger.sandbox.job import LogLine
from lodger.sandbox.outcome import Outcome

LINES = tuple(LogLine("info", text, 10 * number) for number, text in enumerate(("a", "b", "c", "d")))


class RunningAttempt:
    """A running attempt, its stored log lines, and a listener."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.tenant()
        self.id = bench.engine.run_in("acme", "job", 0).id
        (self.claim,) = bench.claim()
        self.stream = LogStream("acme", self.id)
        self.number = 0

    def say(self, *lines: LogLine, claim: Claim | None = None) -> None:
        """Store log lines of the attempt."""
        claim = claim or self.claim
        batch = Batch("acme", claim.action_id, claim.step, claim.attempt, self.number, lines)
        self.number += 1
        with self.bench.engine.context.database.write() as connection:
            running_lines.write(connection, [batch], self.bench.clock.us)

    def end(self, logs: Sequence[LogLine], outcome: Outcome = Outcome.OK) -> None:
        self.bench.commit(self.claim, finished=Finished(outcome, result="1", logs=tuple(logs)))

    def heard(self, stream: LogStream | None = None) -> list[str]:
        """Return the texts that a listener reads now."""
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
def running(bench: Bench) -> RunningAttempt:
    return RunningAttempt(bench)


def test_each_line_is_told_once_and_in_order(running: RunningAttempt) -> None:
    assert running.heard() == []
    running.say(LINES[0])
    assert running.heard() == ["a"]
    assert running.heard() == []
    running.say(LINES[1])
    running.say(LINES[2])
    assert running.heard() == ["b", "c"]
    assert running.logs() == ["a", "b", "c"]
    running.end(LINES)
    assert running.heard() == ["d"]
    assert running.logs() == ["a", "b", "c", "d"], "the record takes the place of what was said"
    running.say(LINES[3])  # late
    assert running.heard() == []
    assert running.logs() == ["a", "b", "c", "d"]
    assert running.heard(LogStream("acme", running.id)) == ["a", "b", "c", "d"]


def test_a_line_that_came_between_and_one_that_was_blotted_out_later_are_no_doubles(running: RunningAttempt) -> None:
    running.say(LINES[0], LINES[2])
    assert running.heard() == ["a", "c"]
    running.end((LogLine("info", "[secret KEY]", 0), LINES[1], LINES[2], LINES[3]))
    assert running.heard() == ["b", "d"]


def test_lines_alike_are_as_many_as_were_said(running: RunningAttempt) -> None:
    again = LogLine("info", "again", 5)
    running.say(again, again)
    assert running.heard() == ["again"] * 2
    running.end((again,) * 3)
    assert running.heard() == ["again"]


def test_the_next_attempt_is_heard_after_the_one_before(running: RunningAttempt) -> None:
    running.say(LINES[0])
    running.say(LINES[1])
    running.end(LINES[:2], Outcome.WORKER_LOST)
    while not (claimed := running.bench.claim()):
        running.bench.clock.us += 60_000_000
    running.number = 0
    running.say(LogLine("info", "once more", 7), claim=claimed[0])
    assert running.heard() == ["a", "b", "once more"]


def test_what_is_stored_is_forgotten_and_what_is_not_is_kept(running: RunningAttempt) -> None:
    running.say(LINES[0])
    assert running.forget() == 0
    running.end(LINES)
    assert (running.forget(), running.kept()) == (1, 0)


def test_what_a_lost_node_left_goes_after_a_day(running: RunningAttempt) -> None:
    running.say(LINES[0])
    for later, left in ((KEPT_US, 1), (KEPT_US + 1, 0)):
        with running.bench.engine.context.database.write() as connection:
            running_lines.sweep(connection, running.bench.clock.us + later)
        assert running.kept() == left


def test_a_tenant_that_is_deleted_leaves_no_line_and_gets_none(running: RunningAttempt) -> None:
    running.say(LINES[0])
    running.bench.engine.tenants.delete("acme")
    assert running.kept() == 0
    running.say(LINES[1])
    assert running.kept() == 0
    assert running.forget() == 1


def test_a_pulse_changes_with_all_that_there_is_to_tell(running: RunningAttempt) -> None:
    other = running.bench.engine.run_in("acme", "job", 1000).id

    def reported(action_id: str = running.id, tenant_id: str = "acme") -> object:
        with running.bench.engine.context.database.read() as connection:
            return action_stream.change_stamp(connection, tenant_id, action_id)

    first, of_other = reported(), reported(other)
    assert of_other is not None
    assert reported(tenant_id="bolt") is reported("0" * 8 + running.id[8:]) is None
    running.say(LINES[0])
    said = reported()
    running.say(LINES[1])
    again = reported()
    running.end(LINES)
    ended = reported()
    running.forget()
    assert len({first, said, again, ended}) == 4
    assert reported() != again
    assert of_other == reported(other)
