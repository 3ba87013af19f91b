"""A worker that waits for unanswered calls: its limits apply and its end is noticed.

The maximum number of calls is in flight, and the host answers none of them.
"""

import asyncio

from tests.escape.probing import Echo, probe

from lodger.sandbox import Outcome
from lodger.sandbox.job import Reply
from lodger.sandbox.workers.worker_run import MAX_CALLS_IN_FLIGHT

#: Limits that no test reaches on purpose: an attempt that is not watched would end by them.
LONG = {"wall_ms": 60_000, "cpu_ms": 10_000}


class Never(Echo):
    """Host that answers nothing and counts cancelled calls."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = 0

    async def call(self, name: str, arguments: str) -> Reply:
        self.asked.append((name, arguments))
        try:
            await asyncio.Event().wait()
        finally:
            self.let_go += 1
        raise AssertionError


def asking_script(number: int, then: str) -> str:
    """Return code that makes so many calls without waiting for answers."""
    return f'for i in range({number}): ask(i, "a", "[]")\n{then}'


def test_a_flood_of_lines_meets_its_limit() -> None:
    host = Never()
    report = probe(asking_script(MAX_CALLS_IN_FLIGHT, 'while True: log("x" * 100)'), host=host, **LONG)
    assert report.outcome is Outcome.PROTOCOL_ERROR
    assert len(report.logs) == 1001
    assert len(host.asked) == host.let_go == MAX_CALLS_IN_FLIGHT


def test_a_flood_of_calls_and_lines_behind_them_meets_the_wall() -> None:
    """Frames after a waiting call wait too, in the worker's memory."""
    host = Never()
    flood = 'n = 99\nwhile True:\n    n += 1; ask(n, "b", chr(34) + "x" * 100_000 + chr(34)); log("y")'
    report = probe(asking_script(MAX_CALLS_IN_FLIGHT, flood), host=host, wall_ms=300, cpu_ms=10_000)
    assert report.outcome is Outcome.WALL_LIMIT
    assert len(host.asked) == host.let_go == MAX_CALLS_IN_FLIGHT
    assert not report.logs


def test_an_end_is_seen_at_once() -> None:
    """Of ``MAX_CALLS_IN_FLIGHT + 3`` calls, three are in the socket before the end."""
    host = Never()
    report = probe(asking_script(MAX_CALLS_IN_FLIGHT + 3, "os._exit(3)"), host=host, **LONG)
    assert report.outcome is Outcome.CRASHED
    assert report.error is not None
    assert "exit code 3" in report.error.message
    assert len(host.asked) == host.let_go <= MAX_CALLS_IN_FLIGHT, "none begins for who is gone already"


def test_a_result_is_taken_though_nobody_answers() -> None:
    report = probe(asking_script(MAX_CALLS_IN_FLIGHT, 'done("7"); hear()'), host=Never(), **LONG)
    assert (report.outcome, report.result) == (Outcome.OK, "7")


def test_calls_that_had_to_wait_are_answered_in_their_turn() -> None:
    class Late(Echo):
        def __init__(self) -> None:
            super().__init__()
            self.full = asyncio.Event()

        async def call(self, name: str, arguments: str) -> Reply:
            reply = await super().call(name, arguments)
            if len(self.asked) == MAX_CALLS_IN_FLIGHT:
                self.full.set()
            await self.full.wait()
            return reply

    code = "for i in range(40): ask(i, 'a', '[]'); log('l')\ndone(str(sorted(hear()[0] for _ in range(40)) == [*range(40)]).lower())"
    report = probe(code, host=Late(), **LONG)
    assert (report.outcome, report.result) == (Outcome.OK, "true")
    assert len(report.logs) == 40


def test_a_failure_behind_calls_that_wait_is_taken_with_its_lines() -> None:
    """The report of a script that makes many calls without waiting and is stopped."""
    host = Never()
    code = asking_script(MAX_CALLS_IN_FLIGHT + 30, "log('one'); log('two'); fail('cpu_limit', '{}'); os._exit(0)")
    report = probe(code, host=host, **LONG)
    assert report.outcome is Outcome.CPU_LIMIT
    assert [line.text for line in report.logs] == ["one", "two"]
    assert len(host.asked) == host.let_go <= MAX_CALLS_IN_FLIGHT


def test_a_result_behind_calls_that_wait_is_worth_these_calls() -> None:
    class Slow(Echo):
        async def call(self, name: str, arguments: str) -> Reply:
            await asyncio.sleep(0.01)
            return await super().call(name, arguments)

    host = Slow()
    report = probe(asking_script(MAX_CALLS_IN_FLIGHT + 30, "done('7'); os._exit(0)"), host=host, **LONG)
    assert (report.outcome, report.result) == (Outcome.OK, "7")
    assert len(host.asked) >= 30, "whatever was asked for before it has had its turn"
