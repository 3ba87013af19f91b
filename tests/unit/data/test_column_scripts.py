"""Every type of column through a script in real walls, on every runtime and database: what it writes, what is there, what it reads."""

import asyncio
import datetime as dt
import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.data.gallery import Size, exposed_gallery
from tests.unit.data.shop import ALL, NOW_US, Frozen, Shop

from lodger.engine.core.execution import Claim
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.effects import commit
from lodger.engine.effects.finished import Finished
from lodger.engine.node.executors.host_side import HostSide
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool

TENANT = "9007199254740993"
WRITES = """
export default async ({ db }) => {
  const made = await db.pictures.insert({
    crowd: "select ' \\u{1F600}", mood: "o'clock", size: "SMALL", frame: "oak", letters: "abcd", small: -32768,
    large: "9223372036854775807", price: "12345678901234.5678", exact: "0.125", loose: 1.25, ratio: 0.1, shown: false,
    hung: Instant.from("9999-12-31T23:59:59.999999Z"), local: new Date("2026-11-22T01:02:03.004+01:00"), day: "2024-02-29",
    ref: "FFFFFFFF-ffff-4fff-bfff-ffffffffffff", plain: "00000000-0000-0000-0000-000000000001",
    extra: { a: [1, null, "\\u00fc", 2 ** 53], b: {} }, tags: "text", scan: new Uint8Array([0, 1, 255]),
  });
  await db.pictures.increment(made.id, { small: 32767, large: -1, price: "0.0000000001", loose: 0.5, ratio: 0.2 });
  const seen = await db.pictures.get(made.id);
  const empty = await db.pictures.insert({ small: 7 });
  await db.pictures.update(empty.id, { hung: new Date(0), shown: null });
  return { id: made.id, empty: empty.id, seen: [seen.small, seen.large, seen.price, seen.loose, seen.hung.toString()] };
}
"""
READS = """
export default async ({ db, action }) => {
  const row = await db.pictures.get(action.input.id);
  const kinds = Object.fromEntries(Object.entries(row).map(([name, value]) =>
    [name, value instanceof Instant ? "Instant" : value instanceof Uint8Array ? "Uint8Array" : typeof value]));
  const texts = { ...row, hung: row.hung.toString(), local: row.local.toString(), scan: [...row.scan] };
  const asked = { large: row.large, price: row.price, hung: row.hung, day: row.day, ref: row.ref, scan: row.scan, mood: row.mood };
  const found = [];
  for (const [name, value] of Object.entries(asked)) found.push(await db.pictures.count({ [name]: value }));
  return { kinds, texts, found, all: await db.pictures.count(asked), sum: await db.pictures.sum("price"),
           latest: (await db.pictures.aggregate({}, { max: ["hung", "large", "day"] }))[0].max,
           empty: Object.values(await db.pictures.get(action.input.empty)).filter((value) => value === null).length };
}
"""
KINDS = {
    "id": "string", "crowd": "string", "mood": "string", "size": "string", "frame": "string", "letters": "string",
    "small": "number", "large": "string", "price": "string", "exact": "string", "loose": "string", "ratio": "number",
    "shown": "boolean", "hung": "Instant", "local": "Instant", "day": "string", "ref": "string", "plain": "string",
    "extra": "object", "tags": "string", "scan": "Uint8Array", "twice": "number",
}  # fmt: skip


@pytest.fixture
def pictures(bare: Shop) -> Iterator[TableDataset]:
    with exposed_gallery(bare) as made:
        bare.wall()
        yield made


def run(shop: Shop, runtime: str, source: str, params: Any = None) -> Finished:
    async def go() -> Finished:
        pool = Pool(runtime=runtime, size=1, cores=1, profile="trusted")
        executor = SandboxExecutor(pool, HostSide(shop.read, shop.datasets, Frozen()))
        claim = Claim(
            action_id=str(uuid.uuid4()), tenant_id=TENANT, schedule_id=None, script_name="t", script_version=1,
            modules={"main.js": source}, attempt=1, step=0, lease_epoch=1, origin="run_now", slot_us=None, due_us=NOW_US,
            started_us=NOW_US, params=params, grants=ALL,
        )  # fmt: skip
        await executor.start()
        try:
            return await executor.execute(claim)
        finally:
            await executor.stop()

    ended = asyncio.run(go())
    assert ended.outcome is Outcome.OK, ended.error
    return ended


@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"])
def test_a_script_writes_and_reads_every_type_exactly(bare: Shop, pictures: TableDataset, runtime: str) -> None:
    wrote = run(bare, runtime, WRITES)
    said = json.loads(wrote.result or "")
    price = "12345678901234.5678000001"
    assert said["seen"] == [
        -1,
        "9223372036854775806",
        "12345678901234.5678000001",
        "1.750",
        "9999-12-31T23:59:59.999999Z",
    ]
    with bare.engine.begin() as connection:
        if bare.dialect == "sqlite":
            # More digits than a double tells apart: refused, never rounded. With fewer it is written.
            with pytest.raises(commit.EffectRefused) as refused, connection.begin_nested():
                commit.apply(connection, wrote.journal, now_us=NOW_US)
            assert refused.value.code == "too_many_digits"
            assert refused.value.line is not None
    if bare.dialect == "sqlite":
        price = "123.5678000001"
        wrote = run(bare, runtime, WRITES.replace("12345678901234.5678", "123.5678"))
        said = json.loads(wrote.result or "")
    with bare.engine.begin() as connection:
        commit.apply(connection, wrote.journal, now_us=NOW_US)
    check_row(bare, pictures, said["id"], price)
    read = json.loads(run(bare, runtime, READS, said).result or "")
    assert read["kinds"] == KINDS
    assert read["texts"] == {
        "id": said["id"], "crowd": "select ' \U0001f600", "mood": "o'clock", "size": "SMALL", "frame": "oak", "letters": "abcd",
        "small": -1, "large": "9223372036854775806", "price": price, "exact": "0.125", "loose": "1.750",
        "ratio": 0.1 + 0.2, "shown": False, "hung": "9999-12-31T23:59:59.999999Z", "local": "2026-11-22T00:02:03.004Z",
        "day": "2024-02-29", "ref": "ffffffff-ffff-4fff-bfff-ffffffffffff", "plain": "00000000-0000-0000-0000-000000000001",
        "extra": {"a": [1, None, "ü", 2**53], "b": {}}, "tags": "text", "scan": [0, 1, 255], "twice": -2,
    }  # fmt: skip
    assert read["found"] == [1] * 7
    assert (read["all"], read["sum"], read["empty"]) == (1, price, len(KINDS) - 4)
    assert [read["latest"]["large"], read["latest"]["day"]] == ["9223372036854775806", "2024-02-29"]


def check_row(shop: Shop, pictures: TableDataset, key: str, price: str) -> None:
    """Assert a row's price, read through the platform's own table."""
    table = pictures.origin
    columns = [sa.cast(c, sa.String) if c.key == "price" and shop.dialect == "sqlite" else c for c in table.columns]
    with shop.engine.connect() as connection:
        row = connection.execute(sa.select(*columns).where(table.c.id == uuid.UUID(key))).one()
    found = dict(zip(table.columns.keys(), row, strict=True))
    assert Decimal(found.pop("price")) == Decimal(price)
    hung_at = dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
    assert found["hung"].replace(tzinfo=dt.UTC) == hung_at
    assert {name: found[name] for name in ("gallery_no", "size", "mood", "local", "day", "ref", "plain", "extra", "tags", "scan")} == {
        "gallery_no": int(TENANT), "size": Size.SMALL, "mood": "o'clock", "local": dt.datetime(2026, 11, 22, 0, 2, 3, 4000),
        "day": dt.date(2024, 2, 29), "ref": "ffffffff-ffff-4fff-bfff-ffffffffffff", "plain": uuid.UUID(int=1),
        "extra": {"a": [1, None, "ü", 2**53], "b": {}}, "tags": "text", "scan": b"\0\1\xff",
    }  # fmt: skip
