"""Regular expressions created at run time follow ECMAScript or are refused: the flag v is never ignored."""

import pytest

REFUSED = "runtime quickjs does not support regular expressions with the flag v"
#: Ways to create one with the flag v, with the result where the engine supports it.
WITH_FLAG_V = {
    r'new RegExp("\\p{L}", flag).test("a")': True,
    r'RegExp("[[a-z]--[b]]", "g" + flag).test("b")': False,
    r'/x/.constructor("[[a-z]--[b]]", flag).test("c")': True,
    r'new (class extends RegExp {})("\\p{L}", flag).test("a")': True,
    r'Reflect.construct(RegExp, ["\\p{L}", flag], Date) instanceof Date': True,
    r'/x/.compile("\\p{L}", flag).test("a")': True,
    r'new RegExp("\\p{L}", { reads: 0, toString() { return this.reads++ ? "" : flag; } }).test("a")': True,
    'new RegExp({ [Symbol.match]: true, source: "\\\\p{L}", flags: flag }).test("a")': True,
    r'new (RegExp[Symbol.species])("\\p{L}", flag).test("a")': True,
}
#: Other uses of the constructor, which do not change.
UNCHANGED = {
    'new RegExp("a(b)", "gi").exec("AB")[1]': "B",
    'RegExp("a").source + new RegExp(/b/g).flags + RegExp(/c/, "i").flags': "agi",
    "(() => { const one = /a/; return [RegExp(one) === one, new RegExp(one) === one]; })()": [True, False],
    "[RegExp.name, RegExp.length, typeof RegExp.escape, RegExp[Symbol.species] === RegExp]": [
        "RegExp",
        2,
        "function",
        True,
    ],
    "[/a/ instanceof RegExp, /a/.constructor === RegExp, RegExp.prototype.constructor === RegExp]": [True, True, True],
    "'a-b'.split(new RegExp('-')).join('') + 'xx'.replace(RegExp('x', 'g'), 'y')": "abyy",
    "new (class extends RegExp { more() { return this.flags; } })('a', 'g').more()": "g",
    "/a/.compile('b', 'i').test('B')": True,
    "Object.keys(RegExp.prototype)": [],
}


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)
@pytest.mark.parametrize("code", WITH_FLAG_V)
def test_the_flag_v_is_carried_out_or_refused(run, request: pytest.FixtureRequest, code: str) -> None:
    reported = run(f"const flag = String('v'); return {code};")
    if request.node.callspec.params["runtime"] == "quickjs-native":
        assert reported.result is WITH_FLAG_V[code]
    else:
        assert reported.error["name"] == "SyntaxError"
        assert reported.error["message"].startswith(REFUSED)


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)
@pytest.mark.parametrize("code", UNCHANGED)
def test_other_expressions_are_made_as_ever(run, code: str) -> None:
    assert run(f"return {code};").result == UNCHANGED[code]


def test_a_script_cannot_take_the_check_away(run) -> None:
    reported = run("""
      Reflect.construct = () => /a/;
      Object.defineProperty(RegExp.prototype, "unicodeSets", { value: false });
      Array.prototype[Symbol.iterator] = null;
      return new RegExp("a", String("v")).flags;
    """)
    assert reported.error["message"].startswith(REFUSED)


def test_what_the_engine_does_not_know_is_a_syntax_error(run) -> None:
    for pattern in ("(?i:a)b", "(?-i:a)b", "(?<x>a)|(?<x>b)"):
        assert run(f"return new RegExp({pattern!r}).source").error["name"] == "SyntaxError"
