"""JavaScript in the real sandbox sees nothing of its host."""

import json
from collections.abc import Iterator

import pytest
from tests.limits.machine import Machine


@pytest.fixture
def js() -> Iterator[Machine]:
    machine = Machine("quickjs")
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


def test_script_sees_nothing_of_the_process(js: Machine) -> None:
    found = js(
        "return ['process', 'require', 'std', 'os', 'scriptArgs', 'print', 'SharedArrayBuffer'].map(n => typeof globalThis[n])"
    )
    assert json.loads(found.result or "") == ["undefined"] * 7
