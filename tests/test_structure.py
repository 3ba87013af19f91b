"""The layers of the engine have no exceptions."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_layers_of_the_engine_have_no_exceptions() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [contract for contract in contracts if contract["type"] == "layers"]
    engine = next(contract for contract in layers if contract["containers"] == ["lodger.engine"])
    order = ["cli", "service", "node", "capabilities", "effects", "data", "store", "policy", "recurrence", "core"]
    flat = [name.strip() for layer in engine["layers"] for name in layer.split("|")]
    assert [name for name in flat if name in order] == order
    assert [contract["name"] for contract in layers if contract.get("ignore_imports")] == []
