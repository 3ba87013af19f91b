"""Corrected error locations: the line of the read that the message names, in typical scripts."""

import time

import pytest
from tests.escape.probing import Echo

from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Outcome, Pool
from lodger.sandbox.job import ScriptError
from lodger.sandbox.workers.error_location import relocate
from lodger.sandbox.workers.verdict import Verdict

#: Sources with a failing read on the line that contains HERE.
SHAPES = [
    "const x = undefined;\nconst y = 1 + 2;\nreturn x.foo; // HERE",
    "const x = undefined;\nconst y = 1 + 2;\nreturn missing + y; // HERE",
    "const a = { b: {} };\nString(a);\nreturn a.b\n  .c\n  .d; // HERE",
    "const f = () => {\n  const v = null;\n  Math.abs(1);\n  return v.deep; // HERE\n};\nreturn f();",
    "const x = undefined;\nString(1); // x.foo is meant below\nconst s = 'x.foo';\nreturn x.foo; // HERE",
    "const x = undefined;\nString(1); /* x.foo\n x.foo */\nreturn x.foo; // HERE",
    "const x = undefined;\nString(1);\nreturn `a ${\n  x.foo // HERE\n}`;",
    "const x = {};\nString(1);\nx?.foo;\nreturn x.bar.foo; // HERE",
    "const x = undefined;\nString(1);\nreturn x['foo']; // HERE",
    "const x = undefined;\nawait null;\nconst z = 2;\nreturn x.foo; // HERE",
    "const x = undefined;\nString(1);\nif (x) { return 1 }\nreturn x.foo.bar.baz; // HERE",
    "for (const v of [1, undefined]) {\n  const w = v;\n  w.foo; // HERE\n}",
    "class A {\n  go() {\n    const t = this.none;\n    String(1);\n    return t.foo; // HERE\n  }\n}\nreturn new A().go();",
    "const x = undefined;\nString(1);\nconst o = {\n  foo: 1,\n  v: x.foo, // HERE\n};",
    "String(1);\nconst o = { missing: 1 };\nString(o.missing);\nreturn [1,\n  missing]; // HERE",
    "const x = undefined;\nString(1);\nx.foo = 3; // HERE",
    "const x = undefined;\nString(1);\nreturn x.foo(); // HERE",
    "String(1);\nconst y = [1];\nreturn [...y,\n  ...missing]; // HERE",
]


#: Sources that would take a careless search quadratic time.
BOMBS = ["/*" * 2048, "`" + "/*" * 2000, '"' * 4001, "[ " * 2000, ". " * 2000, "\\" * 4000, "{" * 4000, "'\\\n" * 1300]


@pytest.mark.parametrize("bomb", BOMBS, ids=[bomb[:3].encode("unicode_escape").decode() for bomb in BOMBS])
@pytest.mark.parametrize("place", [(1, 1), (2, 10**9), (10**9, 1), (0, 0), (-5, -5)])
def test_reading_a_hostile_source_is_cheap(bomb: str, place: tuple[int, int]) -> None:
    error = ScriptError(
        "TypeError", "cannot read property 'a' of undefined", "    at f (main.js:1:1)", "main.js", *place
    )
    began = time.process_time()
    assert relocate(Verdict(Outcome.SCRIPT_ERROR, error), {"main.js": bomb}).error == error
    assert time.process_time() - began < 0.2


@pytest.mark.parametrize(
    ("name", "message", "told"),
    [
        ("ReferenceError", "sleep is not defined", "sleep is not defined: use new Promise with setTimeout"),
        ("ReferenceError", "process is not defined", "process is not defined: use action.input and secrets"),
        ("ReferenceError", "thing is not defined", "thing is not defined"),
        ("TypeError", "mail.sendMail is not a function", "mail.sendMail is not a function: mail has send"),
        (
            "TypeError",
            "db.query is not a function",
            "db.query is not a function: name the set first, such as db.orders.find(…)",
        ),
        ("TypeError", "my.query is not a function", "my.query is not a function"),
        ("TypeError", "events.emitt is not a function", "events.emitt is not a function"),
        ("Error", "kv.gett is not a function", "kv.gett is not a function"),
        ("Error", "sleep is not defined", "sleep is not defined"),
    ],
)
def test_the_record_of_every_run_says_what_a_name_of_another_platform_is_here(
    name: str, message: str, told: str
) -> None:
    error = ScriptError(name, message, "    at f (main.js:1:1)", "main.js", 1, 1)
    found = relocate(Verdict(Outcome.SCRIPT_ERROR, error), {"main.js": "sleep(process, thing); const events = 1"}).error
    assert found is not None
    assert found.message == told


@pytest.mark.parametrize("module", [False, True], ids=["snippet", "module"])
async def test_lines(module: bool) -> None:
    async with started(Pool(size=2, profile="trusted")) as pool:
        wrong = []
        for shape in SHAPES:
            source = f"export default async () => {{\n{shape}\n}}" if module else shape
            report = await pool.run(Job(Bundle({"main.js": source})), Echo())
            assert report.outcome is Outcome.SCRIPT_ERROR, (shape, report)
            assert report.error is not None
            line = next(n for n, text in enumerate(source.split("\n"), 1) if "HERE" in text)
            if report.error.line != line or f"main.js:{line}:" not in report.error.stack.split("\n")[0]:
                wrong.append((report.error.message + "\n" + source, report.error.line, line))
    assert not wrong
