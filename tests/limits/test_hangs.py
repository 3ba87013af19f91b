"""Built-ins that never poll the interrupt handler, endless conversions, slow compilation, hash floods: each ends with its outcome.

Each runs for more than four seconds under the engine's own limit of 0.3 s, most of them forever.
"""

from tests.limits.machine import Machine

from lodger.sandbox import Outcome

HUGE = "{ length: 2 ** 53 - 2 }"
ENDLESS = {
    **{
        f"Array.prototype.{name}": f"Array.prototype.{name}.call({HUGE}{arguments})"
        for name, arguments in {
            "reverse": "",
            "copyWithin": ", 1, 2",
            "shift": "",
            "unshift": ", 1",
            "splice": ", 1, 2 ** 20",
            "sort": "",
            "join": ", ''",
            "flat": "",
        }.items()
    },
    "Array.prototype.slice": "Array.prototype.slice.call({ length: 4294967295 }, 5)",
    "concat of a spreadable": "return [].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true })",
    "flatMap": "new Array(4294967295).flatMap((x) => x)",
    "iterator drop": "(function* () { for (;;) yield 1 })().drop(9e15).next()",
    "Iterator.concat": "Iterator.concat((function* () { for (;;) yield 1 })()).drop(9e15).next()",
    "Set.union": "new Set([1]).union({ size: 1, has: () => true, keys: () => ({ next: () => ({ done: false, value: 1 }) }) })",
    "String.raw": "String.raw({ raw: { length: 2 ** 53 - 1 } })",
    "indexOf in a string": "for (;;) 'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b')",
    "split": "for (;;) 'a'.repeat(4e6).split('a'.repeat(2e6) + 'b')",
    "replaceAll": "for (;;) 'a'.repeat(4e6).replaceAll('a'.repeat(2e6) + 'b', '')",
    "normalize": "for (;;) ('\\u0316\\u0300'.repeat(4e5)).normalize()",
    "a list of keys": "JSON.stringify({}, new Array(4294967295))",
    "a shared graph as JSON": "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return a",
    "a shared graph flat": "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return a.flat(Infinity).length",
    "one function of many names":
        "for (;;) eval('(() => {' + Array.from({ length: 60000 }, (_, i) => 'let a' + i + ';').join('') + '})')",
    "one expression of many ways": "for (;;) new RegExp(Array.from({ length: 200000 }, (_, i) => 'a' + i).join('|'))",
    "error to text": "throw { toString() { for (;;); }, get message() { for (;;); } }",
    "stack of an error": "throw { get stack() { for (;;); } }",
    "toJSON": "return { toJSON() { for (;;); } }",
    "the limit's own error": "Error.prototype.toString = function () { for (;;); }; for (;;);",
    "a thenable that comes again": "const t = { then(f) { f(t) } }; await t",
    "a getter that is read at the end": "return { get a() { for (;;); } }",
    "regexp that tries everything": "/^(a|a)*$/.test('a'.repeat(40) + 'b')",
    "BigInt to text": "const n = 1n << 1000000n; for (;;) n.toString()",
    "BigInt from text": "const t = '9'.repeat(300000); for (;;) BigInt(t)",
    "a class of many private names":
        "for (;;) eval('(class {' + Array.from({ length: 20000 }, (_, i) => '#a' + i + ';').join('') + '})')",
    "sorting numbers":
        "const a = Float64Array.from({ length: 1e5 }, (_, i) => (i * 7919) % 100003); for (;;) a.slice().sort()",
    "a typed array of a length": "for (;;) new Uint8Array({ length: 3e7 })",
    "a sparse array as JSON": "const a = []; a[2e7] = 1; for (;;) JSON.stringify(a)",
    "an uncatchable end": "for (;;) try { for (;;); } finally { for (;;); }",
    "a wait that is none": "for (;;) await null",
    "promise jobs": "const f = () => Promise.resolve().then(f); await f()",
}  # fmt: skip

COLLIDE = """
// Pairs of units with one value of h * 263 + c: all these keys fall into one bucket.
const pairs = []; for (let c = 0; c < 8; c++) pairs.push(String.fromCharCode(300 + c, 3000 - 263 * c));
let keys = ['']; for (let n = 0; n < 5; n++) keys = keys.flatMap((k) => pairs.map((p) => k + p));
const text = '{' + keys.map((k) => JSON.stringify(k) + ':1').join(',') + '}';
for (;;) JSON.parse(text);
"""


def test_each_ends_at_its_limit(js: Machine) -> None:
    wrong = {}
    for name, code in {**ENDLESS, "colliding keys": COLLIDE}.items():
        report = js(code, cpu_ms=40, wall_ms=20_000)
        # a tick of the kernel's clock below, a coarse bound above: lodger bench walls checks the promise
        if report.outcome is not Outcome.CPU_LIMIT or not 30 <= report.usage.cpu_ms <= 40 + 20 * 100:
            wrong[name] = (report.outcome, report.error, report.usage)
    assert not wrong
    assert js("return 1").result == "1", "the next run is as good as any"
