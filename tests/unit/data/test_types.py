"""Types for scripts: the table of calls, the functions of a set and the declared types name the same things; a compiler agrees."""

import os
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.unit.data.shop import Shop

from lodger.engine.cli.commands.init import JSCONFIG, NEW_FOLDER
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.typescript import GIVEN, SAID, declarations
from lodger.engine.data.values.kinds import Kind
from lodger.stdlib import declarations as of_scripts
from lodger.stdlib.calls import CALLS

TYPES = files("lodger.stdlib") / "types"
#: Calls of the table that scripts make by another word.
ELSEWHERE = {"db.changes": ("changes.d.ts", "changes")}


@pytest.mark.parametrize("name", [name for name in CALLS if name.partition(".")[0] in ("db", "kv", "mail")])
def test_every_call_is_declared_with_its_options(name: str) -> None:
    kind, _, verb = name.partition(".")
    file, verb = ELSEWHERE.get(name, (f"{kind}.d.ts", verb))
    text = (TYPES / file).read_text()
    declared = re.search(rf"(?:^|\s){verb}(?:<[^>]*>)?\((.*?)\): Promise<", text, re.DOTALL)
    assert declared, f"{file} does not declare {verb}"
    said = declared.group(1) + (text if kind in ("mail", "kv") else "")
    for argument in CALLS[name].arguments:
        if argument not in ("set", "line"):
            assert re.search(rf"\b{argument}\b", said), f"{verb} does not take {argument} in {file}"


def test_every_kind_has_its_type() -> None:
    assert set(GIVEN) == set(SAID) == set(Kind)


def exposed(shop: Shop) -> str:
    links = {name: dict(about["links"]) for name, about in shop.datasets.described().items()}
    return declarations(shop.datasets, links)


def test_sets_are_declared_column_by_column(bare: Shop) -> None:
    text = exposed(bare)
    for line in (
        "  serial: string | null;", "  total: string | null;", "  items: number;", "  modified: Instant | null;", "  extra: any;",
        "  blob: Uint8Array | null;", "  customer?: CustomersRow | null;", "  serial?: string | number | bigint | null;",
        "  state: string;",
        "  readonly orders: Rows<OrdersRow, OrdersValues>;", "  readonly customers: Rows<CustomersRow, CustomersValues>;",
    ):  # fmt: skip
        assert line in text, line
    assert "org_id" not in text
    assert "audit" not in text
    choices = Datasets()
    choices.expose(
        sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("org", sa.Integer),
                 sa.Column("size", sa.Enum("s", 'l"', name="size"), nullable=False)), tenant_column="org",
    )  # fmt: skip
    assert '  size: "s" | "l\\"";' in declarations(choices, {})


GOOD = """
export default async function ({ db, kv, mail, changes, action, now }) {
  const open = await db.orders.find({ state: "open", modified: { lt: now.subtract({ days: 1 }) } }, { limit: 10, include: "customer" });
  for (const order of open) {
    const email = order.customer?.email ?? "nobody";
    await db.orders.update(order.id, { total: "12.50", serial: 5n, note: email });
    await kv.add("seen", order.items);
  }
  await db.orders.insertMany([{ state: "new", items: 1 }]);
  await db.customers.upsert({ email: "a@x" }, { on: "email" });
  const seen = await changes("orders", { limit: 5 });
  await db.anything.insert({ free: ["as", "air"] });
  return { more: seen.more, kinds: seen.map((each) => each.kind), page: open.cursor };
}
"""
#: What an editor is to find wrong, each with the line that it is on.
WRONG = {
    "await db.orders.update(1, { org_id: 2 });": "org_id",
    "(await db.orders.get(1))?.total.toFixed(2);": "toFixed",
    "await db.orders.insert({ state: 5, items: 1 });": "number",
    "await db.orders.insert({ items: 1 });": "state",
    'await changes("orders", { from: "tomorrow" });': "tomorrow",
    "await db.orders.find({}, { limits: 5 });": "limits",
}


def compiler() -> str | None:
    return os.environ.get("LODGER_TSC") or shutil.which("tsc")


@pytest.fixture
def folder(tmp_path: Path, bare: Shop) -> Path:
    if compiler() is None:
        pytest.skip(
            "NOT TESTED with the TypeScript compiler: it is not installed (npm install -g typescript, or LODGER_TSC)"
        )
    place = tmp_path / "lodger-types"
    place.mkdir()
    (place / of_scripts.FILE).write_text(of_scripts.text())
    (place / "sets.d.ts").write_text(exposed(bare))
    (tmp_path / JSCONFIG).write_text((NEW_FOLDER / JSCONFIG).read_text("utf-8"))
    return tmp_path


def compiled(folder: Path, source: str) -> str:
    (folder / "main.js").write_text(source)
    done = subprocess.run(
        [str(compiler()), "-p", str(folder / "jsconfig.json")], capture_output=True, text=True, check=False, timeout=100
    )
    return done.stdout


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_compiler_takes_what_is_right_and_finds_what_is_wrong(folder: Path) -> None:
    parameters = "/** @param {Run} run */\n"
    assert compiled(folder, GOOD.replace("export default", parameters + "export default")) == ""
    for line, word in WRONG.items():
        said = compiled(folder, f"{parameters}export default async function ({{ db, changes }}) {{\n  {line}\n}}\n")
        assert "main.js(3," in said, line
        assert word in said, line
