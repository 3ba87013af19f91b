"""The page "Lodger inside a Django application", carried out from an empty folder in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.command import ROOT
from tests.guides import steps

pytest.importorskip("django", reason="NOT TESTED with Django: it is not installed (pip install django)")


def test_the_page_is_carried_out(tmp_path: Path) -> None:
    blocks = steps((ROOT / "docs" / "tutorials" / "inside-django.md").read_text())
    for step in blocks:
        if step.title:
            (tmp_path / step.title).write_text(step.text)
    (tmp_path / "page.py").write_text(
        "".join(each.text for each in blocks if each.language == "python" and not each.title)
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    (shown,) = (each.text for each in blocks if each.language == "text")
    assert (ran.returncode, ran.stdout) == (0, shown), ran.stderr
