"""The service and the dry run as a platform engineer meets them: real processes, real walls, a table of the platform's."""

import json
import shutil
import sqlite3
from importlib import import_module
from pathlib import Path

import pytest
from tests.e2e import command
from tests.e2e.ready import lodger
from tests.e2e.serving import up

from lodger.engine.service.platform_file import SECTIONS

SHOP = """
from sqlalchemy import Column, Integer, MetaData, String, Table

lamps = Table("lamps", MetaData(), Column("id", Integer, primary_key=True),
              Column("house", String, nullable=False), Column("lit", Integer, nullable=False))


def expose(engine):
    engine.expose(lamps, tenant_column="house", write=["lit"], insert=False, delete=False)
"""
LIGHT = """
export default async function ({ db, kv }) {
  const dark = await db.lamps.find({ lit: 0 });
  for (const lamp of dark) await db.lamps.update(lamp.id, { lit: 1 });
  await kv.add("rounds", 1);
  return { lit: dark.length };
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a ledger, a table of the platform's, a tenant and its script."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "light.js").write_text(LIGHT)
    place = str(tmp_path / "ledger.db")
    assert lodger("tenant", "create", "oak", "--grant", "sets:write", "--db", place).code == 0
    assert lodger("script", "put", "oak", "light", str(tmp_path / "light.js"), "--db", place).code == 0
    with sqlite3.connect(place) as connection:
        connection.execute("create table lamps (id integer primary key, house text not null, lit integer not null)")
        connection.executemany("insert into lamps (house, lit) values (?, 0)", [("oak",), ("oak",), ("elm",)])
    connection.close()
    return tmp_path


def lamps(folder: Path) -> list[tuple[str, int]]:
    """Return the rows of the platform's table that scripts have changed."""
    connection = sqlite3.connect(folder / "ledger.db")
    try:
        return connection.execute("select house, lit from lamps order by id").fetchall()
    finally:
        connection.close()


def test_a_dry_run_shows_and_changes_nothing(folder: Path) -> None:
    place = str(folder / "ledger.db")
    ran = lodger("script", "dry-run", "oak", "light", "--expose", "shop:expose", "--db", place, "--json", cwd=folder)
    assert ran.code == 0, ran.err
    body = json.loads(ran.out)
    assert body["result"] == {"lit": 2}
    assert [effect["effect"] for effect in body["effects"]] == ["update", "update", "kv.add"]
    assert lamps(folder) == [("oak", 0), ("oak", 0), ("elm", 0)]
    assert json.loads(lodger("action", "list", "oak", "--db", place, "--json").out)["actions"] == []
    ran = lodger("script", "dry-run", "oak", "light", "--expose", "shop:expose", "--db", "ledger.db", cwd=folder)
    assert "~ lamps 1" in ran.out
    assert "lit: 0 → 1" in ran.out


def test_up_runs_what_is_due_and_stops_when_told(folder: Path) -> None:
    place = str(folder / "ledger.db")
    made = lodger(
        "schedule", "create", "oak", "evening", "--script", "light", "--rule", "every 1s", "--db", place,
        LODGER_MIN_INTERVAL_S="1",
    )  # fmt: skip
    assert made.code == 0, made.err
    with up(folder, "--role", "node", "--expose", "shop:expose") as node:
        finished = node.kind("finished")
        assert node.end() == 0
    assert (finished["tenant_id"], finished["outcome"]) == ("oak", "ok")
    assert lamps(folder) == [("oak", 1), ("oak", 1), ("elm", 0)]


@pytest.mark.parametrize("place", ["nothere:expose", "shop", "shop:nothing", ":", "shop:SHOP"])
def test_what_is_no_function_is_said(tmp_path: Path, place: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    ran = lodger("up", "--expose", place, "--db", "ledger.db", "--json", cwd=tmp_path)
    assert ran.code == 2
    assert json.loads(ran.out)["error"]["code"] == "expose_unknown"


@pytest.mark.parametrize(("role", "replaced"), [("all", False), ("api", True)])
def test_up_ends_when_its_ledger_is_another_file(
    folder: Path, role: str, replaced: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    place = folder / "ledger.db"
    with up(folder, "--role", role, LODGER_LEASE_S="2") as service:
        service.kind("listening")
        before = place.stat().st_ino
        place.rename(folder / "away.db")
        if replaced:
            shutil.copy(folder / "away.db", place)
        assert service.process.wait(120) == 1
    assert "ledger_replaced" in f"{list(service.lines.queue)} {capfd.readouterr().err}"
    assert place.exists() == replaced, "no empty ledger takes the place"
    assert not replaced or place.stat().st_ino != before


def test_a_command_knows_every_section_of_the_platforms_file(tmp_path: Path) -> None:
    import_module("lodger.engine.features")
    assert len(SECTIONS) > 3, "wings have some"
    (tmp_path / "lodger.toml").write_text("".join(f"[{name}]\nmisspelt = 1\n" for name in SECTIONS))
    said = command.lodger("up", "--role", "node", cwd=tmp_path)
    unknown = [name for name in SECTIONS if f"there is no key '{name}'" in said.err]
    assert (said.code, unknown, "lodger.toml:2" in said.err) == (1, [], True), said
