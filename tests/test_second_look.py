"""What the board does with tests that failed: each meets pytest itself, on a tiny project that fails in its own way."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_FLAKY = """
import pathlib
import pytest

@pytest.mark.parametrize("name", {names!r})
def test_flaky(name):
    seen = pathlib.Path(__file__).with_name("seen " + name.encode().hex())
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")

def test_sound():
    pass
"""


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest alone starts in a quarter of the time that it takes with every plugin that is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")


def _look(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    spec = importlib.util.spec_from_file_location("second_look", ROOT / ".ci" / "second_look.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_tiny.py").write_text(text)
    kept = folder / "flaked.txt"
    kept.write_text("of another run")
    code = module.look(sys.executable, folder, list(arguments), kept)
    return code, kept.read_text() if kept.exists() else ""


def test_green_is_green_and_leaves_no_file(tmp_path: Path) -> None:
    assert _look(tmp_path, "def test_sound(): pass") == (0, "")


def test_what_passes_alone_is_listed_aloud_and_green(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["plain", "with space::and [brackets]", "né\n"]
    code, kept = _look(tmp_path, _FLAKY.format(names=names), "-n", "2", "--dist", "loadfile")
    assert code == 0
    assert kept.count("FLAKED test_tiny.py::test_flaky[") == 3
    assert kept.count("AssertionError: the first time") >= 3, "what was seen first is kept, or nobody can mend it"
    assert "failed beside others, passed alone: 3" in kept
    assert "test_sound" not in kept
    out = capfd.readouterr().out
    assert out.rstrip().splitlines()[-1].strip(" =").startswith("green, and each flake above is a fault")
    assert out.count("FLAKED ") == 3


def test_four_flakes_are_no_noise(tmp_path: Path) -> None:
    code, kept = _look(tmp_path, _FLAKY.format(names=list("abcd")))
    assert code == 1
    assert "passed alone: 4" in kept
    assert " red " in kept


def test_what_fails_twice_is_red_beside_what_does_not(tmp_path: Path) -> None:
    code, kept = _look(tmp_path, _FLAKY.format(names=["a"]) + "def test_broken():\n    raise AssertionError\n")
    assert code == 1
    assert "FLAKED test_tiny.py::test_flaky[a]" in kept
    assert "FAILED test_tiny.py::test_broken" in kept


_BROKEN_TEARDOWN = """
import pytest

@pytest.fixture
def leaves():
    yield
    raise AssertionError("left behind")

def test_passes(leaves):
    pass
"""

_SKIPS_THEN = """
import pathlib
import pytest

def test_skips_the_second_time():
    seen = pathlib.Path(__file__).with_name("seen")
    if seen.exists():
        pytest.skip("not today")
    seen.touch()
    raise AssertionError
"""


@pytest.mark.parametrize(
    "text", [_BROKEN_TEARDOWN, _SKIPS_THEN], ids=["what it leaves behind", "what is skipped alone"]
)
def test_only_a_whole_pass_counts(tmp_path: Path, text: str) -> None:
    code, kept = _look(tmp_path, text)
    assert code == 1
    assert "failed twice: 1" in kept


_LOST = """
import os

def test_ends_its_process():
    os._exit(3)
"""

_INTERRUPTED = _FLAKY.format(names=["a"]) + "def test_interrupts():\n    raise KeyboardInterrupt\n"


@pytest.mark.parametrize(
    ("text", "arguments", "why"),
    [
        (_LOST, ("-n", "2"), "a test process was lost in test_tiny.py::test_ends_its_process"),
        (_LOST, (), "without a record"),
        ("import nowhere_at_all", ("-n", "2"), "test_tiny.py cannot be collected"),
        ("import nowhere_at_all", (), "test_tiny.py cannot be collected"),
        (_INTERRUPTED, (), "interrupted"),
        ("", (), "pytest ended with 5"),
        ("def test_sound(): pass", ("--no-such-option",), "pytest ended with"),
        (_FLAKY.format(names=[str(n) for n in range(21)]), (), "21 tests failed"),
    ],
    ids=[
        "lost worker",
        "lost process",
        "no import, workers",
        "no import",
        "interrupted",
        "no tests",
        "usage",
        "too many",
    ],
)
def test_no_second_look_at_a_broken_run(tmp_path: Path, text: str, arguments: tuple[str, ...], why: str) -> None:
    code, kept = _look(tmp_path, text, *arguments)
    assert code != 0
    assert "no second look" in kept
    assert why in kept
    assert "FLAKED" not in kept
