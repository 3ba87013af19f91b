"""The shops: their tables, and rows by the thousand, realistic and the same for the same seed and instant."""

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from random import Random
from typing import Any

from sqlalchemy import Column, Connection, DateTime, Index, Integer, MetaData, String, Table, insert
from sqlalchemy.types import TypeEngine

SEED = 20_261
#: How far back the shops' history goes: past the 100 days for which the demo's engine was off.
HISTORY_DAYS = 190

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shop:
    """A tenant of the demo and the size of its data."""

    id: str
    name: str
    manager: str
    tz: str
    customers: int
    orders: int
    carts: int
    tickets: int
    goods: list[str]
    kinds: list[str]
    cents: list[int]


DATA: dict[str, Any] = tomllib.loads((files("lodger.engine.demo") / "demo.toml").read_text("utf-8"))
SHOPS = tuple(Shop(**each) for each in DATA["shops"])
_WORDS: dict[str, list[str]] = DATA["words"]

metadata = MetaData()
_TYPES: dict[type, TypeEngine[Any]] = {str: String(120), int: Integer(), datetime: DateTime(timezone=True)}


def _table(name: str, order: str, /, **columns: type) -> Table:
    """Return a table of rows of all shops, indexed by shop and the column by which scripts look for rows."""
    shown = [Column(each, _TYPES[kind]) for each, kind in columns.items()]
    key, shop = Column("id", Integer, primary_key=True), Column("shop", String(40), nullable=False)
    return Table(name, metadata, key, shop, *shown, Index(f"ix_{name}_shop", "shop", order))


customers = _table("customers", "email", name=str, email=str, city=str, joined=datetime)
products = _table("products", "name", name=str, price_cents=int, sale_cents=int, stock=int)
orders = _table("orders", "placed", customer_id=int, email=str, items=int, total_cents=int, state=str, placed=datetime)
carts = _table(
    "carts", "modified", customer_id=int, email=str, items=int, total_cents=int, state=str, modified=datetime
)
tickets = _table("tickets", "opened", customer_id=int, email=str, subject=str, state=str, opened=datetime, answered=datetime)  # fmt: skip

_ASCII = str.maketrans({"'": "", "ë": "e", "ü": "u"})


class _Maker:
    """Makes the rows of one shop; ages of rows are counted back from ``now``."""

    def __init__(self, random: Random, shop: Shop, now: datetime, first: int) -> None:
        self._random, self._shop, self._now, self._first = random, shop, now, first
        self.customers = [self._customer(number) for number in range(first, first + shop.customers)]

    def _ago(self, min_days: float, max_days: float) -> datetime:
        age = timedelta(days=self._random.uniform(min_days, max_days))
        return (self._now - age).replace(microsecond=0)

    def _customer(self, number: int) -> Row:
        given, family = self._random.choice(_WORDS["first"]), self._random.choice(_WORDS["last"])
        address = f"{given}.{family}{number}@mail.example".lower().translate(_ASCII)
        joined = self._ago(HISTORY_DAYS, 900)
        return {
            "name": f"{given} {family}",
            "email": address,
            "city": self._random.choice(_WORDS["cities"]),
            "joined": joined,
        }

    def _by_customer(self) -> Row:
        number = self._random.randrange(len(self.customers))
        return {"customer_id": self._first + number, "email": self.customers[number]["email"]}

    def _bought(self, items: int) -> Row:
        cents = sum(self._random.randrange(*self._shop.cents) for _ in range(items))
        return self._by_customer() | {"items": items, "total_cents": cents}

    def products(self) -> Iterable[Row]:
        """Yield a product for each good in each kind."""
        for name in (f"{thing}, {kind}" for thing in self._shop.goods for kind in self._shop.kinds):
            price = self._random.randrange(*self._shop.cents) // 10 * 10 + 9
            yield {"name": name, "price_cents": price, "sale_cents": None, "stock": self._random.randrange(0, 90)}

    def orders(self) -> Iterable[Row]:
        """Yield orders, oldest first; the last quarter waits to be confirmed."""
        waiting = self._shop.orders // 4
        old = sorted(self._ago(1.5, HISTORY_DAYS) for _ in range(self._shop.orders - waiting))
        for placed in (*old, *sorted(self._ago(0.01, 1.4) for _ in range(waiting))):
            state = "new" if placed > old[-1] else "cancelled" if self._random.random() < 0.04 else "paid"
            items = 1 + min(int(self._random.expovariate(0.7)), 8)
            yield self._bought(items) | {"state": state, "placed": placed}

    def carts(self) -> Iterable[Row]:
        """Yield carts that were left or ordered."""
        for _ in range(self._shop.carts):
            left = self._random.random() < 0.55
            modified = self._ago(0.02, 6) if left else self._ago(1, 60)
            yield self._bought(self._random.randrange(1, 7)) | {
                "state": "open" if left else "ordered",
                "modified": modified,
            }

    def tickets(self) -> Iterable[Row]:
        """Yield questions of customers; one in twenty has no answer."""
        for number in range(self._shop.tickets):
            is_open = number % 20 == 0
            opened = self._ago(0.1, 5) if is_open else self._ago(2, HISTORY_DAYS)
            answered = None if is_open else opened + timedelta(minutes=self._random.randrange(4, 2000))
            about = {"subject": self._random.choice(_WORDS["questions"]), "state": "open" if is_open else "answered"}
            yield self._by_customer() | about | {"opened": opened, "answered": answered}


def fill(connection: Connection, now: datetime) -> Counter[str]:
    """Create the tables and fill them in the caller's transaction; return the number of rows by table.

    Args:
        now: aware UTC; ages of rows are counted back from it.
    """
    metadata.create_all(connection)
    random, counts = Random(SEED), Counter[str]()  # noqa: S311 - made-up shops need no secrecy
    for shop in SHOPS:
        made = _Maker(random, shop, now, counts["customers"] + 1)
        for table, rows in (
            (customers, made.customers),
            (products, made.products()),
            (orders, made.orders()),
            (carts, made.carts()),
            (tickets, made.tickets()),
        ):
            stored = [{"shop": shop.id} | row for row in rows]
            connection.execute(insert(table), stored)
            counts[table.name] += len(stored)
    return counts
