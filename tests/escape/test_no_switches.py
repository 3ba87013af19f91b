"""Installed code has no way to disable a wall: no parameter, no setting, no file of the tests."""

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.escape.probing import PROBE, Echo

import lodger.engine
import lodger.sandbox
from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Outcome, Pool
from lodger.sandbox.doctor import WALLS
from lodger.sandbox.runtimes.settings import runtime_settings
from lodger.sandbox.wasm.pool import WasmPool
from lodger.sandbox.workers.launcher import Zygote, zygote_settings
from lodger.sandbox.workers.warm_pool import WarmPool

pytestmark = pytest.mark.usefixtures("uncollected")

INSTALLED = [Path(str(package.__file__)).resolve().parent for package in (lodger.engine, lodger.sandbox)]
#: Parameters and settings that would disable a wall or boot other code.
SWITCHES = {
    "without", "taken_away", "runtime_path", "controllers", "weak", "weaken", "weakening", "disable", "disabled", "insecure", "unsafe",
    "no_sandbox", "no_seccomp", "skip", "skip_walls", "walls", "settings", "zygote", "zygote_type", "program", "attempt_type",
}  # fmt: skip
#: All settings of a zygote and of each runtime.
ZYGOTE_SETTINGS = {
    "runtime", "uid", "stack_bytes", "memory_max_bytes", "cpu_ms_max", "cpu_grace_ms", "open_files",
    "library", "artefact", "numbers", "binding",
}  # fmt: skip
#: Classes that create workers, with all their parameters.
MAKERS: dict[Any, set[str]] = {
    Pool: {"runtime", "size", "cores", "profile", "minimum", "cgroup", "cache", "code_cache", "now_us"},
    WarmPool: {"runtime", "size", "cores", "profile", "minimum", "cgroup", "cache", "now_us"},
    WasmPool: {"size", "cache", "cores", "profile", "minimum", "cgroup", "code_cache", "compile_limits", "now_us"},
    Zygote: {"on_worker", "on_lost", "on_refused", "cgroup"},
}


def trees(*folders: str, holding: str = "") -> Iterator[tuple[Path, ast.Module]]:
    """Parse what is installed, or what of it lies in some folders or holds a pattern."""
    for root in INSTALLED:
        for path in root.rglob("*.py"):
            if (
                not folders
                or path.relative_to(root.parent).parts[:2] in {tuple(folder.split("/")) for folder in folders}
            ) and re.search(holding, source := path.read_text("utf-8")):
                yield path, ast.parse(source)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_what_makes_workers_takes_nothing_that_removes_a_wall(maker: Any) -> None:
    code = maker.__init__.__code__
    names = set(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    assert names == MAKERS[maker]
    assert not names & SWITCHES


def test_no_signature_of_the_boot_takes_a_switch() -> None:
    """Checks the zygote, its walls and its start; ``settings`` has a closed list of names, see below."""
    found = 0
    for path, tree in trees("sandbox/child", "sandbox/walls", "sandbox/workers", "sandbox/doctor.py"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
                assert not names & (SWITCHES - {"settings", "walls", "program", "controllers", "zygote"}), (
                    f"{path}: {node.name}"
                )
                found += 1
    assert found > 100


def test_no_word_of_a_switch_stands_in_what_is_installed() -> None:
    for path, tree in trees(holding="without|taken_away|taken away|runtime_path|escape_"):
        words = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not words & {"without", "taken_away", "taken away", "runtime_path"}, path
        assert not {word for word in words if word.startswith("escape_")}, path


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native", "wasm", "wasm_compiler"])
def test_a_zygote_is_told_numbers_and_paths_only(runtime: str) -> None:
    assert set(zygote_settings(runtime, runtime_settings(runtime))) <= ZYGOTE_SETTINGS


def test_the_real_boot_program_raises_every_wall_whatever_it_is_told() -> None:
    """The real program ignores the settings of the matrix's: such a pool has all walls and the real runtime."""

    class Asking(Pool):
        async def runtime_settings(self) -> dict[str, str]:
            names = " ".join(wall.name for wall in WALLS)
            return {**await super().runtime_settings(), "without": names, "runtime_path": PROBE}

    async def go(kind: type[Pool]) -> tuple[dict[str, bool], str | None]:
        async with started(kind(size=1, profile="trusted")) as pool:
            report = await pool.run(Job(Bundle({"main.js": "export default () => 6 * 7"})), Echo())
            assert report.outcome is Outcome.OK
            return pool.walls, report.result

    plain, asking = asyncio.run(go(Pool)), asyncio.run(go(Asking))
    assert asking == plain
    assert plain[1] == "42"
    assert plain[0]["seccomp"]
    assert plain[0]["rlimits"]


async def test_the_matrix_has_a_boot_program_that_does_take_walls_away() -> None:
    """The test above would fail for the matrix's program."""
    from tests.escape.probing import probe_pool

    async with started(probe_pool(("seccomp", "landlock"))) as pool:
        walls = pool.walls
    assert not walls["seccomp"]
    assert not walls["landlock"]
    assert walls["rlimits"]
