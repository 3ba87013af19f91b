"""The shops' rows: thousands, realistic, and the same for the same seed and instant."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from sqlalchemy import Connection, Table, insert

from lodger.engine.demo.tables import carts, customers, metadata, orders, products, tickets

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
    goods: tuple[str, ...]
    kinds: tuple[str, ...]
    cents: tuple[int, int]


SHOPS = (
    Shop(
        "bluebird", "Bluebird Books", "mara@bluebird.example", "Europe/London", 900, 4200, 420, 300,
        ("Atlas of Rivers", "A Winter Garden", "The Salt Road", "Small Engines", "Letters from Oban", "Bread at Home",
         "Night Trains", "The Clockmaker", "Field Notes", "Songs of the Fen", "A Short Walk", "The Last Lighthouse"),
        ("paperback", "hardback", "signed", "audio", "large print"), (790, 4200),
    ),
    Shop(
        "harbor", "Harbor Bikes", "joe@harbor.example", "America/New_York", 600, 2600, 260, 180,
        ("Dock Lock", "Pier Light", "Gull Saddle", "Tide Pedals", "Mast Pump", "Anchor Stand", "Cove Bell",
         "Keel Chain", "Buoy Bottle", "Jetty Bag"),
        ("small", "medium", "large", "city", "touring"), (1200, 18_900),
    ),
)  # fmt: skip

_FIRST = ("Ada", "Ben", "Chen", "Dana", "Emil", "Fatma", "Gil", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Malik", "Nora",
          "Omar", "Pia", "Quinn", "Rosa", "Sven", "Tara", "Uma", "Vito", "Wanda", "Xavi", "Yara", "Zoë")  # fmt: skip
_LAST = ("Abbott", "Berg", "Cole", "Duarte", "Eriksen", "Fischer", "Gupta", "Haddad", "Ito", "Jansen", "Kowalski",
         "Lopez", "Moreau", "Novak", "O'Brien", "Park", "Quist", "Rossi", "Smith", "Tanaka", "Ueda", "Vogel",
         "Weber", "Yilmaz", "Zhang", "Müller")  # fmt: skip
_CITIES = ("Leeds", "Bristol", "York", "Glasgow", "Cork", "Utrecht", "Lyon", "Porto", "Boston", "Portland", "Albany")
_ASKED = ("Where is my parcel?", "Wrong size delivered", "Can I change the address?", "Invoice with VAT number",
          "Refund not arrived", "Item damaged on arrival", "Gift wrapping", "Voucher does not work")  # fmt: skip


def fill(connection: Connection, now: datetime) -> dict[str, int]:
    """Create the tables and fill them in the caller's transaction.

    Args:
        now: aware UTC; ages of rows are counted back from it.

    Returns:
        Number of rows by table.
    """
    metadata.create_all(connection)
    random, counts = Random(SEED), dict.fromkeys(metadata.tables, 0)  # noqa: S311 - made-up shops need no secrecy
    first = dict.fromkeys((customers, products, orders, carts, tickets), 1)
    for shop in SHOPS:
        people = _people(random, shop, now, first[customers])
        made: tuple[tuple[Table, list[Row]], ...] = (
            (customers, people),
            (products, _products(random, shop, first[products])),
            (orders, _orders(random, shop, now, people, first[orders])),
            (carts, _carts(random, shop, now, people, first[carts])),
            (tickets, _tickets(random, shop, now, people, first[tickets])),
        )
        for table, rows in made:
            connection.execute(insert(table), rows)
            counts[table.name] += len(rows)
            first[table] += len(rows)
    return counts


def _people(random: Random, shop: Shop, now: datetime, first: int) -> list[Row]:
    """Return drawn customers of a shop, numbered from ``first``."""
    rows = []
    for number in range(first, first + shop.customers):
        given, family = random.choice(_FIRST), random.choice(_LAST)
        address = f"{given}.{family}{number}".lower().replace("'", "").replace("ë", "e").replace("ü", "u")
        rows.append(
            {
                "id": number,
                "shop": shop.id,
                "name": f"{given} {family}",
                "email": f"{address}@mail.example",
                "city": random.choice(_CITIES),
                "joined": _ago(random, now, HISTORY_DAYS, 900),
            }
        )
    return rows


def _products(random: Random, shop: Shop, first: int) -> list[Row]:
    """Return drawn products of a shop, numbered from ``first``."""
    names = [f"{thing}, {kind}" for thing in shop.goods for kind in shop.kinds]
    return [
        {
            "id": first + number,
            "shop": shop.id,
            "name": name,
            "price_cents": random.randrange(*shop.cents) // 10 * 10 + 9,
            "sale_cents": None,
            "stock": random.randrange(0, 90),
        }
        for number, name in enumerate(names)
    ]


def _orders(random: Random, shop: Shop, now: datetime, people: list[Row], first: int) -> list[Row]:
    """Return paid orders over the whole history, and recent ones that wait for confirmation."""
    waiting = shop.orders // 4
    ages = sorted((random.uniform(1.5, HISTORY_DAYS) for _ in range(shop.orders - waiting)), reverse=True)
    ages += sorted((random.uniform(0.01, 1.4) for _ in range(waiting)), reverse=True)
    rows = []
    for number, age in enumerate(ages):
        person, items = random.choice(people), 1 + min(int(random.expovariate(0.7)), 8)
        state = "new" if number >= shop.orders - waiting else "cancelled" if random.random() < 0.04 else "paid"
        rows.append(
            {
                "id": first + number,
                "shop": shop.id,
                "customer_id": person["id"],
                "email": person["email"],
                "state": state,
                "items": items,
                "total_cents": sum(random.randrange(*shop.cents) for _ in range(items)),
                "placed": _whole(now - timedelta(days=age)),
            }
        )
    return rows


def _carts(random: Random, shop: Shop, now: datetime, people: list[Row], first: int) -> list[Row]:
    """Return drawn shopping carts of a shop, numbered from ``first``."""

    def cart_row(number: int) -> Row:
        """Return a random cart; ``number`` counts from the first id."""
        person, items = random.choice(people), random.randrange(1, 7)
        left = random.random() < 0.55
        return {
            "id": first + number,
            "shop": shop.id,
            "customer_id": person["id"],
            "email": person["email"],
            "state": "open" if left else "ordered",
            "items": items,
            "total_cents": sum(random.randrange(*shop.cents) for _ in range(items)),
            "modified": _ago(random, now, 0.02, 6) if left else _ago(random, now, 1, 60),
        }

    return [cart_row(number) for number in range(shop.carts)]


def _tickets(random: Random, shop: Shop, now: datetime, people: list[Row], first: int) -> list[Row]:
    """Return drawn support tickets of a shop, numbered from ``first``."""
    waiting = max(3, shop.tickets // 20)

    def ticket_row(number: int) -> Row:
        """Return a random ticket; ``number`` counts from the first id."""
        person, is_open = random.choice(people), number >= shop.tickets - waiting
        opened = _ago(random, now, 0.1, 5) if is_open else _ago(random, now, 2, HISTORY_DAYS)
        return {
            "id": first + number,
            "shop": shop.id,
            "customer_id": person["id"],
            "email": person["email"],
            "subject": random.choice(_ASKED),
            "state": "open" if is_open else "answered",
            "opened": opened,
            "answered": None if is_open else opened + timedelta(minutes=random.randrange(4, 2000)),
        }

    return [ticket_row(number) for number in range(shop.tickets)]


def _ago(random: Random, now: datetime, min_days: float, max_days: float) -> datetime:
    """Return a drawn instant between ``min_days`` and ``max_days`` before now."""
    return _whole(now - timedelta(days=random.uniform(min_days, max_days)))


def _whole(instant: datetime) -> datetime:
    """Return an instant without its fraction of a second."""
    return instant.replace(microsecond=0)
