"""Classes 18 and 20: values whose text never ends, and sources that are bombs to compile.

Turning a value into text runs the tenant's code once more, after the end; compiling runs the engine's, before the beginning. Both are inside
the worker, under the same clocks.
"""

from lodger.sandbox.escape.case import Case
from lodger.sandbox.escape.evidence import Escaped
from lodger.sandbox.outcome import Outcome


def _never_ran(ran: bool) -> str:
    if ran:
        raise Escaped("it was compiled and run")
    return "no worker saw it"


_CLOCK = ("soft_stop", "cpu_watch", "rlimits")
_SHORT = {"cpu_ms": 60, "wall_ms": 1200}
CONVERSIONS = (
    (
        "thrown-stack",
        "a thrown error whose stack getter loops",
        "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e;",
    ),
    (
        "thrown-message",
        "a thrown error whose message getter loops",
        "throw { get message() { for (;;); }, stack: 'x' };",
    ),
    (
        "thrown-name",
        "a thrown error whose name getter loops",
        "const e = new Error('x'); Object.defineProperty(e, 'name', { get() { for (;;); } }); throw e;",
    ),
    (
        "thrown-code",
        "a thrown error whose code getter loops",
        "const e = new Error('x'); Object.defineProperty(e, 'code', { get() { for (;;); } }); throw e;",
    ),
    (
        "thrown-proxy",
        "a thrown proxy whose every trap loops",
        "throw new Proxy({}, { get() { for (;;); }, getPrototypeOf() { for (;;); }, ownKeys() { for (;;); } });",
    ),
    (
        "thrown-primitive",
        "a thrown object whose toPrimitive loops",
        "throw { message: { [Symbol.toPrimitive]() { for (;;); } }, get stack() { for (;;); } };",
    ),
    ("result-tojson", "a result whose toJSON loops", "return { toJSON() { for (;;); } };"),
    ("result-getter", "a result whose getter loops", "return { get x() { for (;;); } };"),
    ("result-proxy", "a result that is a proxy of endless keys", "return new Proxy({}, { ownKeys() { for (;;); } });"),
    ("result-then", "a result whose then loops", "return { get then() { for (;;); } };"),
    (
        "result-array-proxy",
        "a result that is an array without end",
        "return new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 53 - 1 : k === 'toJSON' || k === 'then' ? undefined : 1 });",
    ),
    (
        "result-dag",
        "a result that is a shared graph",
        "let o = {}; for (let i = 0; i < 40; i++) o = { a: o, b: o }; return o;",
    ),
    (
        "argument-tojson",
        "a call's argument whose toJSON loops",
        "await bridge.call('echo', { toJSON() { for (;;); } });",
    ),
    (
        "argument-proxy",
        "a call's argument that is a proxy without end",
        "await bridge.call('echo', new Proxy({}, { ownKeys() { for (;;); } }));",
    ),
    (
        "log-getter",
        "a logged proxy whose traps loop",
        "console.log(new Proxy({}, { ownKeys() { for (;;); }, getPrototypeOf() { for (;;); }, getOwnPropertyDescriptor() { for (;;); } }));",
    ),
    (
        "log-tostring",
        "a logged format argument that loops",
        "console.log('%s %d %o', { toString() { for (;;); } }, { valueOf() { for (;;); } }, new Proxy({}, { ownKeys() { for (;;); } }));",
    ),
    (
        "log-error",
        "a logged error whose stack loops",
        "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); console.error(e);",
    ),
    (
        "default-getter",
        "conversion of a rejection reason that loops",
        "await Promise.reject({ get name() { for (;;); }, get message() { for (;;); } });",
    ),
    (
        "unhandled",
        "an error thrown in a timer whose text loops",
        "setTimeout(() => { throw { get message() { for (;;); } }; }, 1); await new Promise(() => {});",
    ),
    (
        "after-limit",
        "catching the stop and converting for ever",
        "try { for (;;); } finally { throw { toString() { for (;;); } }; }",
    ),
    (
        "cause-chain",
        "a logged error with an endless chain of causes",
        "let n = 0; const make = () => { const e = new Error('c' + n++); Object.defineProperty(e, 'cause', { get: make }); return e; }; for (;;) console.log(make());",
    ),
    (
        "aggregate",
        "a logged aggregate error that holds itself",
        "const e = new AggregateError([], 'x'); e.errors.push(e); e.self = e; for (;;) console.log(e);",
    ),
)

BOMBS = (
    ("parens", "a million parentheses in the module", "export default () => " + "(" * 100_000 + "1" + ")" * 100_000),
    ("brackets", "a module of nested arrays", "export default () => " + "[" * 100_000 + "]" * 100_000),
    ("templates", "a module of nested templates", "export default () => " + "`${" * 45_000 + "1" + "}`" * 45_000),
    (
        "lets",
        "a module of forty thousand variables",
        "export default () => {" + "".join(f"let v{i};" for i in range(24_000)) + "}",
    ),
    (
        "strings",
        "a module of many long strings",
        "export default () => [" + "'" + "','".join("x" * 50 for _ in range(4_500)) + "'].length",
    ),
    (
        "arguments",
        "a call with sixty-five thousand arguments",
        "export default () => Math.max(" + ",".join("1" for _ in range(65_600)) + ")",
    ),
    (
        "regexp",
        "a module that is one expression of alternatives",
        "export default () => /" + "|".join(f"a{i}" for i in range(30_000)) + "/.test('b')",
    ),
    (
        "class-fields",
        "a class of twenty thousand private fields",
        "export default () => { class X {" + "".join(f"#p{i};" for i in range(20_000)) + "} return 1; }",
    ),
    (
        "switch",
        "a switch of thirty thousand cases",
        "export default () => { switch (1) {" + "".join(f"case {i}:" for i in range(20_000)) + "} return 1; }",
    ),
    ("comment", "a module that is one comment", "/*" + "*" * 250_000 + "/ export default () => 1"),
    ("unclosed", "an unclosed comment", "export default () => 1 /*" + "*" * 250_000),
    ("operators", "a module of a hundred thousand operators", "export default () => 1" + "+1" * 100_000),
    ("optional-chain", "a chain of a hundred thousand accesses", "export default () => null" + "?.a" * 80_000),
    ("arrow-chain", "thirty thousand nested arrows", "export default () => " + "()=>" * 60_000 + "1"),
    ("else-if", "twenty thousand branches", "export default () => { " + "if (0) {} else " * 16_000 + "{} return 1; }"),
    ("await-chain", "awaits of awaits", "export default async () => " + "await " * 40_000 + "1"),
    (
        "labels",
        "thirty thousand labels",
        "export default () => { " + "".join(f"l{i}:" for i in range(30_000)) + "; return 1; }",
    ),
    (
        "unicode-names",
        "names of ever new letters",
        "export default () => { " + "".join(f"var é{i}=1;" for i in range(15_000)) + " return 1; }",
    ),
    ("not-a-module", "a snippet that parses in no way", "return ((((" + "[" * 60_000),
    ("number", "one number of two hundred thousand digits", "export default () => " + "9" * 250_000 + "n > 1n"),
)
#: The wall that a bomb meets first; the others end by themselves, unless the parser breaks.
_BOMB_WALLS = {
    **dict.fromkeys(("lets", "class-fields"), "cpu_timer"),
    **dict.fromkeys(
        ("parens", "brackets", "templates", "arrow-chain", "else-if", "await-chain", "labels", "not-a-module"),
        "guest_stack",
    ),
}
_COMPILED = (
    Outcome.OK,
    Outcome.COMPILE_ERROR,
    Outcome.CPU_LIMIT,
    Outcome.STACK_LIMIT,
    Outcome.MEMORY_LIMIT,
    Outcome.SCRIPT_ERROR,
)

CASES = [
    *(
        Case(
            f"B18-{name}",
            "cpu_timer",
            mechanism,
            script,
            (Outcome.CPU_LIMIT,),
            story="Turning a value into text runs the tenant's code once more, after the end.",
            behind=_CLOCK,
            limits=_SHORT,
        )
        for name, mechanism, script in CONVERSIONS
    ),
    *(
        Case(
            f"B20-{name}",
            _BOMB_WALLS.get(name, "guest_memory"),
            mechanism,
            script,
            _COMPILED,
            story="A source small enough to be taken is large to compile.",
            behind=_CLOCK,
            limits={"cpu_ms": 150, "wall_ms": 3000},
        )
        for name, mechanism, script in BOMBS
    ),
    Case(
        "B20-too-large",
        "source_bytes",
        "a source one byte too large",
        "export default () => 1;" + " " * 65_514,
        (Outcome.SOURCE_TOO_LARGE,),
        seen=lambda trial: _never_ran(trial.report.outcome is Outcome.OK),
        limits={"source_bytes": 65_536},
        story="A source that is too large is refused before a worker sees it.",
    ),
]
