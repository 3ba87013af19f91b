"""Lengths of time in words."""

import pytest

from lodger.engine.service.humanize import humanize_duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"), (-1, "0 ms"), (0.35, "350 ms"), (1, "1 s"), (3.19, "3.1 s"), (59.9, "59 s"), (60, "1 min"),
        (61, "1 min 1 s"), (3600, "1 h"), (3661, "1 h 1 min"), (3601, "1 h"), (86_400 * 3 + 7200, "3 d 2 h"),
        (31_556_952 * 2, "2 y"),
    ],
)  # fmt: skip
def test_two_largest_units(seconds: float, words: str) -> None:
    assert humanize_duration(seconds) == words
