"""The public names, pinned: adding or losing one is a decision, not an accident."""

import subprocess
import sys
from importlib import import_module

import pytest

PUBLIC = {
    "lodger.engine": {"Engine"},
    "lodger.engine.client": {"AsyncClient", "Client"},
    "lodger.sandbox": {
        "Bundle",
        "Host",
        "Job",
        "Limits",
        "Outcome",
        "Pool",
        "Report",
        "ScriptError",
        "Usage",
    },
    "lodger.stdlib": set(),
}


@pytest.mark.parametrize("package", sorted(PUBLIC))
def test_names(package: str) -> None:
    module = import_module(package)
    assert set(getattr(module, "__all__", ())) == PUBLIC[package]
    for name in PUBLIC[package]:
        assert getattr(module, name) is not None


def test_the_worker_imports_nothing_heavy() -> None:
    """A worker's package import may not drag the parent side along: each module makes every fork dearer."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import lodger.sandbox.frames; print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-E", "-c", code, ".dev"], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "typing",
        "enum",
        "dataclasses",
        "asyncio",
        "threading",
        "json",
        "msgspec",
        "wasmtime",
        "logging",
        "random",
    }
    assert not heavy & set(out)
