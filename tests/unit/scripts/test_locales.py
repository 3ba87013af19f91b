"""Locales without Intl: the one locale gives correct results, and every other is refused."""

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)

RIGHT = {
    "(1234.5).toLocaleString()": "1,234.5",
    "(-1234567.8916).toLocaleString('en-US')": "-1,234,567.892",
    "(0).toLocaleString('en')": "0",
    "(1e21).toLocaleString(['en-US'])": "1,000,000,000,000,000,000,000",
    "NaN.toLocaleString()": "NaN",
    "(0.0005).toLocaleString()": "0.001",
    "(-Infinity).toLocaleString()": "-∞",
    "(999).toLocaleString(undefined, {})": "999",
    "(1.10).toLocaleString()": "1.1",
    "(-1234567n).toLocaleString('en-US')": "-1,234,567",
    "new Date(0).toLocaleString('en-US')": "1/1/1970, 12:00:00 AM",
    "new Date(46800000).toLocaleTimeString()": "1:00:00 PM",
    "new Date(NaN).toLocaleDateString()": "Invalid Date",
    "new Date(0).toLocaleDateString('en-US', { timeZone: 'UTC' })": "1/1/1970",
    "[1234.5, new Date(0)].toLocaleString('en-US')": "1,234.5,1/1/1970, 12:00:00 AM",
    "'a'.localeCompare('b')": -1,
    "'I'.toLocaleLowerCase('de-DE')": "i",
    "'i'.toLocaleUpperCase()": "I",
    "Number.prototype.toLocaleString.name": "toLocaleString",
    "Object.keys(Number.prototype)": [],
}
REFUSED = [
    "(1).toLocaleString('de-DE')",
    "(1).toLocaleString(['fr', 'en-US'])",
    "(1).toLocaleString('en-GB')",
    "(1).toLocaleString('en-US', { style: 'percent' })",
    "1n.toLocaleString('de')",
    "new Date().toLocaleString('de-DE')",
    "new Date().toLocaleDateString('en-GB')",
    "new Date().toLocaleTimeString('en-US', { timeZone: 'Europe/Berlin' })",
    "new Date().toLocaleDateString(undefined, { month: 'long' })",
    "[1].toLocaleString('de')",
    "new Uint8Array(1).toLocaleString('de')",
    "'a'.localeCompare('b', 'de')",
    "'a'.localeCompare('b', 'en-US')",
    "'a2'.localeCompare('a10', undefined, { numeric: true })",
    "'I'.toLocaleLowerCase('tr-TR')",
    "'i'.toLocaleUpperCase(['az'])",
]


def test_english_is_right(run) -> None:
    assert run(f"return [{', '.join(RIGHT)}]").result == list(RIGHT.values())


def test_every_other_locale_is_refused(run) -> None:
    tries = ", ".join(f"() => {call}" for call in REFUSED)
    reported = run(
        f"return [{tries}].map((call) => {{ try {{ return call() }} catch (error) {{ return [error.name, error.code] }} }})"
    )
    assert reported.result == [["RangeError", "locale_unknown"]] * len(REFUSED)
