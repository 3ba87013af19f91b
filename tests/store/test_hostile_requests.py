"""Hostile values that a platform hands on are refused with an error before anything is stored."""

from pathlib import Path
from typing import Any

import pytest

from lodger.engine.core.errors import InputError
from lodger.engine.sync import Engine


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


HELD: list[Any] = []
HELD.append(HELD)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("params_invalid", {"params": "\ud800"}),
        ("params_invalid", {"params": {"\udfff": 1}}),
        ("params_invalid", {"params": float("nan")}),
        ("params_invalid", {"params": HELD}),
        ("params_invalid", {"params": _nested(100_000)}),
        ("request_key_invalid", {"request_key": ""}),
        ("request_key_invalid", {"request_key": "k" * 201}),
        ("request_key_invalid", {"request_key": "\ud800"}),
        ("request_key_invalid", {"request_key": "a\0b"}),
        ("request_key_invalid", {"request_key": "\u202e"}),
        ("instant_out_of_range", {"delay": float("nan")}),
        ("instant_out_of_range", {"delay": float("inf")}),
        ("instant_out_of_range", {"delay": 10**30}),
        ("delay_negative", {"delay": -1}),
    ],
)
def test_a_request_that_cannot_be_stored_is_refused_in_words(tmp_path: Path, code: str, given: dict[str, Any]) -> None:
    with Engine.open(str(tmp_path / "ledger.db")) as engine:
        engine.tenants.create("acme")
        engine.scripts.put("acme", "job", "export default () => 1")
        with pytest.raises(InputError) as refused:
            engine.run_in("acme", "job", **{"delay": 0, **given})
        assert refused.value.code == code
        assert engine.actions.list("acme") == []
