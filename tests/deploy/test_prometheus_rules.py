"""The alerts for Prometheus ask for metrics that exist, and each has its paragraph in the runbook."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.deploy.metric_names import NAMES

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "prometheus_rules.yml"


def test_each_rule_asks_for_metrics_that_exist_and_has_a_paragraph() -> None:
    text = FILE.read_text()
    assert set(re.findall(r"lodger_\w+", text)) <= set(NAMES)
    alerts = re.findall(r"- alert: (\w+)", text)
    assert [name.lower() for name in alerts] == re.findall(r"docs/runbook\.md#(\w+)", text)
    assert alerts == re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)


def test_promtool_accepts_them() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("NOT TESTED: promtool is not installed (apt-get install prometheus)")
    checked = subprocess.run(["promtool", "check", "rules", str(FILE)], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
