"""The examples run as they stand, and every verb has its heading in the documentation."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.e2e.command import ROOT, bare, inside
from tests.e2e.ready import CLI, Ready, lodger

from lodger.engine.workbench import script_folder
from lodger.engine.workbench.cases import run_tests
from lodger.engine.workbench.check import examine, throw_away

EXAMPLES = ROOT / "examples"


def test_every_script_runs() -> None:
    for script in sorted(EXAMPLES.glob("*.js")):
        said = inside("exec", script, "--json")
        assert (said.code, said.json["outcome"]) == (0, "ok"), (script, said.json["error"])


def test_c_becomes_a_script(tmp_path: Path) -> None:
    """Guests in C, built by the system's clang and wasi-libc."""
    if shutil.which("clang") is None or not Path("/usr/lib/wasm32-wasi/libc.a").exists():
        pytest.skip(
            "NOT TESTED with clang: it and wasi-libc are not installed (apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32)"
        )
    results = {}
    for source in sorted((EXAMPLES / "wasm").glob("*.c")):
        module = tmp_path / f"{source.stem}.wasm"
        subprocess.run(
            ["clang", "--target=wasm32-wasi", "-O2", "-Wall", "-Werror", "-o", module, source], check=True, timeout=120
        )
        said = inside("exec", module, "--input", "[9, 1, 5, 2.5, -3]", "--json")
        results[source.stem] = said.json["result"]
    text = "[9, 1, 5, 2.5, -3]"
    crc = {compact: f"{zlib.crc32(compact.encode()):08x}" for compact in (text, text.replace(" ", ""))}
    assert results["quantiles"] == {"median": 2.5, "p95": 5}
    assert results["checksum"]["crc32"] in crc.values()
    wrong = inside("exec", tmp_path / "quantiles.wasm", "--input", '"x"')
    assert (wrong.code, "a JSON list of numbers" in wrong.out) == (1, True)


def test_the_readmes_script_runs() -> None:
    (script,) = re.findall(r"```js\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert inside("exec", "-", "--json", stdin=script).json["result"] == {"reminded": 0}


def test_the_readmes_python_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=bare(), timeout=250, check=True
    )
    assert "Europe/Berlin" in done.stdout


def test_a_platform_embeds_the_engine(tmp_path: Path) -> None:
    assert 'ok {"lit":2}' in _run("examples.embed", cwd=tmp_path)


def test_a_plain_script(tmp_path: Path) -> None:
    said = _run("examples.plain", cwd=tmp_path).splitlines()
    assert said[0].startswith("Every 1 second")
    assert len([line for line in said if line.startswith("hello at 20")]) >= 2


def test_a_platforms_own_test_of_its_customers_schedules(tmp_path: Path) -> None:
    said = _run("pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_platform.py"), cwd=tmp_path)
    assert "1 passed" in said


def test_inside_fastapi(tmp_path: Path) -> None:
    with _served("examples.with_fastapi", tmp_path) as (http, _env):
        made = http.post("/shops/oak/scripts/hello", content="export default () => 'hello'")
        assert made.json() == {"version": 1}
        refused = http.post("/shops/oak/scripts/hello", content="")
        assert (refused.status_code, refused.json()["code"]) == (422, "script_empty")
        asked = http.post("/shops/oak/scripts/hello/run").json()["action"]
        _until(lambda: http.get(f"/shops/oak/runs/{asked}").json()["state"] == "done")
        assert http.get(f"/shops/oak/runs/{asked}").json() == {"state": "done", "result": "hello", "error": None}


def test_inside_django_with_the_node_apart(tmp_path: Path) -> None:
    with _served("examples.with_django", tmp_path) as (http, env):
        made = http.post("/shops/oak/scripts/hello?rule=every+1s", content="export default () => 'hello'")
        assert made.json()["version"] == 1
        assert made.json()["runs"].startswith("Every 1 second, counted from ")
        refused = http.post("/shops/oak/scripts/hello?rule=sometimes", content="export default () => 1")
        assert refused.status_code == 422
        assert refused.json()["code"]
        assert http.get("/shops/oak/scripts/hello").status_code == 405
        with open(os.devnull, "r+") as nothing:
            node = ("up", "--role", "node", "--db", "shops.db")
            with Ready(CLI, node, (nothing.fileno(), nothing.fileno(), 2), env, tmp_path) as up:
                _until(lambda: {"state": "done", "result": "hello"} in http.get("/shops/oak/runs").json()["runs"])
                up.terminate()
                up.wait(120)


@contextmanager
def _served(example: str, folder: Path) -> Iterator[tuple[httpx2.Client, dict[str, str]]]:
    """Serve an example on the loopback, in its own process; the port was free a moment ago."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port = asked.getsockname()[1]
    env = bare() | {"LODGER_SQLITE_SYNCHRONOUS": "NORMAL"}
    with (
        open(os.devnull, "r+") as nothing,
        Ready(example, (str(port),), (nothing.fileno(), nothing.fileno(), 2), env, folder) as site,
    ):
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=120) as http:
            _until(lambda: _answers(http) or site.poll() is not None)
            assert site.poll() is None
            yield http, env
        site.terminate()
        site.wait(120)


def _answers(http: httpx2.Client) -> bool:
    try:
        http.get("/")
    except httpx2.TransportError:
        return False
    return True


def _until(true: Callable[[], bool]) -> None:
    """Ask another process until it is so: it has no other way to tell."""
    ends = time.monotonic() + 120
    while not true():
        assert time.monotonic() < ends, "it never was so"
        time.sleep(0.05)


def _run(module: str, *arguments: str, cwd: Path) -> str:
    """Run a module in a process of its own; return what it printed."""
    said = lodger(*arguments, module=module, cwd=cwd)
    assert said.code == 0, said.err
    return said.out


def test_scripts_for_everyday_work_pass_their_tests() -> None:
    folder = script_folder.read(EXAMPLES / "scripts")
    with throw_away(folder) as engine:
        findings, planned = examine(engine, folder)
    assert findings == []
    from_urls = {"slack-command", "stripe-payments"}
    assert len(folder.tests) - len(from_urls) == len(planned) >= 15
    for script in folder.scripts.values():
        assert [line[:3] for line in script.text(None).split("\n")[:2]] == ["// ", "// "], script.name
        assert f"`{script.name}`" in (EXAMPLES / "README.md").read_text()
    done = run_tests(folder)
    assert done.findings == []
    assert {case.key: case.failures for case in done.cases if case.failures} == {}
    assert {case.path for case in done.cases} == set(folder.tests)
