"""A table of every type of column that scripts can be given, and of some that databases have besides."""

import enum
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from tests.unit.data.shop import Shop

from lodger.engine.data.sets.dataset import TableDataset


class Size(enum.Enum):
    """Kept by their names."""

    SMALL = "s"
    LARGE = "l"


gallery = sa.MetaData()
pictures = sa.Table(
    "pictures",
    gallery,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("gallery no", sa.BigInteger, key="gallery_no", nullable=False),
    sa.Column("group", sa.String(20), key="crowd"),
    sa.Column("mood", sa.Enum("calm", "loud", "o'clock", name="mood")),
    sa.Column("size", sa.Enum(Size, name="size")),
    sa.Column("frame", sa.Enum("oak", "tin", name="frame", native_enum=False, create_constraint=True)),
    sa.Column("letters", sa.CHAR(4)),
    sa.Column("small", sa.SmallInteger),
    sa.Column("large", sa.BigInteger),
    sa.Column("price", sa.Numeric(30, 10)),
    sa.Column("exact", sa.Numeric),
    sa.Column("loose", sa.Numeric(12, 3, asdecimal=False)),
    sa.Column("ratio", sa.Double),
    sa.Column("shown", sa.Boolean),
    sa.Column("hung", sa.DateTime(timezone=True)),
    sa.Column("local", sa.DateTime),
    sa.Column("day", sa.Date),
    sa.Column("ref", sa.Uuid(as_uuid=False)),
    sa.Column("plain", sa.Uuid(native_uuid=False)),
    sa.Column("extra", sa.JSON().with_variant(JSONB, "postgresql")),
    sa.Column("tags", sa.JSON),
    sa.Column("scan", sa.LargeBinary),
    sa.Column("twice", sa.Integer, sa.Computed("small * 2", persisted=True)),
)
WRITE = [c.key for c in pictures.columns if c.key not in ("id", "gallery_no", "twice")]


@contextmanager
def exposed_gallery(shop: Shop) -> Iterator[TableDataset]:
    """Create the table, in a schema of its own where the database has schemas, and expose it in the shop."""
    table = pictures.to_metadata(sa.MetaData(), schema="museum" if shop.dialect == "postgresql" else None)
    with shop.engine.begin() as connection:
        if table.schema:
            connection.execute(sa.schema.CreateSchema(table.schema))
        table.metadata.create_all(connection)
    yield shop.datasets.expose(table, tenant_column="gallery_no", write=WRITE)
