"""Names that nothing declares are found, and nothing else is taken for one."""

from pathlib import Path

import pytest

from lodger.sandbox.source_names import unknown_names

ROOT = Path(__file__).resolve().parents[3]
DECLARED = """
import Papa, { parse as read } from "papaparse";
import * as all from "./all.js";
export { tax } from "./tax.js";
const { a, b: [c = 2], ...rest } = action.input, late = 1;
let x, y;
class Person { #name = 1; age; static of(z) { return new Person(z); } get name() { return this.#name; } }
function* numbers({ from, to } = {}, [first]) { yield from + to + first; }
outer: for (const [key, value] of Object.entries(rest)) { if (key) break outer; x = value; }
try { numbers(); } catch ({ message }) { console.log(message, /[a]b/.test("q"), `${y} not ${`an ${all}`}`); }
const table = { key: 1, method(one) { return one; }, async other() {}, a, "text": late };
if (typeof window !== "undefined") window.close();
[x, y] = [y, x];
const twice = (n) => n * 2, thrice = n => n * 3;
for (var at in table) at.length;
const all_of = [Papa, read, Person, twice, thrice, c, Temporal.Now];
const own = { kv: new Map(), db: {} }; own.kv.has(own.db.rows); secrets.ANY; secrets.basic; fetch.name; kv.mine = 1;
const ours = (kv, mail) => kv.has(mail.box);
const ids = (run) => run.rows.map((run) => run.id), mine = { console: { lg: 1 } }.console.lg;
export default script(async ({ db, now, kv: store }) => [all_of, store, db.orders?.find, new Intl.NumberFormat()]);
"""


def test_what_is_declared_is_not_told() -> None:
    assert list(unknown_names({"main.js": DECLARED})) == []
    for folder in ("examples/scripts", "engine/demo", "stdlib/modules", "tests/conformance/web_platform"):
        for path in (ROOT / folder).rglob("*.js"):
            harness = {"check", "throws", "failed", "utf8", "hex", "unhex"}  # of the conformance tests
            found = [each.message.split()[0] for each in unknown_names({path.name: path.read_text()})]
            assert set(found) <= harness, path


#: Sources with a mark before the name that is told, and the message.
UNKNOWN = {
    "export default async () => {\n  await ▸sleep(1);\n};": "sleep is not defined: use new Promise with setTimeout",
    "const a = 1;\nreturn a + ▸conole.log;": "conole is not defined: did you mean console?",
    "return { a: 1, ▸other };": "other is not defined",
    "return `${▸name}`;": "name is not defined",
    "f(...▸rest); function f() {}": "rest is not defined",
    "if (▸ready) return 1;": "ready is not defined",
    "export default ({ db, ▸params }) => db.x.insert({});": "a run has no member params: use action.input",
    "export default async function run({ ▸sechedule }) {}": "a run has no member sechedule: did you mean schedule?",
    "export default script(async ({ ▸env }) => env)": "a run has no member env: use secrets",
    "export default async (run) => run.▸paramz": "a run has no member paramz: use action.input",
    "export default run => { const { db, ▸parms } = run; run.own = 1; return run?.kv }": "a run has no member parms: use action.input",
    "console.▸lg(1)": "console has no member lg: did you mean log?",
    "return kv.▸gett('x')": "kv has no member gett: did you mean get?",
    "export default ({ kv }) => kv?.▸gett('x')": "kv has no member gett: did you mean get?",
    "export default async (run) => run.kv.▸gett('x')": "run.kv has no member gett: did you mean get?",
    "export default (run) => { const { ▸post } = run.mail }": "run.mail has no member post",
    "return db.orders.▸findOne({})": "a set of db has no member findOne: use first(filter)",
    "return db.▸findOne({})": "db.findOne is a set of rows, not a function: name the set first, such as db.orders.first(filter)",
    "return fetch.▸xyz()": "fetch has no member xyz",
    "return now.▸minus({ days: 1 })": "now has no member minus: use subtract(duration)",
    "▸exports.x": "exports is not defined: use export default, and export before what other files import",
}


@pytest.mark.parametrize("source", UNKNOWN)
def test_what_is_not_declared_is_told_with_its_place(source: str) -> None:
    before = source.partition("▸")[0]
    (found,) = unknown_names({"main.js": source.replace("▸", "")})
    assert (found.line, found.column, found.message) == (
        before.count("\n") + 1,
        len(before.rpartition("\n")[2]) + 1,
        UNKNOWN[source],
    )
