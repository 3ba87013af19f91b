"""Only the operator can choose quickjs-native: no tenant input names a runtime, and its further differences are harmless."""

import dataclasses
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.e2e.command import bare, lodger
from tests.limits.machine import Machine

from lodger.engine.core.settings import Settings
from lodger.engine.service import nouns
from lodger.engine.service.nouns.base import Noun
from lodger.sandbox import Bundle, Limits, Outcome
from lodger.sandbox.errors import LimitInvalid

NATIVE = "quickjs-native"


def test_no_verb_of_a_tenant_takes_a_runtime() -> None:
    seen = 0
    for module in pkgutil.iter_modules(nouns.__path__, f"{nouns.__name__}."):
        for _, group in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if not issubclass(group, Noun):
                continue
            for _, verb in inspect.getmembers(group, inspect.isfunction):
                assert "runtime" not in inspect.signature(verb).parameters, verb
                seen += 1
    assert seen > 20
    assert "runtime" not in {field.name for field in dataclasses.fields(Bundle)}
    with pytest.raises(LimitInvalid, match="runtime"):
        Limits().lowered({"runtime": NATIVE})


def test_the_operator_chooses() -> None:
    assert Settings().runtime == "quickjs"
    assert Settings(runtime=NATIVE).runtime == NATIVE
    with pytest.raises(ValueError, match="runtime"):
        Settings(runtime="wasm")


def test_exec() -> None:
    said = lodger(
        "exec", "-", "--runtime", NATIVE, "--input", '{"id": 4294967303}', "--json", stdin="return action.input.id"
    )
    assert said.json["result"] == 4294967303
    assert said.json["walls"]["seccomp"] is True
    assert lodger("exec", "-", "--runtime", "native", stdin="return 1").code == 2


def lodger_without_native(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``lodger`` in an installation without the extra ``native``."""
    code = "import sys; sys.modules['_quickjs'] = None; from lodger.engine.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, env=bare(), timeout=100, check=False)


def test_it_is_an_extra() -> None:
    refused = lodger_without_native("exec", "-", "--runtime", NATIVE, stdin="return 1;")
    assert refused.returncode == 1
    assert "pip install 'lodger[native]'" in refused.stderr
    attacked = lodger_without_native("escape", "--case", "A3-array-constructor", "--json")
    assert [case["runtime"] for case in json.loads(attacked.stdout)["cases"]] == ["quickjs"]
    examined = json.loads(lodger_without_native("doctor", "--json", "--probe").stdout)
    assert [each["library"] for each in examined["libraries"]] == ["_libwasmtime.so", "node"]
    assert [each["installed"] for each in examined["advisories"]["engines"] if each["engine"] == "wasmtime"] != [""]


@pytest.fixture
def native() -> Iterator[Machine]:
    machine = Machine(NATIVE)
    yield machine
    machine.close()


def test_a_second_file_is_refused_in_words(native: Machine) -> None:
    report = native("import x from './other.js'\nexport default () => x")
    assert report.outcome is Outcome.COMPILE_ERROR
    assert report.error is not None
    assert "single file" in report.error.message
    assert (report.error.file, report.error.line) == ("main.js", 1)


def test_an_answer_that_has_left_is_the_last_thing(native: Machine) -> None:
    # The end of the host call cannot be caught as an error: the process exits.
    report = native(
        "try { console.log('a'); for (;;) kv.get('k'.repeat(2e6)) } catch { for (;;) await null }", cpu_ms=500
    )
    assert report.outcome in {Outcome.OUTPUT_LIMIT, Outcome.CPU_LIMIT, Outcome.SCRIPT_ERROR}
    assert [line.text for line in report.logs] == ["a"]
