"""The shops' own tables, with a tenant column, as a platform has them."""

from typing import Any

from sqlalchemy import Column, DateTime, ForeignKey, Index, Integer, MetaData, String, Table

metadata = MetaData()
_Instant = DateTime(timezone=True)


def _table(name: str, *more: Column[Any] | Index) -> Table:
    """Return a table whose rows belong to shops."""
    key, shop = Column("id", Integer, primary_key=True), Column("shop", String(40), nullable=False)
    return Table(name, metadata, key, shop, *more)


customers = _table(
    "customers",
    Column("name", String(80), nullable=False),
    Column("email", String(120), nullable=False),
    Column("city", String(60), nullable=False),
    Column("joined", _Instant, nullable=False),
    Index("ix_customers_shop_email", "shop", "email", unique=True),
)

products = _table(
    "products",
    Column("name", String(80), nullable=False),
    Column("price_cents", Integer, nullable=False),
    Column("sale_cents", Integer),
    Column("stock", Integer, nullable=False),
    Index("ix_products_shop", "shop"),
)

orders = _table(
    "orders",
    Column("customer_id", Integer, ForeignKey("customers.id"), nullable=False),
    Column("email", String(120), nullable=False),
    Column("state", String(12), nullable=False),
    Column("items", Integer, nullable=False),
    Column("total_cents", Integer, nullable=False),
    Column("placed", _Instant, nullable=False),
    Index("ix_orders_shop_placed", "shop", "placed"),
    Index("ix_orders_shop_state", "shop", "state", "placed"),
)

carts = _table(
    "carts",
    Column("customer_id", Integer, ForeignKey("customers.id"), nullable=False),
    Column("email", String(120), nullable=False),
    Column("state", String(12), nullable=False),
    Column("items", Integer, nullable=False),
    Column("total_cents", Integer, nullable=False),
    Column("modified", _Instant, nullable=False),
    Index("ix_carts_shop_state", "shop", "state", "modified"),
)

tickets = _table(
    "tickets",
    Column("customer_id", Integer, ForeignKey("customers.id"), nullable=False),
    Column("email", String(120), nullable=False),
    Column("subject", String(120), nullable=False),
    Column("state", String(12), nullable=False),
    Column("opened", _Instant, nullable=False),
    Column("answered", _Instant),
    Index("ix_tickets_shop_state", "shop", "state", "opened"),
)
