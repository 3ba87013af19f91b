"""Whole scripts in real walls: what an author writes, what the commit makes of it, budgets and their warnings, and what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.ready import lodger
from tests.e2e.script_runs import result, run
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import NOW_US, Shop, customers, instant, order, orders

from lodger.engine.effects import commit
from lodger.engine.policy.budget_table import BUDGETS
from lodger.engine.sync import Engine
from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool
from lodger.sandbox.syntax_check import SyntaxChecker


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    made.add(customers, {"id": 1, "org_id": "one", "email": "a@one.example"})
    made.add(
        orders,
        order("one", 1, total="12.50", customer_id=1, modified=instant("2026-11-01T10:00:00.123456"),
            serial=2**63 - 1, blob=b"\x00\xff\x10"),
        order("one", 2, total="0.10", state="done", items=3),
        order("two", 3, total="99.99"),
    )  # fmt: skip
    yield made
    made.close()


CARTS = """
export default async function ({ db, mail, action, now }) {
  const cutoff = now.subtract({ days: 1 });
  const stale = await db.orders.find({ state: "open", modified: { lt: cutoff } }, { limit: 100 });
  for (const cart of stale) {
    await mail.send({ to: "a@one.example", subject: "You left something behind", text: `${cart.items} items are waiting` });
    await db.orders.update(cart.id, { state: "reminded" });
  }
  return { reminded: stale.length };
}
"""


def test_the_carts_of_the_book(shop: Shop) -> None:
    finished = run(shop, CARTS)
    assert (finished.outcome, finished.result) == (Outcome.OK, '{"reminded":1}')
    assert [effect["effect"] for effect in finished.effects] == ["mail", "update"]
    assert finished.effects[1]["before"] == {"state": "open"}
    assert finished.effects[1]["line"] == "main.js:7"
    with shop.engine.begin() as connection:
        commit.apply(connection, finished.journal, now_us=NOW_US)
    assert [row["state"] for row in shop.rows(orders)] == ["reminded", "done", "open"]


def test_a_failed_run_leaves_nothing(shop: Shop) -> None:
    finished = run(shop, "export default async ({ db }) => { await db.orders.delete(1);\n throw new Error('no'); }")
    assert (finished.outcome, finished.journal, finished.effects) == (Outcome.SCRIPT_ERROR, None, ())
    assert finished.error is not None
    assert finished.error.line == 2


def test_values_go_there_and_back(shop: Shop) -> None:
    source = """
export default async ({ db, now, action }) => {
  const row = await db.orders.get(1);
  const wild = {
    __proto__: null, "$instant": 1, constructor: "c", deep: [{ "$x": null }], text: "\\u{1F600}\\u2028é",
    big: String(12345678901234567890n), at: now, when: row.modified, blob: row.blob, none: undefined,
  };
  Object.defineProperty(wild, "__proto__", { value: "data", enumerable: true });
  const made = await db.notes.insert({ wild, at: new Date(5) });
  const back = await db.notes.get(made.id);
  return {
    exact: String(row.modified.epochNanoseconds), same: back.wild.when.equals(row.modified), iso: String(back.wild.when),
    serial: row.serial, total: row.total, blob: [...back.wild.blob],
    tag: back.wild["$instant"], proto: Object.hasOwn(back.wild, "__proto__") && back.wild.__proto__,
    polluted: ({}).x === undefined, ctor: back.wild.constructor, text: back.wild.text === wild.text, big: back.wild.big,
    date: back.at instanceof Instant && back.at.epochMilliseconds,
    inner: back.wild.deep[0]["$x"] === null, keys: Object.keys(back.wild).sort(),
    late: (await db.orders.count({ modified: { gt: row.modified } })),
    notEarlier: await db.orders.count({ modified: { gte: row.modified } }),
    slot: action.slot.equals(now), next: action.upcoming[0].since(now).total("milliseconds"), local: action.localTime, input: action.input,
  };
};"""
    answer = result(shop, source)
    assert answer.pop("keys") == ["$instant", "__proto__", "at", "big", "blob", "constructor", "deep", "text", "when"]
    assert answer == {
        "exact": "1793527200123456000", "same": True, "iso": "2026-11-01T10:00:00.123456Z", "serial": "9223372036854775807",
        "total": "12.50", "blob": [0, 255, 16], "tag": 1, "proto": "data", "polluted": True, "ctor": "c", "text": True,
        "big": "12345678901234567890", "date": 5, "inner": True, "late": 0, "notEarlier": 1, "slot": True, "next": 60_000,
        "local": "2026-11-18T12:06:40", "input": {"limit": 5},
    }  # fmt: skip


REFUSALS: list[tuple[str, Outcome, str]] = [
    ("await db.orders.update(1, { org_id: 'two' })", Outcome.DENIED, "cannot write this column"),
    ("await db.orders.update(3, { state: 'x' })", Outcome.SCRIPT_ERROR, "no such row"),
    ("await db.orders.find({ org_id: 'two' })", Outcome.SCRIPT_ERROR, "has no column 'org_id'"),
    ("for (let n = 0; n < 101; n++) await db.orders.count()", Outcome.CALL_LIMIT, "queries is 100"),
    (
        "await mail.send({ to: 'x@example.com\\r\\nBcc: y@example.com', subject: 's', text: 't' })",
        Outcome.SCRIPT_ERROR,
        "an address",
    ),
    ("await db.orders.insert({ state: Infinity })", Outcome.SCRIPT_ERROR, "Infinity"),
]


@pytest.mark.parametrize(("code", "outcome", "message"), REFUSALS, ids=[code[:40] for code, _, _ in REFUSALS])
def test_refusals_name_the_line(shop: Shop, code: str, outcome: Outcome, message: str) -> None:
    finished = run(shop, f"export default async ({{ db, mail }}) => {{\n\n  {code};\n}}")
    assert finished.error is not None
    assert (finished.outcome, finished.error.line) == (outcome, 3), finished.error
    assert message in finished.error.message
    said = finished.error.message + finished.error.stack
    assert not any(word in said for word in ("Traceback", "sqlite", "SELECT", "lodger", ".py", 'File "'))


def test_writing_is_bounded_by_rows_and_not_by_host_calls(shop: Shop) -> None:
    many = "for (let n = 0; n < 999; n++) await kv.set('k' + n, n);\nreturn (await kv.list({ limit: 500 })).length"
    finished = run(shop, many)
    assert (finished.outcome, finished.result, finished.usage.host_calls) == (Outcome.OK, "500", 1)
    more = run(shop, "for (let n = 0; n < 1001; n++) await kv.set('k', n)")
    assert more.outcome is Outcome.CALL_LIMIT
    assert more.error is not None
    assert "rows_written is 1000" in more.error.message
    flood = run(shop, "for (;;) await kv.set('k' + 'x'.repeat(600), 1).catch(() => 0)")
    assert flood.outcome is Outcome.CALL_LIMIT


REFUSED = """[() => Instant.from('2026-02-30T00:00:00Z'), () => Instant.from('x'), () => now.add({ days: 0.5 }), () => now.add({ day: 1 }),
  () => now.add({ years: 300000 }), () => now.add({}), () => now.add({ days: 1, hours: -1 }),
  () => now < 5, () => now - now, () => Instant.from(5),
  () => new Instant(5)].map((f) => { try { f(); return null } catch (e) { return e.name } })"""
OLD = """["minus", "plus", "toISODate", "toISO", "toLocal", "toDate", "startOf", "year", "weekday",
  "timezone", "epochMicroseconds", "getTime"].map((name) => {
  try { return String(now[name]) } catch (error) { return error instanceof TypeError && error.message } })"""
INSTANTS: list[tuple[str, Any]] = [
    ("now.toZonedDateTimeISO().toString()", "2026-11-18T12:06:40+01:00[Europe/Berlin]"),
    ("now.toZonedDateTimeISO('Asia/Tokyo').hour", 20),
    ("Instant.from('2026-03-28T02:30:00+01:00').add({ days: 1 })", "2026-03-29T01:30:00Z"),
    ("Instant.from('2026-10-24T02:30:00+02:00').add({ days: 1 })", "2026-10-25T00:30:00Z"),
    ("Instant.from('2027-01-31T12:00:00Z').add({ months: 1 })", "2027-02-28T12:00:00Z"),
    ("Instant.from('2024-02-29T12:00:00Z').subtract({ years: 1 })", "2023-02-28T12:00:00Z"),
    ("Instant.from('2026-11-18T12:00:00.123456789Z').add({ microseconds: 1, nanoseconds: 211 })", "2026-11-18T12:00:00.123458Z"),
    ("now.add('P1DT1H').equals(now.add(Temporal.Duration.from({ days: 1, hours: 1 })))", True),
    ("Instant.from('1969-12-31T23:59:59.999999Z').epochNanoseconds.toString()", "-1000"),
    ("Instant.from('0001-01-01T00:00:00Z')", "0001-01-01T00:00:00Z"),
    ("Instant.from('9999-12-31T23:59:59.999999Z')", "9999-12-31T23:59:59.999999Z"),
    ("[new Instant(1500n), Instant.fromEpochMilliseconds(-1), Instant.fromEpochNanoseconds(7n)]",
     ["1970-01-01T00:00:00.0000015Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000000007Z"]),
    ("[`${now}`, JSON.stringify(now), now.toString({ smallestUnit: 'minute' }), now.round('hour'), now.epochMilliseconds]",
     ["2026-11-18T11:06:40Z", '"2026-11-18T11:06:40Z"', "2026-11-18T11:06Z", "2026-11-18T11:00:00Z", 1_795_000_000_000]),
    ("[now.since(now.subtract({ minutes: 5 })), now.until(Temporal.Instant.from('2026-11-19T00:00Z'), { largestUnit: 'hours' })]",
     ["PT300S", "PT12H53M20S"]),
    ("[Instant.compare(now, now.add({ seconds: 1 })), Temporal.Instant.compare(now, now), Temporal.Instant.from(now).equals(now)]",
     [-1, 0, True]),
    (REFUSED, ["RangeError", "RangeError", "RangeError", "TypeError", "RangeError", "TypeError", "RangeError",
     "TypeError", "TypeError", "TypeError", "TypeError"]),
    (OLD, [f"an Instant has no {old}: use {new}" for old, new in (
        ("minus", "subtract(duration)"), ("plus", "add(duration)"), ("toISODate", "toZonedDateTimeISO().toPlainDate().toString()"),
        ("toISO", "toString()"), ("toLocal", "toZonedDateTimeISO().toPlainDateTime().toString()"),
        ("toDate", "epochMilliseconds, in new Date(…)"),
        ("startOf", "toZonedDateTimeISO().startOfDay(), with .with({ day: 1 }) or .subtract({ days: … }) before it for months and weeks"),
        ("year", "toZonedDateTimeISO().year"), ("weekday", "toZonedDateTimeISO().dayOfWeek"),
        ("timezone", "toZonedDateTimeISO().timeZoneId"),
        ("epochMicroseconds", "epochNanoseconds"), ("getTime", "epochMilliseconds"),
    )]),
]  # fmt: skip


def test_instants(shop: Shop) -> None:
    source = "return [" + ",\n".join(code for code, _ in INSTANTS) + "]"
    for (code, wanted), got in zip(INSTANTS, result(shop, source), strict=True):
        assert got == wanted, code


DATA = """
const kept = await db.moments.insert({ at: now, text: now.toString(), ms: now.epochMilliseconds, n: 5 });
await db.moments.insert({ at: now.add({ days: 1 }), n: 6 });
const count = (filter) => db.moments.count(filter);
const said = async (work) => { try { await work(); return null } catch (error) { return error.message } };
return [
  await count({ at: now.toString() }), await count({ at: { lte: now.epochMilliseconds } }),
  await count({ at: { gt: now.epochMilliseconds } }),
  await count({ at: { ne: now.toString() } }), await count({ at: { in: [now.toString()] } }),
  await count({ at: { gt: "2020-01-01T00:00:00+02:00" } }),
  await count({ at: { lt: "2020-01-01T00:00:00z" } }),
  await count({ at: { gt: "2020-01-01" } }), await count({ at: { gte: "2020-01-01 10:00" } }),
  await count({ text: { lte: now.toString() } }),
  await count({ ms: now.epochMilliseconds }), await count({ text: { gt: "zz" } }), await count({ n: { gt: 99 } }),
  (await db.mixed.insertMany([{ at: now }, { at: 5 }]), await db.mixed.count({ at: { gt: 99 } })),
  ...(await Promise.all([
    { gt: "yesterday" }, { lt: "" }, { lt: 5 }, { gt: now.epochMilliseconds / 1000 }, { lte: true }, { contains: "20" }, "11/27/2020",
    { in: ["27.11.2020", "x"] }, { gt: "2020-13-45" }, { gte: "2020-01-01", lt: "tomorrow" },
  ].map((at) => said(() => count({ at }))))),
  await said(() => db.moments.first({ at: { gt: "yesterday" } })),
  await said(() => db.moments.updateMany({ at: { gt: "yesterday" } }, { n: 1 })),
  await said(() => db.moments.deleteMany({ and: [{ n: 5 }, { at: { gt: "yesterday" } }] })),
  await said(() => count({ n: { $gt: 1 } })), await said(() => count({ n: { like: 1 } })),
  await said(() => count({ n: { greaterThan: 1 } })),
  await said(() => count({ $or: [{ n: 1 }] })), await said(() => count({ AND: [] })), await said(() => count({ n: 5n })),
  await said(() => db.moments.findOne({})), await said(() => db.moments.save({})), await said(() => db.moments.countDocuments({})),
  await said(() => db.moments.insert({ "addr.zip": 5 })), await said(() => db.moments.upsert({ id: kept.id, "addr.zip": 5 })),
  await said(() => db.moments.insert({ a: [{ "b.c": 1 }] })), await said(() => db.moments.update(kept.id, { n: { "b.c": 1 } })),
  await said(() => db.moments.insert({ a: { b: [1, 5n] } })), await said(() => kv.set("k", { a: NaN })),
  await said(() => kv.set("k")), await said(() => kv.swap("k", null)),
]
"""
NO_INSTANT = (
    "at holds instants, which no such text or number matches; compare it with an instant (now.subtract(…)), a Date, "
    "text such as 2026-11-27T08:00:00Z or milliseconds since 1970"
)
OPERATORS = "(the operators are eq, ne, lt, lte, gt, gte, contains, startsWith, in, notIn, exists, has, hasAny, hasAll)"
DOTTED = "the name of a field has no dot: write { addr: { zip: … } } for addr.zip"
NESTED = (
    "the name of a field has no dot, and b.c has one: a path would never find it; "
    "write objects in each other, or store JSON.stringify(value)"
)


def test_filters_find_instants_and_names_of_other_libraries_are_answered(shop: Shop) -> None:
    assert result(shop, DATA) == [
        1, 1, 1, 1, 1, 2, 0, 2, 2, 1, 1, 0, 0, 0, *[NO_INSTANT] * 13,
        f"there is no operator $gt; did you mean gt? {OPERATORS}", f"there is no operator like; did you mean contains? {OPERATORS}",
        f"there is no operator greaterThan; did you mean gt? {OPERATORS}",
        "there is no operator $or; did you mean or? (a filter joins conditions by and, or, not)",
        "there is no operator AND; did you mean and? (a filter joins conditions by and, or, not)",
        "n: a BigInt cannot be stored; hand over Number(value) or String(value)",
        "a set of db has no findOne: use first(filter)", "a set of db has no save: use upsert(values), or update(id, changes)",
        "a set of db has no countDocuments: use count(filter)", DOTTED, DOTTED, NESTED, NESTED,
        "values.a.b[1]: a BigInt cannot be stored; hand over Number(value) or String(value)",
        "a: NaN cannot be stored; hand over null or a number",
        *(f"kv.{name} needs a value, and was given undefined; hand over null for none" for name in ("set", "swap")),
    ]  # fmt: skip


LISTS = """
const at = Instant.from("2026-01-01T00:00:00Z");
await db.things.insertMany([
  { id: "a", tags: ["red", "new"], ns: [1, 10], at: [at] }, { id: "b", tags: "red", ns: 5 },
  { id: "c", tags: [], ns: [null] }, { id: "d", tags: null },
  { id: "e", tags: ["\\u{1f600}", "\\uffff", 2, true, at, null] },
]);
const ids = async (filter) => (await db.things.find(filter)).map((row) => row.id).join("");
const said = async (act) => { try { return await act(); } catch (error) { return error.message; } };
return [
  await ids({ tags: "red" }), await ids({ tags: { ne: "red" } }), await ids({ tags: { has: "red" } }),
  await ids({ tags: { in: ["new", 2] } }),
  await ids({ tags: { hasAny: ["new", true] } }), await ids({ tags: { hasAll: ["red", "new"] } }),
  await ids({ not: { tags: { has: "red" } } }),
  await ids({ tags: { contains: "ed" } }), await ids({ tags: { startsWith: "N", ignoreCase: true } }), await ids({ tags: null }),
  await ids({ ns: { gte: 5 } }), await ids({ ns: { exists: true } }), await ids({ at: "2026-01-01T00:00:00Z" }),
  await ids({ tags: { hasAny: [] } }),
  await said(() => ids({ tags: ["red"] })), await said(() => ids({ tags: { has: null } })),
  await said(() => ids({ tags: { hasAny: "red" } })),
  await said(() => db.orders.count({ state: { has: "open" } })), await said(() => ids({ tags: { $elemMatch: "red" } })),
  await db.things.distinct("tags"), await db.things.distinct("ns", { ns: { exists: true } }),
  await said(() => db.things.aggregate({}, { groupBy: "tags" })),
];
"""
THROUGH = """
await db.bills.insertMany([
  { id: "a", lines: [{ sku: "x", q: 1 }, { sku: "y", q: 2, tags: ["hot"] }] }, { id: "b", lines: [{ sku: "z", q: 5, tags: [] }] },
  { id: "c", lines: { sku: "x" } }, { id: "d", lines: [] }, { id: "e", lines: [{ q: null }, 7] },
]);
const ids = async (filter, order) => (await db.bills.find(filter, { order })).map((row) => row.id).join("");
const said = async (act) => { try { return await act(); } catch (error) { return error.message; } };
return [
  await ids({ "lines.sku": "x" }), await ids({ "lines.sku": { ne: "x" } }), await ids({ "lines.sku": { in: ["z", "y"] } }),
  await ids({ "lines.sku": null }), await ids({ "lines.sku": { exists: true } }), await ids({ "lines.q": { gt: 1 } }),
  await ids({ "lines.sku": { startsWith: "X", ignoreCase: true } }), await ids({ "lines.tags": { has: "hot" } }),
  await ids({ "lines.tags": null }), await db.bills.count({ not: { "lines.q": { lt: 3 } } }),
  await db.bills.distinct("lines.sku"), await db.bills.distinct("lines.tags"),
  await said(() => ids({}, "-lines.sku")), await ids({ "lines.sku": null, "lines.q": 7 }, "lines.sku"),
  await said(() => db.bills.sum("lines.q")), await said(() => db.bills.aggregate({}, { groupBy: "lines.sku" })),
  await said(() => db.bills.update("a", { "lines.sku": "q" })), await said(() => db.bills.increment("a", { "lines.q": 1 })),
  await said(() => ids({ "lines.0.sku": "x" })), await said(() => ids({ lines: { sku: "x" } })),
];
"""


def test_conditions_ask_the_elements_of_lists(shop: Shop) -> None:
    assert result(shop, LISTS) == [
        "ab", "cde", "ab", "ae", "ae", "a", "cde", "ab", "a", "d", "ab", "abc", "a", "",
        "tags can be compared with null, true, false, numbers, text and instants; has, hasAny and hasAll ask its lists",
        "'has' takes a value, and none is null", "'hasAny' takes a list of values, and none is null",
        "'has' asks a list in a document, and state is a column",
        f"there is no operator $elemMatch; did you mean has? {OPERATORS}",
        [None, True, 2, "new", "red", "\uffff", "\U0001f600", "2026-01-01T00:00:00Z"], [None, 1, 5, 10],
        "groupBy needs single values, but tags has lists or objects; exclude them, or use distinct",
    ]  # fmt: skip


def test_a_path_enters_the_objects_of_lists(shop: Shop) -> None:
    values = "lists or objects; exclude them"
    assert result(shop, THROUGH) == [
        "ac", "bde", "ab", "de", "abc", "ab", "ac", "a", "cde", 4,
        [None, "x", "y", "z"], [None, "hot"],
        f"order needs single values, but lines.sku has {values} with a filter, or sort the rows in the script", "",
        "sum needs numbers, but lines.q has other values; exclude them with a filter",
        f"groupBy needs single values, but lines.sku has {values}, or use distinct",
        "lines.sku leads through a value that is no object", "the value of lines.q is not a number",
        "a field is a name, or names joined by dots, of letters, digits and _ only; a path enters all elements of a list, without a number",
        f"there is no operator sku; for a value in an object write {{ 'lines.sku': … }} {OPERATORS}",
    ]  # fmt: skip


PATHS = """
const { id } = await db.things.insert({ addr: { zip: 1, city: "X" }, n: 1 });
await db.things.update(id, { "addr.zip": 5, "geo.at.x": 7, n: 2 });
await db.things.increment(id, { "addr.zip": 2, "seen.times": 1 });
await db.things.updateMany({ "addr.zip": 7 }, { "addr.street": "S" });
const said = async (act) => { try { return await act(); } catch (error) { return error.message; } };
return [
  { ...(await db.things.get(id)), id: null }, await db.things.count({ "addr.street": "S", "geo.at.x": 7 }),
  await said(() => db.things.update(id, { "n.x": 1 })), await said(() => db.things.update(id, { "a..b": 1 })),
  await said(() => db.things.increment(id, { "addr.city": 1 })), await said(() => db.things.increment(id, { "a-b.c": 1 })),
];
"""


def test_a_path_in_an_update_changes_the_value_there(shop: Shop) -> None:
    assert result(shop, PATHS) == [
        {"id": None, "n": 2, "addr": {"zip": 7, "city": "X", "street": "S"}, "geo": {"at": {"x": 7}}, "seen": {"times": 1}}, 1,
        "n.x leads through a value that is no object", "the name of a field has no dot: write { a: { .b: … } } for a..b",
        "the value of addr.city is not a number", "a path is names joined by dots, of letters, digits and _ only",
    ]  # fmt: skip


@pytest.fixture
def bare() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.close()


def test_a_script_sees_every_budget_and_what_it_has_used(bare: Shop) -> None:
    found = result(
        bare,
        """export default async function ({ limits, kv, db }) {
          const before = await limits();
          await kv.set("k", 1);
          await db.notes.find({});
          return [before, await limits()];
        }""",
        budgets={"queries": 7},
        storage=(1000, 400),
    )
    before, after = found
    assert set(before["attempt"]) == {spec.name for spec in BUDGETS if spec.attempt is not None} | {"host_calls"}
    assert [each["attempt"]["host_calls"] for each in found] == [
        {"limit": 200, "used": 1, "left": 199},
        {"limit": 200, "used": 3, "left": 197},
    ]
    assert before["attempt"]["queries"] == {"limit": 7, "used": 0, "left": 7}
    assert after["attempt"]["queries"] == {"limit": 7, "used": 1, "left": 6}
    assert after["attempt"]["rows_written"] == {"limit": 1000, "used": 1, "left": 999}
    assert before["tenant"] == {"storage_bytes": {"limit": 1000, "used": 400, "left": 600}}
    assert before["process"]["cpu_ms"] == Limits().cpu_ms


def test_who_lets_it_pass_ends_by_it_with_its_line_and_was_warned(bare: Shop) -> None:
    source = "export default async function ({ kv }) {\n  for (let n = 0; n < 9; n++)\n    await kv.set('k' + n, n);\n}"
    ended = run(bare, source, budgets={"rows_written": 5})
    assert ended.outcome is Outcome.CALL_LIMIT
    assert ended.error is not None
    assert ended.error.line == 3
    assert ended.journal is None
    assert [line.text for line in ended.logs] == ["budget rows_written: 4 of 5 per attempt used"]
    assert ended.nearly == (("rows_written", 5, 4),)


def test_calls_of_the_host_are_warned_of_before_they_end_the_run(bare: Shop) -> None:
    source = "export default async ({ kv }) => { for (let n = 0; n < 30; n++) await kv.get('k' + n); }"
    ended = run(bare, source, limits=Limits(host_calls=10))
    assert ended.outcome is Outcome.CALL_LIMIT
    assert ended.error is not None
    assert "more than 10 host calls" in ended.error.message
    assert [line.text for line in ended.logs] == ["budget host_calls: 8 of 10 per attempt used"]


def test_the_command_line_tells_what_a_tenant_used(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    with Engine.open(str(ledger)) as engine:
        engine.tenants.create("acme", limits={"mails_per_day": 12})
    reported = lodger("tenant", "usage", "acme", "--db", ledger, "--json").json
    rows = {each["budget"]: each for each in reported["budgets"]}
    assert reported["days"] == []
    assert {spec.name for spec in BUDGETS} | {"runs", "cpu_s", "storage_bytes"} == set(rows)
    assert (rows["mails"]["limit"], rows["mails"]["used"], rows["queries"]["limit"]) == (12, 0, None)
    shown = lodger("tenant", "usage", "acme", "--db", ledger).out
    assert "recipients of mails" in shown
    wrong = lodger("tenant", "usage", "acme", "--since", "yesterday", "--db", ledger, "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (1, "day_invalid")


#: FailureCounts each and gives what became of it.
TRIED = """
const tried = async (tries) => {
  const all = {};
  for (const [name, attempt] of Object.entries(tries)) {
    try { all[name] = { is: (await attempt()) ?? null } }
    catch (error) { all[name] = { code: error.code ?? error.name, message: error.message } }
  }
  return all;
};
"""


@pytest.fixture
def stocked() -> Iterator[Shop]:
    made = Shop()
    made.add(orders, *(order("one", n, state="open" if n % 2 else "done", items=n) for n in range(1, 5)))
    yield made
    made.close()


def refusals(stocked: Shop, calls: dict[str, str]) -> dict[str, dict[str, object]]:
    """Make these calls in one script; return what each of them was refused with."""
    tries = ", ".join(f"{name!r}: () => {call}" for name, call in calls.items())
    source = f"{TRIED} export default async ({{ db, kv, mail, events, fetch, changes }}) => tried({{ {tries} }})"
    found: dict[str, dict[str, object]] = result(stocked, source)
    return found


def test_undefined_in_a_filter_chooses_nothing(stocked: Shop) -> None:
    found = refusals(
        stocked,
        {
            "find": "db.orders.find({ state: undefined })",
            "first": "db.orders.first({ state: undefined })",
            "count": "db.things.count({ customer: undefined })",
            "sum": "db.orders.sum('items', { state: { ne: undefined } })",
            "aggregate": "db.orders.aggregate({ or: [{ state: undefined }] }, { sum: 'items' })",
            "delete": "db.orders.deleteMany({ state: undefined })",
            "update": "db.orders.updateMany({ state: { in: ['open', undefined] } }, { note: 'x' })",
            "things": "db.things.deleteMany({ customer: undefined })",
        },
    )
    assert {name: each.get("code") for name, each in found.items()} == dict.fromkeys(found, "filter_undefined")
    assert all("state" in str(each["message"]) or "customer" in str(each["message"]) for each in found.values())


def test_options_that_no_call_has_are_refused_with_the_right_name(stocked: Shop) -> None:
    calls = {
        "db.orders.find({}, { skip: 5 })": "offset",
        "db.orders.find({}, { sort: 'id' })": "order",
        "db.orders.find({}, { orderBy: 'id' })": "order",
        "db.orders.find({}, { columns: ['id'] })": "order, limit, cursor, include, select, offset",
        "db.orders.first({}, { limit: 2 })": "order, include, select",
        "db.orders.distinct('state', {}, { limit: 2 })": "it has none",
        "db.orders.each({}, { limit: 2 }).next()": "order, include, select",
        "db.orders.find({}, { Limit: 5 })": "limit",
        "db.orders.get(1, { chekc: true })": "check",
        "db.orders.count({}, { limit: 1 })": "it has none",
        "db.orders.aggregate({}, { group: 'state' })": "groupBy",
        "db.orders.aggregate({}, { sums: 'items' })": "sum",
        "db.orders.deleteMany({}, { al: true })": "all",
        "db.orders.updateMany({}, { note: 'x' }, { ALL: true })": "all",
        "db.things.upsert({ id: 'a' }, { unique: 'id' })": "on",
        "db.orders.sum('items', {}, { by: 'x' })": "it has none",
        "kv.set('a', 1, { ttl: 60 })": "ttlSeconds",
        "kv.get('a', { won: true })": "own",
        "kv.list({ prefx: 'a' })": "prefix",
        "kv.swap('a', 1, 2, { ttlseconds: 5 })": "ttlSeconds",
        "kv.add('a', 1, { ttl: 1 })": "own",
        "kv.delete('a', { x: 1 })": "own",
        "mail.send({ to: 'a@one.example', subject: 'x', body: 'y' })": "text",
        "mail.send({ to: 'a@one.example', subject: 'x', text: 'y', from: 'b@one.example' })": "senderName",
        "fetch('https://example.com/', { timeout: 5 })": "signal",
        "fetch('https://example.com/', { method: 'POST', json: {} })": "body",
        "fetch('https://example.com/', { header: {} })": "headers",
        "new Response('', { statuscode: 201 })": "status, statusText, headers",
        "events.emit('order.paid', {}, { delay: 5 })": "it has none",
        "changes('orders', { since: 'now' })": "from",
    }
    found = refusals(stocked, {str(number): call for number, call in enumerate(calls)})
    for (call, words), reported in zip(calls.items(), found.values(), strict=True):
        assert reported.get("code") == "option_unknown", (call, reported)
        assert words in str(reported["message"]), (call, reported)


def test_options_in_the_place_of_the_filter_are_refused_unless_they_can_only_be_columns(stocked: Shop) -> None:
    refused = {
        "db.things.aggregate({ groupBy: 'state' })": "aggregate({}, { groupBy: … })",
        "db.things.aggregate({ state: 'new', sum: ['items'] })": "aggregate({}, { sum: … })",
        "db.things.find({ limit: 1 })": "find({}, { limit: … }); for a filter by a field named limit write {} after it",
        "db.things.first({ order: '-n', select: 'n' })": "first({}, { order: … })",
        "db.things.first({ order: { n: 'desc' } })": "first({}, { order: … })",
        "db.things.each({ select: 'n' }).next()": "each({}, { select: … })",
        "db.things.deleteMany({ all: true })": "deleteMany({}, { all: … }); for a filter by a field named all write {} after it",
        "db.things.updateMany({ all: true }, { n: 1 })": "updateMany({}, changes, { all: … })",
        "db.orders.find({ limit: 1 })": "has no column 'limit'",
    }
    found = refusals(stocked, {str(number): call for number, call in enumerate(refused)})
    for (call, words), said in zip(refused.items(), found.values(), strict=True):
        assert words in str(said["message"]), (call, said)
    taken = (
        "db.things.find({ limit: 1 }, {})", "db.things.find({ limit: { gt: 1 } })", "db.things.find({ offset: 1, state: 'new' })",
        "db.things.find()",
    )  # fmt: skip
    assert all(said == {"is": []} for said in refusals(stocked, {each: each for each in taken}).values())
    assert refusals(stocked, {"sum": "db.things.aggregate({ sum: 5 }, {})"}) == {"sum": {"is": [{"count": 0}]}}


def test_two_terms_of_groupby_with_one_name_are_refused(stocked: Shop) -> None:
    terms = ("[{ day: 'at' }, { month: 'at' }]", "['at', { day: 'at' }]", "['n', 'n']")
    found = refusals(stocked, {each: f"db.things.aggregate({{}}, {{ groupBy: {each} }})" for each in terms})
    assert all("twice" in str(said["message"]) for said in found.values()), found


def test_a_value_deep_in_a_row_is_refused_with_the_line_of_the_call(stocked: Shop) -> None:
    deep = "{ a: " * 30 + "new ArrayBuffer(1)" + " }" * 30
    for value, words in (
        (deep, "an ArrayBuffer cannot be stored"),
        ("(() => { const o = {}; o.o = o; return o })()", "contains itself"),
    ):
        error = run(stocked, f"export default async ({{ db }}) => {{\n  await db.things.insert({value});\n}}").error
        assert error is not None
        assert (error.line, words in error.message) == (2, True), error


def test_an_empty_list_of_attachments_is_none_and_a_secret_in_one_is_refused(stocked: Shop) -> None:
    call = "mail.send({ to: 'a@one.example', subject: 'x', text: 'y', attachments: %s })"
    given = {"none": "[]", "secret": "[{ name: 'a.txt', content: 'key {{secret:KEY}}' }]"}
    said = refusals(stocked, {name: call % each for name, each in given.items()})
    assert "messageId" in str(said["none"]["is"])
    assert "handle of a secret" in str(said["secret"]["message"])


def test_known_options_and_none_are_taken(stocked: Shop) -> None:
    attempt = stocked.attempt(budgets={"rows_written": 2000})
    for start in (0, 500, 1000):
        ask(
            attempt,
            "db.insertMany",
            set="things",
            rows=[{"id": f"t{n:04}", "n": n} for n in range(start, min(start + 500, 1203))],
        )
    settle(stocked, attempt)
    found = refusals(
        stocked,
        {
            "find": "db.orders.find({}, { order: '-id', limit: 1, cursor: undefined }).then((rows) => rows[0].id)",
            "null": "db.orders.find({}, null).then((rows) => rows.length)",
            "offset": "db.orders.find({}, { order: '-id', offset: 1, limit: 2, select: 'items' }).then((rows) => rows)",
            "beyond": "db.orders.find({}, { offset: 600 }).then((rows) => [rows.length, rows.cursor])",
            "wrong offset": "db.orders.find({}, { offset: -1 })",
            "distinct": "db.orders.distinct('state', { items: { gt: 1 } })",
            "each": "(async () => { const seen = []; for await (const row of db.things.each({}, { select: 'n' })) seen.push(row.n); "
                    "return [seen.length, seen.at(-1)]; })()",
            "set": "kv.set('a', 1, { ttlSeconds: 60, own: false })", "get": "kv.get('a', undefined)",
        },
    )  # fmt: skip
    assert [each.get("is", each.get("code")) for each in found.values()] == [
        4, 4, [{"id": 3, "items": 3}, {"id": 2, "items": 2}], [0, None], "RangeError", ["done", "open"], [1203, 1202], None, 1,
    ]  # fmt: skip


def test_log_lines_show_values_of_the_script_api(stocked: Shop) -> None:
    source = """
    export default async () => {
      console.log(new Headers({ 'X-B': '2' }), { at: Instant.from('2026-11-25T09:00:00Z') });
      console.log({ [Symbol.toStringTag]: 'Instant' }, { [Symbol.toStringTag]: 'Headers', a: 1 });
    };
    """
    logs = [line.text for line in run(stocked, source).logs]
    forged = "{ [Symbol(Symbol.toStringTag)]: 'Instant' } { a: 1, [Symbol(Symbol.toStringTag)]: 'Headers' }"
    assert logs == ["Headers { 'x-b': '2' } { at: 2026-11-25T09:00:00Z }", forged]


def test_values_that_json_would_empty_are_refused_where_they_are_handed_over(stocked: Shop) -> None:
    found = refusals(
        stocked,
        {
            "map": "db.things.insert({ of: new Map([[1, 2]]) })",
            "set": "kv.set('a', new Set([1]))",
            "promise": "kv.set('a', kv.get('b'))",
            "error": "events.emit('a.b', { e: new Error('x') })",
            "floats": "kv.set('a', new Float64Array(2))",
            "headers": "kv.set('a', new Headers())",
            "body": "new Request('https://example.com/', { method: 'POST', body: { a: 1 } })",
            "list": "new Response([1])",
        },
    )
    assert {name: each.get("code") for name, each in found.items()} == dict.fromkeys(found, "TypeError")
    value = "{ at: new Date(0), bytes: new Uint8Array(2), url: new URL('https://example.com/x'), none: {} }"
    kept = refusals(
        stocked, {"set": f"kv.set('a', {value})", "get": "kv.get('a').then((v) => [v.url, v.none, v.bytes.length])"}
    )
    assert kept["get"] == {"is": ["https://example.com/x", {}, 2]}


RUNTIMES = ("quickjs", "quickjs-native")


@pytest.fixture(params=RUNTIMES)
def js(request: pytest.FixtureRequest) -> Iterator[Callable[..., Report]]:
    reader = SyntaxChecker(lambda: Pool(runtime=request.param, size=1, cores=1, profile="trusted"))

    def run(source: str, **limits: int) -> Report:
        return reader.read(Job(Bundle({"main.js": source}), limits=Limits(**limits), tenant="acme"))

    yield run
    reader.close()


def test_a_forged_stack_names_no_place_outside_the_script(js: Callable[..., Report]) -> None:
    forged = "    at read (/etc/passwd:1:2)\\n    at x (other.js:9:9)\\n    at y (main.js:9000:1)\\nroot:x:0:0\\n    at f (main.js:2:3)"
    found = js(f'const e = new Error("mine");\ne.stack = "{forged}";\nthrow e').error
    assert found is not None
    assert (found.file, found.line, found.stack) == ("main.js", 2, "    at f (main.js:2:3)")
    alone = js('throw Object.assign(new Error("mine"), { stack: "    at read (/etc/passwd:1:2)" })').error
    assert alone is not None
    assert (alone.file, alone.line, alone.column, alone.stack) == (None, None, None, "")
