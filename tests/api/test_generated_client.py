"""The client that openapi-python-client makes of the description passes calls of every kind.

The generator wants older packages than Lodger does, so it is installed apart: ``pipx install openapi-python-client``, or a virtual
environment whose program is named by ``LODGER_CLIENT_GENERATOR``.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.api.running_api import RunningApi
from tests.escape.commands import HELLO

GENERATOR = shutil.which(os.environ.get("LODGER_CLIENT_GENERATOR", "openapi-python-client"))


@pytest.mark.skipif(
    GENERATOR is None, reason="NOT TESTED with openapi-python-client: it is not installed (pipx install)"
)
def test_a_generated_client_passes_calls(lodge: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(lodge.ask("GET", "/openapi.json").json()))
    shutil.copy(Path(__file__).with_name("generated_calls.py"), tmp_path / "calls.py")
    program = Path(str(GENERATOR)).resolve()
    generate = ("generate", "--path", "openapi.json", "--output-path", "out", "--meta", "none")
    calls = (program.parent / "python", "calls.py", lodge.url, lodge.token("admin"), HELLO.hex())
    said = []
    for command in ((program, *generate), calls):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        said.append(ran.stdout)
    assert "will not be generated" not in said[0]
    assert said[1] == "every call was answered\n"
