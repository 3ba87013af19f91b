"""Values pass exactly or are refused, in each direction, on every runtime for scripts; the host's texts are compared byte by byte."""

import asyncio
import json
from dataclasses import dataclass

import pytest

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused
from lodger.escape.arena import arena, settings_for
from lodger.escape.case import SCRIPTS
from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Limits, Outcome, Report
from lodger.sandbox.job import LogLine, Reply

#: JavaScript expression and expected JSON text; None if it must be refused.
EXACT: dict[str, tuple[str, str | None]] = {
    "small": ("7", "7"),
    "two to the 31": ("2 ** 31", "2147483648"),
    "beyond 32 bits": ("2 ** 32 + 7", "4294967303"),
    "last safe": ("Number.MAX_SAFE_INTEGER", "9007199254740991"),
    "two to the 53": ("2 ** 53", "9007199254740992"),
    "negative 53": ("-(2 ** 53)", "-9007199254740992"),
    "beyond 53 as text": ("'9007199254740993'", '"9007199254740993"'),
    "two to the 63": ("2 ** 63", "9223372036854776000"),
    "large": ("1e21", "1e+21"),
    "largest": ("Number.MAX_VALUE", "1.7976931348623157e+308"),
    "least": ("5e-324", "5e-324"),
    "tenth": ("0.1 + 0.2", "0.30000000000000004"),
    "minus nought": ("-0", "0"),  # JSON.stringify has no negative zero
    "not a number": ("NaN", None),
    "infinity": ("[Infinity, -Infinity]", None),
    "raw number beyond 53": ("JSON.rawJSON('9007199254740993')", "9007199254740993"),
    "integer": ("10n", None),
    "integer inside": ("{ a: [10n ** 100n] }", None),
    "nothing": ("null", "null"),
    "undefined": ("undefined", "null"),
    "undefined inside": ("{ a: undefined, b: [undefined] }", '{"b":[null]}'),
    "function": ("() => 1", None),
    "function inside": ("{ a: () => 1, b: [() => 1] }", None),
    "symbol": ("Symbol('x')", None),
    "empty text": ("''", '""'),
    "nul": ("'admin\\0evil'", '"admin\\u0000evil"'),
    "nul alone": ("'\\0'", '"\\u0000"'),
    "nul in a key": ("{ 'a\\0b': 1 }", '{"a\\u0000b":1}'),
    "high half": ("'\\ud800'", '"\\ud800"'),
    "low half": ("'x\\udc00y'", '"x\\udc00y"'),
    "halves turned": ("'\\udc00\\ud800'", '"\\udc00\\ud800"'),
    "half in a key": ("{ '\\ud83d': 1 }", '{"\\ud83d":1}'),
    "whole pair": ("'\\ud83d\\ude00'", '"\U0001f600"'),
    "mark": ("'\\ufeffx'", '"\ufeffx"'),
    "separators": ("'\\u2028\\u2029'", '"\u2028\u2029"'),
    "twins": ("['\\u00e9', 'e\\u0301']", '["\u00e9","e\u0301"]'),
    "controls": ("'\\x01\\x1f\\x7f\\x80'", '"\\u0001\\u001f\x7f\x80"'),
    "quotes": ("'\"\\\\/'", '"\\"\\\\/"'),
    "right to left": ("'\\u202eabc'", '"\u202eabc"'),
    "rope": ("(() => { let s = 'ab'; for (let i = 0; i < 12; i++) s = s + s; return s; })()", '"' + "ab" * 4096 + '"'),
    "proto key": ('JSON.parse(\'{"__proto__":{"x":1},"constructor":2}\')', '{"__proto__":{"x":1},"constructor":2}'),
    "then": ("{ then: 1, toString: 2 }", '{"then":1,"toString":2}'),
    "numbers as keys": ("{ 10: 1, 9: 2, b: 3 }", '{"9":2,"10":1,"b":3}'),
    "date": ("new Date(0)", '"1970-01-01T00:00:00.000Z"'),
    "map": ("new Map([[1, 2]])", None),
    "bytes": ("new Uint8Array([1, 255])", None),
    "holes": ("[1, , 3]", "[1,null,3]"),
    "boxed": ("[Object(1), Object('x'), Object(true)]", '[1,"x",true]'),
    "boxed integer": ("Object(10n)", None),
    "deepest": ("(() => { let a = 1; for (let i = 0; i < 64; i++) a = [a]; return a; })()", "[" * 64 + "1" + "]" * 64),
    "too deep": ("(() => { let a = 1; for (let i = 0; i < 65; i++) a = [a]; return a; })()", None),
    "far too deep": ("(() => { let a = 1; for (let i = 0; i < 5000; i++) a = { a }; return a; })()", None),
    "brackets in text": ("'[['.repeat(1000)", '"' + "[[" * 1000 + '"'),
    "wide": ("Array.from({ length: 50000 }, (x, i) => i % 10)", json.dumps([i % 10 for i in range(50000)], separators=(",", ":"))),
    "many keys": ("Object.fromEntries(Array.from({ length: 5000 }, (x, i) => ['k' + i, i]))", json.dumps({f"k{i}": i for i in range(5000)}, separators=(",", ":"))),
    "cyclic": ("(() => { const a = {}; a.a = a; return a; })()", None),
    "cyclic far": ("(() => { const a = [[{}]]; a[0][0].b = a; return a; })()", None),
    "twice the same": ("(() => { const a = { x: 1 }; return [a, a]; })()", '[{"x":1},{"x":1}]'),
    "to json": ("{ toJSON() { return { a: 1 }; } }", '{"a":1}'),
    "to json throws": ("{ toJSON() { throw new Error('no'); } }", None),
    "getter": ("{ get x() { return 5; } }", '{"x":5}'),
    "inherited": ("Object.create({ a: 1 }, { b: { value: 2, enumerable: true } })", '{"b":2}'),
    "proxy": ("new Proxy({ a: 1 }, {})", '{"a":1}'),
    "revoked": ("(() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; })()", None),
}  # fmt: skip
#: Numbers beyond a double, which JavaScript can write as text. The sandbox passes arguments as text; the capability refuses them.
RAW = {
    "one": "JSON.rawJSON('1e400')",
    "digits": "JSON.rawJSON('9'.repeat(400))",
    "inside": "[{ a: JSON.rawJSON('-1e309') }]",
}
#: JSON texts of the host, and an expression over ``value`` that must be true in the script.
ARRIVING = {
    "beyond 32 bits": ("4294967303", "value === 4294967303"),
    "beyond 53": ("9007199254740993", "value === 9007199254740992"),  # rounded: larger ids must be strings
    "as text": ('"9007199254740993"', "value === '9007199254740993'"),
    "minus nought": ("-0", "Object.is(value, -0)"),
    "nul": ('"a\\u0000b"', "value.length === 3 && value.charCodeAt(1) === 0"),
    "half": ('"\\ud800"', "value.length === 1 && value.charCodeAt(0) === 0xd800"),
    "pair": ('"\U0001f600"', "value.length === 2 && value.codePointAt(0) === 0x1f600"),
    "proto": (
        '{"__proto__":{"x":1},"a":2}',
        "({}).x === undefined && Object.hasOwn(value, '__proto__') && value.a === 2",
    ),
    "constructor": (
        '{"constructor":1,"hasOwnProperty":2}',
        "value.constructor === 1 && Object.keys(value).length === 2",
    ),
    "then": ('{"then":1}', "value.then === 1"),
    "separators": ('"\u2028"', "value.charCodeAt(0) === 0x2028"),
    "mark": ('"\ufeff"', "value.length === 1"),
    "empty key": ('{"":{"":1}}', "value[''][''] === 1"),
    "deep": ("[" * 60 + "]" * 60, "JSON.stringify(value).length === 120"),
    "long": ('"' + "x" * 200_000 + '"', "value.length === 200000"),
}


class Echo:
    """Host that returns its arguments or a fixed text, and keeps the calls."""

    def __init__(self, answer: str | None = None) -> None:
        self.answer = answer
        self.seen: list[str] = []

    async def call(self, name: str, arguments: str) -> Reply:
        self.seen.append(arguments)
        return Reply(True, arguments if self.answer is None else self.answer)

    def log(self, line: LogLine) -> None:
        """Discard the line."""


@dataclass(frozen=True)
class Tried:
    """Result of one script."""

    report: Report
    seen: list[str]


@dataclass(frozen=True)
class Script:
    """One script to run."""

    body: str
    answer: str | None = None
    context: str = '{"action":{"id":"x"}}'
    limits: tuple[tuple[str, int], ...] = ()

    def job(self) -> Job:
        text = f"export default async function ({{ bridge, action }}) {{\n{self.body}\n}}"
        return Job(Bundle({"main.js": text}, self.context), Limits(**dict(self.limits)))


_THERE_AND_BACK = """const given = {};
try {{ const back = await bridge.call('echo', given); return {{ back: JSON.stringify(back) }}; }}
catch (error) {{ return {{ refused: error.code ?? error.name }}; }}"""
#: Inputs that are not a single JSON value.
NO_INPUTS = {
    "half": '{"action":{"id":"x","id":"y"}',
    "two": "{} {}",
    "nan": "NaN",
    "infinite": '{"a":1e999}',
    "deep": "[" * 65 + "]" * 65,
    "digits": '{"a":' + "9" * 400 + "}",
    "quotes": "'x'",
    "surrogate": "\ud800",
}
#: Expression that a script logs, and the expected line.
LINES = {
    "nul": ("a\\0b", "a\0b"),
    "half": ("\\ud800", "\ufffd"),
    "controls": ("\\u0001\\u0002", "\x01\x02"),
    "marks": ("\\ufeffx\\u2028", "\ufeffx\u2028"),
    "pair": ("\\ud83d\\ude00", "\U0001f600"),
}
SCRIPT_OF: dict[tuple[str, str], Script] = {
    **{("there", name): Script(_THERE_AND_BACK.format(expression)) for name, (expression, _) in EXACT.items()},
    **{("result", name): Script(f"return {expression};") for name, (expression, _) in EXACT.items()},
    **{("raw", name): Script(_THERE_AND_BACK.format(expression)) for name, expression in RAW.items()},
    **{("raw result", name): Script(f"return {expression};") for name, expression in RAW.items()},
    **{("arriving", name): Script(f"const value = await bridge.call('echo', 1); return {test};", text) for name, (text, test) in ARRIVING.items()},
    **{("waiting", name): Script(f"const value = bridge.callSync('echo', 1); return {test};", text) for name, (text, test) in ARRIVING.items()},
    **{("input", name): Script(f"const value = action.input; return {test};", context='{"action":{"id":"x","input":' + text + "}}") for name, (text, test) in ARRIVING.items()},
    **{("no input", name): Script("return 1;", context=text) for name, text in NO_INPUTS.items()},
    **{("line", name): Script(f"console.log('{text}');") for name, (text, _) in LINES.items()},
}  # fmt: skip


@pytest.fixture(scope="module", params=SCRIPTS)
def tried(request: pytest.FixtureRequest) -> dict[tuple[str, str], Tried]:
    """Return the results of all scripts on one runtime, from one pool."""

    async def go() -> dict[tuple[str, str], Tried]:
        async with started(arena(request.param, settings_for(request.param))) as made:
            found = {}
            for key, script in SCRIPT_OF.items():
                host = Echo(script.answer)
                found[key] = Tried(await made.run(script.job(), host), host.seen)
        return found

    return asyncio.run(go())


All = dict[tuple[str, str], Tried]


@pytest.mark.parametrize("name", EXACT)
def test_to_the_host_and_back(name: str, tried: All) -> None:
    wanted = EXACT[name][1]
    report, seen = tried["there", name].report, tried["there", name].seen
    assert report.outcome is Outcome.OK, report
    reported = json.loads(report.result or "null")
    if wanted is None:
        assert seen == []
        assert reported["refused"]
    else:
        assert seen == [wanted]
        if wanted != "9007199254740993":  # a number beyond a double is rounded
            assert reported["back"] == wanted


@pytest.mark.parametrize("name", EXACT)
def test_as_a_result(name: str, tried: All) -> None:
    wanted = EXACT[name][1]
    report = tried["result", name].report
    if wanted is None:
        assert report.outcome in (Outcome.SCRIPT_ERROR, Outcome.BAD_REQUEST) or report.result == "null", report
        assert report.result in (None, "null")
    else:
        assert (report.outcome, report.result) == (Outcome.OK, wanted)


@pytest.mark.parametrize("name", RAW)
def test_a_number_that_no_double_holds(name: str, tried: All) -> None:
    assert tried["raw result", name].report.outcome is Outcome.BAD_REQUEST
    (text,) = tried["raw", name].seen
    with pytest.raises(CallRefused):
        strict_json.parse(text)


@pytest.mark.parametrize("way", ["arriving", "waiting", "input"])
@pytest.mark.parametrize("name", ARRIVING)
def test_from_the_host(name: str, way: str, tried: All) -> None:
    report = tried[way, name].report
    assert (report.outcome, report.result) == (Outcome.OK, "true"), report


@pytest.mark.parametrize("name", NO_INPUTS)
def test_an_input_that_is_not_one_json_value_reaches_no_worker(name: str, tried: All) -> None:
    assert tried["no input", name].report.outcome is Outcome.BAD_REQUEST


@pytest.mark.parametrize("name", LINES)
def test_log_lines(name: str, tried: All) -> None:
    """Invalid text in a log line is replaced by U+FFFD, nothing is cut."""
    (line,) = tried["line", name].report.logs
    assert line.text == LINES[name][1]
