"""The examples run as they stand, and every verb has its heading in the documentation."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.command import ROOT, lodger

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.js")), ids=lambda path: path.name)
def test_a_script_runs(script: Path) -> None:
    said = lodger("exec", script, "--json")
    assert (said.code, said.json["outcome"]) == (0, "ok"), said.json["error"]


def test_the_readmes_script_runs() -> None:
    (script,) = re.findall(r"```js\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert lodger("exec", "-", "--json", stdin=script).json["result"] == {"reminded": 0}


def test_the_readmes_python_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "Europe/Berlin" in _python("-c", code, cwd=tmp_path)


def test_a_platform_embeds_the_engine(tmp_path: Path) -> None:
    assert 'ok {"lit":2}' in _python(str(EXAMPLES / "embed.py"), cwd=tmp_path)


def test_every_verb_has_its_heading() -> None:
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    listed = re.findall(r"^│ (\w+) ", lodger("--help").out.partition("Commands")[2], re.MULTILINE)
    assert {"demo", "exec", "next", "doctor"} <= set(listed)
    for verb in listed:
        assert f"## lodger {verb}\n" in text, verb


def _python(*arguments: str, cwd: Path) -> str:
    env = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=env | {"PYTHONPATH": str(ROOT / ".dev")},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
