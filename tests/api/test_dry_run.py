"""A dry run over HTTP: every effect as data and as a readable diff, and nothing of it done."""

from typing import Any

import sqlalchemy as sa
from tests.api.running_api import RunningApi
from tests.unit.data.shop import customers, order, orders, platform

SCRIPT = """
export default async ({ db, kv, mail, events }) => {
  const [order] = await db.orders.find({ state: "open" }, { order: "id" });
  await db.orders.update(order.id, { state: "paid", note: null });
  await db.orders.increment(2, { items: 5 });
  await db.orders.delete(3);
  const made = await db.orders.insert({ state: "new", items: 1, total: "12.50" });
  await db.orders.update(made.id, { state: "newer" });
  await db.notes.insert({ id: "n", at: new Date(0) });
  await kv.set("seen", order.id);
  await mail.send({ to: "a@one.example", subject: "Hello", text: "one\\ntwo" });
  await db.orders.increment(1, { items: 9007199254740991 });
  return made.id;
}
"""
DIFF = """
~ orders 1
    state: open → paid
    note: mine → null
~ orders 2
    items: +5 (current value 1)
- orders 3
    state: open
    items: 1152921504606846976
    note: null
    total: null
+ orders (new 1)
    state: new
    items: 1
    total: 12.50
~ orders (new 1)
    state: newer
+ notes n
    id: n
    at: 1970-01-01T00:00:00.000000Z
~ kv seen
    = 1
@ mail to a@one.example: Hello
    one
    two
~ orders 1
    items: +9007199254740991 (current value 1)
"""


def furnish(running_api: RunningApi) -> None:
    engine = running_api.engine
    with engine.context.database.write() as connection:
        platform.create_all(connection)
        for number in (1, 2, 3):
            connection.execute(orders.insert().values(**order("acme", number, note="mine" if number == 1 else None)))
        # More than a script can be given: a page that holds it is refused, a run that removes it is not.
        connection.execute(orders.update().where(orders.c.id == 3).values(items=2**60))
    engine.expose(customers, tenant_column="org_id")
    columns = ["id", "state", "items", "note", "total"]
    engine.expose(orders, tenant_column="org_id", read=columns, write=columns[1:])
    engine.grants.give("acme", "sets:write", "mail:*")
    engine.scripts.put("acme", "sale", SCRIPT.replace('{ state: "open" }', "{ id: 1 }"))


def test_a_dry_run_is_a_readable_diff_and_changes_nothing(lodge: RunningApi) -> None:
    furnish(lodge)
    before = stored_rows(lodge)
    answer = lodge.ask("POST", "/tenants/acme/scripts/sale/dry-run", {}, role="editor", tenant="acme")
    assert answer.status_code == 200, answer.text
    ended = answer.json()
    assert ended["outcome"] == "ok", ended
    assert ended["diff"] == DIFF.strip().split("\n")
    assert [effect["effect"] for effect in ended["effects"]] == [
        "update", "increment", "delete", "insert", "update", "insert", "kv.set", "mail", "increment",
    ]  # fmt: skip
    assert all(effect["line"].startswith("main.js:") for effect in ended["effects"])
    assert stored_rows(lodge) == before


def test_the_sets_that_scripts_may_read_are_listed_with_their_columns(lodge: RunningApi) -> None:
    furnish(lodge)
    lodge.engine.collections.index("acme", "notes", "at")
    found = lodge.ask("GET", "/tenants/acme/sets", role="viewer", tenant="acme").json()
    names = [each["name"] for each in found["items"]] if isinstance(found, dict) else [each["name"] for each in found]
    assert names == ["customers", "notes", "orders"]
    shown = {each.name: each for each in lodge.engine.scripts.sets("acme")}
    assert (shown["orders"].kind, shown["orders"].key, shown["orders"].columns["total"]) == ("table", "id", "decimal")
    assert (shown["notes"].kind, shown["notes"].columns) == ("collection", {})
    lodge.engine.grants.keep("acme", ["kv"])
    assert lodge.engine.scripts.sets("acme") == []


def test_what_failed_shows_no_effects(lodge: RunningApi) -> None:
    furnish(lodge)
    asked = {"source": SCRIPT.replace("return made.id", "throw new Error('no')").replace('{ state: "open" }', "{}")}
    ended: dict[str, Any] = lodge.ask("POST", "/tenants/acme/scripts/sale/dry-run", asked).json()
    assert (ended["outcome"], ended["effects"], ended["diff"]) == ("script_error", [], [])
    assert "range of JavaScript" in ended["error"]["message"]


def stored_rows(running_api: RunningApi) -> list[Any]:
    """Return the rows of the tables that a run of a script could change."""
    with running_api.engine.context.database.read() as connection:
        metadata = sa.MetaData()
        metadata.reflect(
            connection, only=["orders", "lodger_documents", "lodger_kv", "lodger_outbox", "lodger_actions"]
        )
        return [connection.execute(sa.select(sa.func.count()).select_from(each)).all() for each in metadata.sorted_tables] + [
            connection.execute(sa.text("SELECT id, state, items, note FROM orders ORDER BY id")).all()
        ]  # fmt: skip
