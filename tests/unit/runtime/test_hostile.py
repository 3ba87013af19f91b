"""Scripts that attack the glue through the language: they get an ordinary outcome within the limits."""

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)

POLLUTED = [
    "Promise.prototype.then = () => { throw 1 }; Promise.resolve = () => { throw 2 }",
    "JSON.stringify = () => 'evil'; JSON.parse = () => 0",
    "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw 3 }",
    "Map.prototype.get = Map.prototype.set = () => 0; Set.prototype.has = () => true",
    "String.prototype.slice = String.prototype.indexOf = () => 'evil'; RegExp.prototype.exec = () => null",
    "Array.prototype.push = Array.prototype.map = () => { throw 4 }; Array.prototype[Symbol.iterator] = () => { throw 5 }",
    "Object.keys = Object.defineProperty = () => { throw 6 }; Reflect.apply = null",
    "globalThis.Promise = class {}; globalThis.Error = globalThis.Map = globalThis.JSON = null",
    "Object.prototype.then = undefined; Object.prototype.line = 99; Object.prototype.get = () => 1",
    "Object.defineProperty(Promise, Symbol.species, { get() { throw 'species' } })",
    "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(globalThis)",
    "Error.prototype.toString = () => { for (;;); }; Error.stackTraceLimit = 0",
    "for (const name of Object.getOwnPropertyNames(globalThis)) { try { delete globalThis[name] } catch {} }",
    "Date.now = () => NaN; Math.max = () => NaN; Number.prototype.toString = () => 'n'",
]


@pytest.mark.parametrize("pollution", POLLUTED)
def test_a_polluted_realm_still_answers(run, pollution: str) -> None:
    source = """
      export default async ({ echo }) => {
        const { log } = console;
        %s;
        log('seen');
        const a = await echo.ask(7);
        return a.arguments.value;
      }
    """
    reported = run(source % pollution)
    assert reported.lines == ["seen"]
    assert reported.result == 7


@pytest.mark.parametrize(
    "pollution", [*POLLUTED, "Object.defineProperty(Array.prototype, '0', { set() { throw 'setter' } })"]
)
def test_a_polluted_realm_still_fails_properly(run, pollution: str) -> None:
    reported = (
        run(f"{pollution};\nthrow new RangeError('x')", cpu_ms=300) if "globalThis.Error" not in pollution else None
    )
    if reported is None:
        return
    assert reported.status == 0
    assert reported.outcome == "script_error"
    if "delete globalThis" not in pollution:
        assert reported.error["name"] == "RangeError"
        assert reported.error["message"] == "x"


def test_an_outcome_cannot_be_forged_by_text(run) -> None:
    reported = run("const e = new Error('the script used its 5 ms of CPU time'); e.name = 'LimitExceeded'; throw e")
    assert reported.outcome == "script_error"


def test_text_cannot_leave_its_field(run) -> None:
    reported = run('throw Object.assign(new Error(\'","line":7,"x":"\'), { name: "a\\"b" })')
    assert reported.error["name"] == 'a"b'
    assert reported.error["line"] == 1


def test_a_hook_on_stacks_is_never_called(run) -> None:
    reported = run(
        "let met = 0; const hook = () => { met++; return 'evil' };\n"
        "Error.prepareStackTrace = hook; try { structuredClone(() => 1) } catch {}\n"
        "delete Error.prepareStackTrace; Error.prepareStackTrace = hook;\n"
        "if (met === 0) throw new Error('line four')"
    )
    assert (reported.error["message"], reported.error["line"]) == ("line four", 4)
    assert "main.js:4:" in reported.error["stack"]


def test_half_of_a_surrogate_pair_crosses_as_the_sign_for_it(run) -> None:
    reported = run("""return JSON.rawJSON('"\\ud800"')""")
    assert reported.result == "\ufffd"
    reported = run("""const sent = await echo.ask(JSON.rawJSON('"\\ud800"')); return sent.arguments.value""")
    assert reported.result == "\ufffd"
