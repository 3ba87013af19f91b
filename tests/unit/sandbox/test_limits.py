"""Limits can be lowered but not raised; others keep the operator's value."""

import pytest

from lodger.sandbox.errors import LimitInvalid
from lodger.sandbox.limits import Limits


def test_what_is_not_wished_for_stays_as_allowed() -> None:
    allowed = Limits(wall_ms=60_000, cpu_ms=20_000)
    assert allowed.lowered({}) == allowed
    assert allowed.lowered({"cpu_ms": 5000}) == Limits(wall_ms=60_000, cpu_ms=5000)


def test_a_wish_for_more_changes_nothing() -> None:
    assert Limits(cpu_ms=100).lowered({"cpu_ms": 20_000}) == Limits(cpu_ms=100)


@pytest.mark.parametrize("wish", [{"cpu": 1}, {"cpu_ms": 0}, {"cpu_ms": "1"}])
def test_nonsense_is_refused(wish: dict[str, object]) -> None:
    with pytest.raises(LimitInvalid):
        Limits().lowered(wish)
