"""``limits()``, refused calls and warnings as scripts meet them, in real walls; what the command line tells of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.ready import lodger
from tests.e2e.script_runs import result, run
from tests.unit.data.shop import Shop

from lodger.engine.policy.budget_table import BUDGETS
from lodger.engine.sync import Engine
from lodger.sandbox.limits import Limits
from lodger.sandbox.outcome import Outcome


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.close()


def test_a_script_sees_every_budget_and_what_it_has_used(shop: Shop) -> None:
    found = result(
        shop,
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


def test_who_lets_it_pass_ends_by_it_with_its_line_and_was_warned(shop: Shop) -> None:
    source = "export default async function ({ kv }) {\n  for (let n = 0; n < 9; n++)\n    await kv.set('k' + n, n);\n}"
    ended = run(shop, source, budgets={"rows_written": 5})
    assert ended.outcome is Outcome.CALL_LIMIT
    assert ended.error is not None
    assert ended.error.line == 3
    assert ended.journal is None
    assert [line.text for line in ended.logs] == ["budget rows_written: 4 of 5 per attempt used"]
    assert ended.nearly == (("rows_written", 5, 4),)


def test_calls_of_the_host_are_warned_of_before_they_end_the_run(shop: Shop) -> None:
    source = "export default async ({ kv }) => { for (let n = 0; n < 30; n++) await kv.get('k' + n); }"
    ended = run(shop, source, limits=Limits(host_calls=10))
    assert ended.outcome is Outcome.CALL_LIMIT
    assert ended.error is not None
    assert "more than 10 host calls" in ended.error.message
    assert [line.text for line in ended.logs] == ["budget host_calls: 8 of 10 per attempt used"]


def test_an_author_who_tries_it_is_warned_too(tmp_path: Path) -> None:
    script = tmp_path / "s.js"
    script.write_text(
        """export default async ({ mail }) => {
          const to = Array.from({ length: 40 }, (_, n) => `a${n}@x.example`);
          for (const subject of ["one", "two"]) await mail.send({ to, subject, text: "t" });
        };"""
    )
    reported = lodger("exec", script, "--json").json
    assert reported["logs"] == [{"level": "warn", "text": "budget mails: 80 of 100 per attempt used"}]


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
