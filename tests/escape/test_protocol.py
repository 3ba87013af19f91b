"""A compromised worker: whatever it writes to its socket, the parent reaches a verdict and its memory stays bounded.

A worker that waits for unanswered calls meets its limits, bundles that are none are refused, and of ten thousand mutated frames each has a
verdict; ``lodger bench frames`` runs a million.
"""

import asyncio
import json

import pytest
from tests.e2e.ready import lodger
from tests.escape.probing import Echo, probe, probe_job, probe_pool

from lodger.bench import frames
from lodger.bench.frames import MAX_GROWN_BYTES, SLOWEST_S, fuzz
from lodger.escape.arena import SuitePool, settings_for
from lodger.escape.runner import started
from lodger.escape.switchboard import Switchboard
from lodger.sandbox import Bundle, Job, Outcome, Report
from lodger.sandbox.frames import ARMED, BUNDLE, CALL, DONE, FAIL, HEAD, HEADER, LOG, READY, REPLY
from lodger.sandbox.job import CallHandlerGone, Reply
from lodger.sandbox.workers import worker_run
from lodger.sandbox.workers.verdict import Verdict
from lodger.sandbox.workers.worker_run import MAX_CALLS_IN_FLIGHT

WRITE = "os.write(channel._descriptor, {!r})\nhear()"


def frame(kind: int, payload: bytes = b"", length: int | None = None) -> bytes:
    return HEAD.pack(len(payload) if length is None else length, kind) + payload


BAD = {
    "a length of four gigabytes": frame(CALL, length=0xFFFFFFFF),
    "one byte too large": frame(LOG, length=(1 << 20) + 1),
    "unknown kind": frame(255),
    "kind zero": frame(0),
    "ready again": frame(READY),
    "armed again": frame(ARMED),
    "a header of its own": frame(HEADER, b"x" * 120),
    "a bundle of its own": frame(BUNDLE, b"x"),
    "a reply of its own": frame(REPLY, b"\0\0\0\0\x01null"),
    "a log line without level": frame(LOG),
    "a call without name": frame(CALL, b"\0\0\0\0\0null"),
    "a call with half a name": frame(CALL, b"\0\0\0\0\x09db"),
    "a call without arguments": frame(CALL, b"\0\0\0\0\x02db"),
    "a call with a name not of letters": frame(CALL, b"\0\0\0\0\x03d\0b[]"),
    "an empty failure": frame(FAIL),
    "an error that is not JSON": frame(FAIL, b"\x0cscript_error{"),
    "an error that is a list": frame(FAIL, b"\x0cscript_error[]"),
    "a result that is not JSON": frame(DONE, b"{"),
    "a result that is not UTF-8": frame(DONE, b'"\xff"'),
    "a result that is NaN": frame(DONE, b"NaN"),
    "an empty result": frame(DONE),
}


async def test_bad_frames_end_the_worker() -> None:
    async with started(probe_pool(size=3)) as pool:
        for name, bad in BAD.items():
            report = await pool.run(probe_job(WRITE.format(bad)), Echo())
            assert (report.outcome, report.result) == (Outcome.PROTOCOL_ERROR, None), name


def test_size_is_refused_before_the_bytes_come() -> None:
    report = probe(WRITE.format(frame(DONE, length=300_000)))
    assert report.outcome is Outcome.OUTPUT_LIMIT
    report = probe('done(chr(34) + "x" * 300000 + chr(34))')
    assert report.outcome is Outcome.OUTPUT_LIMIT
    assert report.error is not None
    assert "300002" in report.error.message


def test_depth_of_result_and_arguments() -> None:
    assert probe('done("[" * 64 + "]" * 64)').outcome is Outcome.OK
    assert probe('done("[" * 65 + "]" * 65)').outcome is Outcome.BAD_REQUEST
    host = Echo()
    report = probe(
        'ask(1, "deep", "[" * 65 + "]" * 65)\nn, ok, text = hear()\ndone(text if not ok else "1")', host=host
    )
    assert report.result is not None
    assert json.loads(report.result)["code"] == "bad_request"
    assert not host.asked
    assert report.usage.host_calls == 1


def test_call_number_in_use() -> None:
    class Never(Echo):
        async def call(self, name: str, arguments: str) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    report = probe('ask(7, "a", "[]"); ask(7, "b", "[]"); hear()', host=Never())
    assert report.outcome is Outcome.PROTOCOL_ERROR


def test_call_limit_counts_exactly() -> None:
    code = 'for i in range({}):\n    ask(i, "a", "[]"); hear()\ndone("1")'
    host = Echo()
    assert probe(code.format(5), host=host, host_calls=5).outcome is Outcome.OK
    assert len(host.asked) == 5
    host = Echo()
    report = probe(code.format(6), host=host, host_calls=5)
    assert report.outcome is Outcome.CALL_LIMIT
    assert len(host.asked) == 5
    assert report.usage.host_calls == 5


def test_a_worker_that_takes_no_replies_is_not_read() -> None:
    class Big(Echo):
        async def call(self, name: str, arguments: str) -> Reply:
            await super().call(name, arguments)
            return Reply(True, '"' + "x" * 500_000 + '"')

    host = Big()
    report = probe('for i in range(200): ask(i, "a", "[]")\nwhile True: pass', host=host, wall_ms=300, cpu_ms=5000)
    assert report.outcome is Outcome.WALL_LIMIT
    assert len(host.asked) < 40, "calls wait while the answers of earlier ones are not taken"


def test_failing_host_is_our_fault_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Echo):
        async def call(self, name: str, arguments: str) -> Reply:
            raise RuntimeError("password=hunter2 /srv/secret.py")

    report = probe('ask(1, "a", "[]"); hear()', host=Broken())
    assert report.outcome is Outcome.ENGINE_FAULT
    assert report.error is not None
    assert "hunter2" not in str(report.error)
    assert "hunter2" in caplog.text, "the operator's log has it"


def test_a_database_that_is_away_is_told_as_that_and_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    class Away(Echo):
        async def call(self, name: str, arguments: str) -> Reply:
            raise CallHandlerGone("database_unreachable: db.internal:5432")

    report = probe('ask(1, "a", "[]"); hear()', host=Away())
    assert report.outcome is Outcome.ENGINE_FAULT, "it runs again, and nobody pays for it"
    assert report.error is not None
    assert "could not be reached" in report.error.message
    assert "db.internal" not in str(report.error)
    assert "database_unreachable" in caplog.text
    assert "Traceback" not in caplog.text


def test_reply_too_large_is_an_error_for_the_script() -> None:
    class Huge(Echo):
        async def call(self, name: str, arguments: str) -> Reply:
            return Reply(True, '"' + "x" * 10_000 + '"')

    report = probe(
        'ask(1, "a", "[]"); n, ok, text = hear(); done(text if not ok else "1")', host=Huge(), frame_bytes=4096
    )
    assert report.result is not None
    assert json.loads(report.result)["code"] == "reply_too_large"


def test_a_run_that_is_stopped_with_a_full_log_says_so() -> None:
    """A worker reports its dropped lines with its last frame; a killed one cannot."""
    full = probe('for i in range(10): log("x")\nwhile True: pass', log_lines=10, cpu_ms=50)
    assert full.outcome is Outcome.CPU_LIMIT
    assert [line.text for line in full.logs[:10]] == ["x"] * 10
    assert "stopped while its log was full" in full.logs[10].text
    assert len(full.logs) == 11
    room = probe('for i in range(9): log("x")\nwhile True: pass', log_lines=10, cpu_ms=50)
    assert len(room.logs) == 9
    ended = probe('for i in range(10): log("x")\ndone("1")', log_lines=10)
    assert (ended.outcome, len(ended.logs)) == (Outcome.OK, 10)


def test_log_flood_of_a_worker_that_ignores_its_cap() -> None:
    report = probe('while True: log("x")', cpu_ms=5000, wall_ms=20_000)
    assert report.outcome is Outcome.PROTOCOL_ERROR
    assert len(report.logs) == 1001


def test_error_texts_are_bounded_and_plain() -> None:
    error = {
        "name": "N" * 999,
        "message": "m" * 99_999,
        "stack": "    at main.js:1:1\n" * 1500,
        "file": "main.js",
        "line": 1,
        "column": True,
    }
    report = probe(f"fail('script_error', {json.dumps(error)!r})")
    assert report.outcome is Outcome.SCRIPT_ERROR
    assert report.error is not None
    assert (len(report.error.name), len(report.error.message)) == (256, 8192)
    assert 16_000 < len(report.error.stack) <= 16_384
    assert (report.error.file, report.error.line, report.error.column) == ("main.js", 1, None)


def test_python_texts_never_leave() -> None:
    report = probe('raise ValueError("/secret/path")')
    assert report.outcome is Outcome.CRASHED
    assert "secret" not in str(report)
    assert "Traceback" not in str(report)


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


ACTION = "export default ({ action }) => action.id"
CONTEXT = '{"action":{"id":"real"}}'


REFUSED = ("", "a\nb.js", "a\0.js", "n" * 256, "\x1b[2J.js")
OURS = ("lodger:begin", "lodger:module", "eval_script", "__proto__", "constructor", "main.js/../x.js")


def run(*bundles: Bundle) -> list[Report]:
    """Return the report of each bundle."""

    async def go() -> list[Report]:
        async with started(SuitePool("quickjs", settings_for("quickjs"))) as pool:
            return [await pool.run(Job(each), Switchboard(Job(each).limits)) for each in bundles]

    return asyncio.run(go())


def test_names_that_are_no_names_are_refused() -> None:
    forged = (Bundle({"main.js": ACTION, name: '{"action":{"id":"forged"}}'}, CONTEXT) for name in REFUSED)
    for report in run(*forged):
        assert report.outcome is Outcome.BAD_REQUEST
        assert report.error is not None
        assert "printable" in report.error.message


def test_no_entry_and_too_many_modules_are_told() -> None:
    many = {"main.js": ACTION, **{f"m{number}.js": "" for number in range(1000)}}
    nothing, refused = run(Bundle({}), Bundle(many, CONTEXT))
    assert nothing.outcome is Outcome.COMPILE_ERROR
    assert nothing.error is not None
    assert "main.js" in nothing.error.message
    assert refused.outcome is Outcome.BAD_REQUEST


def test_names_of_ours_are_ours() -> None:
    for report in run(*(Bundle({"main.js": ACTION, name: "throw new Error('evaluated')"}, CONTEXT) for name in OURS)):
        assert (report.outcome, report.result) == (Outcome.OK, '"real"')


def test_short_run() -> None:
    tally = fuzz(20_000)
    assert tally.faults == []
    assert tally.frames >= 20_000
    assert tally.grown_bytes < MAX_GROWN_BYTES
    assert tally.slowest_s < SLOWEST_S
    assert len(tally.outcomes) >= 5, tally.outcomes


def test_a_parent_that_goes_on_after_the_first_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lenient(worker_run.WorkerRun):
        def _decide(self, found: Verdict | None) -> None:
            if found is None or found.outcome != "protocol_error":
                super()._decide(found)

    monkeypatch.setattr(frames, "WorkerRun", Lenient)
    assert not fuzz(3_000).outcomes["protocol_error"]


def test_a_parent_that_still_calls_after_its_verdict_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(worker_run.WorkerRun):
        def _end(self) -> None:
            super()._end()
            self._host.asked.append(("late", "1"))  # type: ignore[attr-defined]  # the suite's own host

    monkeypatch.setattr(frames, "WorkerRun", Late)
    assert any("already had a verdict" in fault for fault in fuzz(500).faults)


def test_the_verb() -> None:
    said = lodger("bench", "frames", "--frames", "2000", "--seed", "7", "--check", "--json")
    assert said.code == 0, said
    body = said.json
    assert body["holds"]
    assert body["frames"] >= 2000
    assert body["faults"] == []
