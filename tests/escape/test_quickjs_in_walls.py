"""JavaScript in the real sandbox: each limit ends a script with its own outcome, and does not affect the next run."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.escape.probing import Echo

from lodger.sandbox import Bundle, Job, Limits, Pool, Report


class Machine:
    """A pool with its own event loop."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.pool = Pool(size=2)
        self.runner.run(self.pool.start())

    def __call__(self, code: str, host: Echo | None = None, context: str = "{}", **limits: int) -> Report:
        job = Job(Bundle({"main.js": code}, context), Limits(**limits))
        return self.runner.run(self.pool.run(job, host or Echo()))

    def close(self) -> None:
        self.runner.run(self.pool.stop())
        self.runner.close()


@pytest.fixture
def js() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    machine.close()


def test_all_walls_stand_around_it(js: Machine) -> None:
    report = js("export default () => 6 * 7")
    assert report.result == "42"
    assert all(stands for wall, stands in report.walls.items() if wall != "uid")


def test_no_text_of_the_host_in_any_error(js: Machine) -> None:
    for code in (
        "import 'nope'",
        "import x from '/etc/passwd'",
        "null.x",
        "await import('data:text/javascript,1')",
        "\0",
        "{",
    ):
        text = str(js(code))
        for word in ("Traceback", 'File "', "/root", "/work", "/usr", ".py", "lodger:"):
            assert word not in text, (code, text)


def test_each_worker_draws_its_own_numbers(js: Machine) -> None:
    code = "return [Math.random(), crypto.randomUUID(), globalThis.seen = (globalThis.seen ?? 0) + 1]"
    answers = [json.loads(js(code).result or "") for _ in range(60)]
    assert len({answer[0] for answer in answers}) == 60
    assert len({answer[1] for answer in answers}) == 60
    assert {answer[2] for answer in answers} == {1}


def test_script_sees_nothing_of_the_process(js: Machine) -> None:
    found = js(
        "return ['process', 'require', 'std', 'os', 'scriptArgs', 'print', 'SharedArrayBuffer'].map(n => typeof globalThis[n])"
    )
    assert json.loads(found.result or "") == ["undefined"] * 7
