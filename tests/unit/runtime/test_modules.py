"""Imports: only a script's own modules can be imported."""

import pytest

N = {"n.js": "export const n = 42"}


@pytest.mark.parametrize(
    ("modules", "result"),
    [
        (
            {
                "main.js": "import { a } from './lib/a.js'; import b from './b.js'; export default () => [a, b]",
                "lib/a.js": "import { c } from '../c.js'; export const a = 'a' + c",
                "b.js": "export default 'b'",
                "c.js": "export const c = 'c'",
            },
            ["ac", "b"],
        ),
        (
            {
                "main.js": "import { even } from './gerade.js'; export default () => even(10)",
                "gerade.js": "import { odd } from './ungeräde.js'; export const even = (n) => n === 0 || odd(n - 1)",
                "ungeräde.js": "import { even } from './gerade.js'; export const odd = (n) => n !== 0 && even(n - 1)",
            },
            True,
        ),
        ({"main.js": "import './empty.js'; export default () => 1", "empty.js": ""}, 1),
        ({"job.js": "export default () => 'job'", "main.js": "export default () => 'main'"}, "job"),
        ({'od"d\\.js': "export default () => 3"}, 3),
        ({"main.js": "const { n } = await import('./n.js')\nreturn n"} | N, 42),
    ],
    ids=["relative names", "cycles", "empty", "the first is the entry", "quotes", "a snippet"],
)
def test_modules_of_a_script(run, modules: dict[str, str], result: object) -> None:
    assert run(modules).result == result


def test_a_snippet_may_import(run) -> None:
    assert run({"main.js": "import { n } from './n.js'\nconsole.log(n)"} | N).lines == ["42"]


@pytest.mark.parametrize(
    "name",
    ["./nope.js", "/etc/passwd", "fs", "node:fs", "https://example.com/x.js", "data:text/javascript,1", "../../up.js"],
)
def test_unknown_names(run, name: str) -> None:
    static = run(f"\nimport '{name}'\nexport default () => 1")
    assert static.outcome == "compile_error"
    assert static.error["name"] == "ReferenceError"
    assert f"cannot find module '{name}'" in static.error["message"]
    assert "this script has main.js" in static.error["message"]
    assert (static.error["file"], static.error["line"]) == ("main.js", 2)
    dynamic = run(f"await import('{name}')")
    assert dynamic.outcome == "script_error"
    assert f"cannot find module '{name}'" in dynamic.error["message"]


def test_a_missing_export_names_both(run) -> None:
    reported = run({"main.js": "import { q } from './a.js'; export default () => q", "a.js": "export const z = 1"})
    assert reported.outcome == "compile_error"
    assert "'q'" in reported.error["message"]
    assert "a.js" in reported.error["message"]


def test_no_code_of_ours_is_importable(run) -> None:
    reported = run(
        "export default async () => { const m = await import('lodger:module'); return [Object.keys(m), typeof $begin] }"
    )
    assert reported.result == [["default"], "undefined"]


def test_the_file_of_an_imported_module(run) -> None:
    reported = run(
        {
            "main.js": "import { f } from './lib/a.js'\nexport default () => f()",
            "lib/a.js": "export function f() {\n  throw new Error('there')\n}",
        }
    )
    assert (reported.error["file"], reported.error["line"]) == ("lib/a.js", 2)
    assert "main.js:2" in reported.error["stack"]
