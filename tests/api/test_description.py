"""The API against its own description, by schemathesis: what is valid is taken, what is not is refused, every answer is described.

Schedules have the most inputs, and are asked. ``LODGER_FUZZ=whole`` asks everything, with far more requests, and follows
what one answer gives to the next.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.api.running_api import ONE, running_api

from lodger.engine.vault.keyring import Keyring

ROOT = Path(__file__).resolve().parents[2]
#: 400 stands for a request that is not as described, 422 for one that is and cannot be used: so 422 may follow what is valid.
CONFIG = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "412", "422"]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "409", "412", "415", "422"]
"""
WHOLE = os.environ.get("LODGER_FUZZ") == "whole"


@pytest.mark.slow
@pytest.mark.timeout(3600 if WHOLE else 900)
def test_the_api_keeps_to_its_description(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    phases = ("examples,coverage,fuzzing,stateful", "--max-examples", "60") if WHOLE else ("examples,coverage",)
    Keyring(tmp_path / "keys").add()
    with running_api(
        f"sqlite:///{tmp_path / 'ledger.db'}",
        secret_keys=tmp_path / "keys",
        api_failures_per_minute=10_000,
    ) as lodge:
        lodge.engine.tenants.create("acme")
        lodge.engine.scripts.put("acme", "job", ONE)
        lodge.engine.schedules.create("acme", "s", script="job", rules="every 60s")
        ran = subprocess.run(
            [
                Path(sys.executable).parent / "st", "--config-file", tmp_path / "schemathesis.toml", "run",
                f"{lodge.url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {lodge.token('admin')}", "--checks", "all",
                # It would revoke the token that it asks with.
                "--exclude-operation-id", "tokens_revoke",
                # They go on for as long as they are listened to.
                "--exclude-operation-id", "actions_live", "--exclude-operation-id", "action_live",
                # Its own ten seconds are not enough for a run behind walls on a busy machine.
                "--request-timeout", "250",
                *(() if WHOLE else ("--include-path-regex", "/tenants/{tenant_id}/schedules$")),
                "--seed", "1", "--no-color", "--workers", "1", "--phases", *phases,
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.api.schema_hooks", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2000:]
        assert "Tested: " in ran.stdout
