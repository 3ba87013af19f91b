"""What depends on a locale and needs no answer of the host, which the worker of these tests lacks. Intl: tests/conformance/test_intl.py."""

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)

RIGHT = {
    "(1234).toLocaleString()": "1,234",
    "(-1234567).toLocaleString()": "-1,234,567",
    "(-1234567n).toLocaleString()": "-1,234,567",
    "[1234, null, [5n]].toLocaleString()": "1,234,,5",
    "new Date(NaN).toLocaleDateString('de')": "Invalid Date",
    "'a'.localeCompare('B')": -1,
    "['b-', 'B', 'a b', 'ab', 'A', '', 'a'].sort((one, two) => one.localeCompare(two))": ["", "a", "A", "a b", "ab", "B", "b-"],
    "'I'.toLocaleLowerCase('de-DE')": "i",
    "'i'.toLocaleUpperCase()": "I",
    "Number.prototype.toLocaleString.name": "toLocaleString",
    "Object.keys(Number.prototype)": [],
}  # fmt: skip


def test_english_is_right(run) -> None:
    assert run(f"return [{', '.join(RIGHT)}]").result == list(RIGHT.values())
