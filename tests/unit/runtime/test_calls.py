"""Host calls through the example capability of the harness."""

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)

ASK = "export default async ({ echo }) => "


def test_arguments_are_json(run) -> None:
    source = "export default ({ echo }) => { try { echo.ask() } catch (e) { return e.message } }"
    said = run(f"Object.prototype.toJSON = () => undefined; {source}").result
    assert said == "echo.ask: the arguments are not JSON: their toJSON returns nothing"


@pytest.mark.parametrize(
    ("source", "context", "result"),
    [
        ("export default ({ echo }) => echo.plan", {"plan": "gold"}, "gold"),
        ("export default ({ action }) => action.id", {"action": {"id": "a1"}}, "a1"),
        ("export default (all) => [Object.keys(all), all.echo === all.echo]", {}, [["action", "echo"], True]),
        ("return [(await echo.ask(1)).name, action]", {"action": 7}, ["echo.ask", 7]),
        ("const echo = 5\nreturn echo", {}, 5),
        ("export default ({ echo: given }) => echo === given", {}, True),
        ("return (await Promise.all([1, 2, 3].map((n) => echo.ask(n)))).map((a) => a.arguments.value)", {}, [1, 2, 3]),
        ("const p = echo.ask(1); const s = echo.now(2); return [s.arguments.value, (await p).arguments.value]", {}, [2, 1]),
        ("const seen = []; setTimeout(() => seen.push('t'), 1); await echo.ask(1); await new Promise((r) => setTimeout(r, 5)); return seen",
         {}, ["t"]),
    ],
)  # fmt: skip
def test_what_scripts_see_of_capabilities(run, source: str, context: dict[str, object], result: object) -> None:
    """A capability is made once; snippets and modules see the same; calls are under way together, and while timers run."""
    assert run(source, context=context).result == result


def refuse(name: str, arguments: object) -> tuple[bool, object]:
    return False, {"code": "not_granted", "message": "no", "name": "Denied", "details": {"grant": "x"}}


def test_a_refusal_is_an_error_with_the_callers_line(run) -> None:
    reported = run("export default async ({ echo }) => {\n  await echo.ask(1)\n}", answer=refuse)
    error = reported.error
    assert reported.outcome == "script_error"
    assert (error["name"], error["message"], error["code"], error["line"]) == ("Denied", "no", "not_granted", 2)


def test_a_refusal_can_be_caught(run) -> None:
    source = (
        ASK + "{ try { await echo.ask(1) } catch (e) { return [e.code, e.name, e instanceof Error, e.details.grant] } }"
    )
    assert run(source, answer=refuse).result == ["not_granted", "Denied", True, "x"]
    source = ASK + "{ try { echo.now(1) } catch (e) { return e.code } }"
    assert run(source, answer=refuse).result == "not_granted"


def test_call_limit_ends_the_run_whatever_the_script_catches(run) -> None:
    source = ASK + "{ for (;;) { try { await echo.ask(1) } catch {} } }"
    reported = run(source, answer=lambda name, arguments: (False, {"code": "call_limit", "message": "200 calls"}))
    assert reported.outcome == "call_limit"
    assert len(reported.calls) == 1


def test_a_forgotten_await_still_counts(run) -> None:
    reported = run("export default ({ echo }) => {\n  echo.ask(1)\n  return 2\n}", answer=refuse)
    assert reported.outcome == "script_error"
    assert reported.error["line"] == 2
    assert run("export default ({ echo }) => { echo.ask(1); return 2 }").result == 2


@pytest.mark.parametrize("handling", [".catch(() => {})", ".then(null, () => {})"])
def test_a_handled_failure_is_none(run, handling: str) -> None:
    assert run(f"export default ({{ echo }}) => {{ echo.ask(1){handling}; return 2 }}", answer=refuse).result == 2


def test_arguments_beyond_a_frame(run) -> None:
    reported = run(ASK + "echo.ask('x'.repeat(5000))", frame_bytes=4096)
    assert reported.outcome == "script_error"
    assert "4096" in reported.error["message"]
    assert run(ASK + "echo.ask('ä'.repeat(3000))", frame_bytes=4096).outcome == "output_limit"


def test_keys_of_answers_are_data(run) -> None:
    source = ASK + "{ const v = await echo.ask(1); return [Object.keys(v), ({}).x === undefined] }"
    assert run(source, answer=lambda name, arguments: (True, {"__proto__": {"x": 1}, "constructor": 2})).result == [
        ["__proto__", "constructor"],
        True,
    ]
