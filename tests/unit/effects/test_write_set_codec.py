"""A write set becomes text and is the same again, whatever its effects hold."""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan

import pytest
import sqlalchemy as sa

from lodger.engine.data.sets.dataset import Collection
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.effects.effect import (
    Attachment,
    Consumed,
    Delete,
    Effect,
    Emit,
    Increment,
    Insert,
    KvAdd,
    KvSet,
    Mail,
    Update,
)
from lodger.engine.effects.write_set import ExpectedRow, ExpectedValue, WriteSet
from lodger.engine.effects.write_set_codec import WriteSetDecodeError, decode, encode

READINGS = sa.Table(
    "readings",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("tenant", sa.String(50), nullable=False),
    sa.Column("at", sa.DateTime(timezone=True)),
    sa.Column("day", sa.Date),
    sa.Column("price", sa.Numeric(10, 2)),
    sa.Column("degrees", sa.Float),
    sa.Column("raw", sa.LargeBinary),
)


def exposed(*columns: str) -> Datasets:
    """Return datasets with the table of readings, of which scripts may write these columns."""
    datasets = Datasets()
    names = columns or ("at", "day", "price", "degrees", "raw")
    datasets.expose(READINGS, tenant_column="tenant", read=names, write=names)
    return datasets


def round_trip(datasets: Datasets, *effects: Effect) -> WriteSet:
    """Encode and decode a write set with these effects."""
    return decode(encode(WriteSet("acme", "a1", 0, datasets, tuple(enumerate(effects)))), datasets)


def test_every_kind_of_value_is_the_same_again() -> None:
    datasets = exposed()
    rows = datasets.table("readings")
    row = {"id": 1, "at": datetime(2027, 1, 31, 9, tzinfo=UTC), "day": date(2027, 1, 31), "price": Decimal("1.20"),
           "degrees": -inf, "raw": b"\0\xff"}  # fmt: skip
    made = (
        Insert(rows, 1, row, frozenset({"at"}), line="main.js:3"),
        Update(rows, 1, {"degrees": nan}),
        Increment(rows, 1, {"price": Decimal("0.10")}),
        Delete(rows, 1),
    )
    before = WriteSet("acme", "a1", 2, datasets, tuple(enumerate(made)), {rows: {1: ExpectedRow(row, 0)}},
                      (ExpectedValue("s", "k", None, 1),), "reader")  # fmt: skip
    after = decode(encode(before), datasets)
    assert repr(after) == repr(before)


def test_documents_and_messages_are_the_same_again() -> None:
    stock = Collection("stock")
    document = {
        "id": "a",
        "list": ["float", "0x1.8p+0"],
        "nested": {"dict": [["tuple", []]]},
        "much": 1.5,
        "none": None,
    }
    made = (
        Insert(stock, "a", document),
        KvSet("s", "k", '{"a": 1}', 5),
        KvAdd("s", "k", 0.1),
        Consumed("stock", "collection:stock", "c", (1, 2), (3, 4), 5, True),
        Emit("order.paid", "[]"),
        Mail(("a@example.com",), "s", attachments=(Attachment("a.txt", "text/plain", "aGk="),), names={"a@example.com": "A"}),
    )  # fmt: skip
    assert [effect for _index, effect in round_trip(Datasets(), *made).effects] == list(made)


def test_what_a_node_does_not_expose_it_cannot_decode() -> None:
    everywhere, narrower = exposed(), exposed("day")
    text = encode(
        WriteSet("acme", "a1", 0, everywhere, ((0, Update(everywhere.table("readings"), 1, {"price": None})),))
    )
    for datasets in (Datasets(), narrower):
        with pytest.raises(WriteSetDecodeError):
            decode(text, datasets)
