"""A node that runs many attempts holds no more afterwards than before; ``python bench/developer/soak.py`` does it for 50 000."""

import sys
from pathlib import Path

import pytest

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "developer"))
import soak


@pytest.mark.slow
def test_attempts_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    ledger = tmp_path / "ledger" / "ledger.db"
    ledger.parent.mkdir()
    settings = Settings(slots=4, sqlite_synchronous="NORMAL", lease_s=60)
    samples = []
    with Engine.open(str(ledger), settings=settings) as engine, engine.node():
        load = soak.Load(engine)
        for _ in range(3):
            load.run(12, 120)
            samples.append(load.fullest(ledger, temporary))
    assert load.ran == 3 * (12 + soak.SINGLE)
    first, last = samples[1], samples[-1]
    assert last.files == 0
    assert last.threads <= first.threads + 2
    assert last.descriptors <= first.descriptors + 6
    assert last.memory_mib < first.memory_mib + 12
