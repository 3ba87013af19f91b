"""What a script says and no call knows is refused, whole scripts in real walls: options, undefined in filters, values that JSON empties."""

from collections.abc import Iterator

import pytest
from tests.e2e.script_runs import result, run
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop, order, orders

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
def shop() -> Iterator[Shop]:
    made = Shop()
    made.add(orders, *(order("one", n, state="open" if n % 2 else "done", items=n) for n in range(1, 5)))
    yield made
    made.close()


def refusals(shop: Shop, calls: dict[str, str]) -> dict[str, dict[str, object]]:
    """Make these calls in one script; return what each of them was refused with."""
    tries = ", ".join(f"{name!r}: () => {call}" for name, call in calls.items())
    source = f"{TRIED} export default async ({{ db, kv, mail, events, fetch, changes }}) => tried({{ {tries} }})"
    found: dict[str, dict[str, object]] = result(shop, source)
    return found


def test_undefined_in_a_filter_chooses_nothing(shop: Shop) -> None:
    found = refusals(
        shop,
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


def test_every_row_needs_saying(shop: Shop) -> None:
    bare = refusals(
        shop,
        {"delete": "db.orders.deleteMany()", "null": "db.orders.deleteMany(null)", "empty": "db.orders.deleteMany({})",
         "update": "db.orders.updateMany(undefined, { note: 'x' })", "count": "db.orders.count()"},
    )  # fmt: skip
    assert [each.get("code", each.get("is")) for each in bare.values()] == ["filter_missing"] * 4 + [4]
    said = refusals(
        shop,
        {
            "update": "db.orders.updateMany({}, { note: 'x' }, { all: true })",
            "delete": "db.orders.deleteMany({}, { all: true })",
        },
    )
    assert said == {"update": {"is": 4}, "delete": {"is": 4}}


def test_options_that_no_call_has_are_refused_with_the_right_name(shop: Shop) -> None:
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
    found = refusals(shop, {str(number): call for number, call in enumerate(calls)})
    for (call, words), reported in zip(calls.items(), found.values(), strict=True):
        assert reported.get("code") == "option_unknown", (call, reported)
        assert words in str(reported["message"]), (call, reported)


def test_known_options_and_none_are_taken(shop: Shop) -> None:
    attempt = shop.attempt(budgets={"rows_written": 2000})
    for start in (0, 500, 1000):
        ask(
            attempt,
            "db.insertMany",
            set="things",
            rows=[{"id": f"t{n:04}", "n": n} for n in range(start, min(start + 500, 1203))],
        )
    settle(shop, attempt)
    found = refusals(
        shop,
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


def test_log_lines_show_values_of_the_script_api(shop: Shop) -> None:
    source = """
    export default async () => {
      console.log(new Headers({ 'X-B': '2' }), { at: Instant.from('2026-11-25T09:00:00Z') });
      console.log({ [Symbol.toStringTag]: 'Instant' }, { [Symbol.toStringTag]: 'Headers', a: 1 });
    };
    """
    logs = [line.text for line in run(shop, source).logs]
    forged = "{ [Symbol(Symbol.toStringTag)]: 'Instant' } { a: 1, [Symbol(Symbol.toStringTag)]: 'Headers' }"
    assert logs == ["Headers { 'x-b': '2' } { at: 2026-11-25T09:00:00Z }", forged]


def test_values_that_json_would_empty_are_refused_where_they_are_handed_over(shop: Shop) -> None:
    found = refusals(
        shop,
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
        shop, {"set": f"kv.set('a', {value})", "get": "kv.get('a').then((v) => [v.url, v.none, v.bytes.length])"}
    )
    assert kept["get"] == {"is": ["https://example.com/x", {}, 2]}
