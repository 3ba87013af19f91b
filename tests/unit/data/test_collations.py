"""Tenants with names that a collation considers equal: Lodger keeps them apart, whatever the column's collation.

A tenant ``acme`` once read the rows of ``Acme`` through a column that compares without case.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.capabilities.feeding import ask, settle
from tests.unit.data.shop import Shop

from lodger.engine.core.errors import InputError
from lodger.engine.data.sets import guard, scope
from lodger.engine.data.sets.expose import expose

TENANTS = ("acme", "ACME", "Acmé")

#: By database: what makes the collation, and the type of the columns that the platform's table has.
BLIND = {
    "sqlite": {"nocase": ("SELECT 1", "TEXT COLLATE NOCASE")},
    "postgresql": {
        "citext": ("CREATE EXTENSION IF NOT EXISTS citext", "citext"),
        "no case": (
            "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            'text COLLATE "blind"',
        ),
        "no accents": (
            "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            'varchar(40) COLLATE "blind"',
        ),
        "padded": ("SELECT 1", "char(40)"),
    },
}
#: What SQLAlchemy is told of it: nothing of how it compares.
metadata = sa.MetaData()
parts = sa.Table(
    "parts",
    metadata,
    sa.Column("code", sa.String(40), primary_key=True),
    sa.Column("org", sa.String(40), nullable=False),
    sa.Column("state", sa.String(40)),
    sa.Column("n", sa.Integer),
)


@pytest.fixture
def collation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


everywhere = pytest.mark.parametrize(
    ("kind", "collation"), [(kind, name) for kind, names in BLIND.items() for name in names], indirect=True
)


@pytest.fixture
def shop(bare: Shop, kind: str, collation: str) -> Iterator[Shop]:
    making, column = BLIND[kind][collation]
    with bare.engine.begin() as connection:
        if collation == "citext" and not connection.scalar(
            sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'")
        ):
            pytest.skip("NOT TESTED with citext: this PostgreSQL has none (apt-get install postgresql-contrib)")
        connection.execute(sa.text(making))
        connection.execute(
            sa.text(f"CREATE TABLE parts (code {column} PRIMARY KEY, org {column} NOT NULL, state {column}, n int)")
        )
        for number, (tenant, state) in enumerate(product(TENANTS, ("open", "OPEN"))):
            connection.execute(parts.insert().values(code=f"p{number}", org=tenant, state=state, n=1))
    bare.datasets.expose(parts, tenant_column="org", read=["code", "state", "n"], write=["state", "n"], delete=True)
    bare.wall()
    yield bare
    with bare.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE parts" + (" CASCADE" if kind == "postgresql" else "")))


def rows(shop: Shop) -> list[Any]:
    with shop.engine.connect() as connection:
        found = connection.execute(sa.select(parts).order_by(parts.c.code))
        return [tuple(str(cell).rstrip() for cell in row) for row in found]


@everywhere
def test_each_tenant_has_its_own_rows(shop: Shop) -> None:
    for attempt in map(shop.attempt, TENANTS):
        assert ask(attempt, "db.count", set="parts") == 2
        assert ask(attempt, "db.count", set="parts", filter={"state": "open"}) == 1, (
            "text is compared by its code points"
        )
        assert ask(attempt, "db.count", set="parts", filter={"state": {"in": ["open", "Open"]}}) == 1
        assert ask(attempt, "db.count", set="parts", filter={"state": {"contains": "pe"}}) == 1
        groups = ask(attempt, "db.aggregate", set="parts", groupBy="state")
        assert [(each["group"]["state"], each["count"]) for each in groups] == [("OPEN", 1), ("open", 1)]
        assert [row["state"] for row in ask(attempt, "db.find", set="parts", order="state")["rows"]] == ["OPEN", "open"]


@everywhere
def test_each_tenant_writes_its_own_rows(shop: Shop) -> None:
    before = rows(shop)
    attempt = shop.attempt("acme")
    for row in ask(attempt, "db.find", set="parts")["rows"]:
        ask(attempt, "db.increment", set="parts", id=row["code"], amounts={"n": 1})
    for wrong in ("ACME", "Acmé"):
        for row in ask(shop.attempt(wrong), "db.find", set="parts")["rows"]:
            assert ask(attempt, "db.get", set="parts", id=row["code"]) is None
            assert ask(attempt, "db.delete", set="parts", id=row["code"]) is False
    settle(shop, attempt)
    changed = [after[1] for old, after in zip(before, rows(shop), strict=True) if old != after]
    assert changed == ["acme", "acme"]


@pytest.mark.parametrize(
    ("kind", "collation"),
    [("sqlite", "nocase"), ("postgresql", "citext"), ("postgresql", "no case"), ("postgresql", "no accents")],
    indirect=True,
)
def test_by_the_columns_own_equality_one_tenant_would_read_anothers(
    shop: Shop, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tests above can see."""
    monkeypatch.setattr(scope, "same_text", lambda column, bound: column == sa.cast(bound, parts_type(shop)))
    shop.datasets.stand(None, guard.DatabaseIsolation())
    assert ask(shop.attempt("acme"), "db.count", set="parts") > 2


def parts_type(shop: Shop) -> Any:
    """Return the column's type as its database knows it."""
    if shop.dialect == "sqlite":
        return sa.String()
    with shop.engine.connect() as connection:
        name = connection.scalar(
            sa.text(
                "SELECT udt_name FROM information_schema.columns WHERE table_name = 'parts' AND column_name = 'org'"
            )
        )
    return sa.dialects.postgresql.CITEXT() if name == "citext" else sa.String()


@everywhere
def test_documents_and_keys_are_told_apart_too(shop: Shop) -> None:
    for tenant in TENANTS:
        attempt = shop.attempt(tenant)
        ask(attempt, "db.insert", set="Things", values={"id": "A", "of": tenant})
        ask(attempt, "db.insert", set="Things", values={"id": "a", "of": tenant})
        ask(attempt, "kv.set", key="K", value=tenant)
        settle(shop, attempt)
    for tenant in TENANTS:
        attempt = shop.attempt(tenant)
        assert ask(attempt, "db.get", set="Things", id="A")["of"] == tenant
        assert ask(attempt, "db.count", set="Things") == 2
        assert ask(attempt, "db.count", set="things") == 0
        assert (ask(attempt, "kv.get", key="K"), ask(attempt, "kv.get", key="k")) == (tenant, None)


@pytest.mark.parametrize(
    "org",
    [
        sa.dialects.postgresql.CITEXT(),
        sa.String(collation="NOCASE"),
        sa.String(collation="und-x-icu"),
    ],
    ids=["citext", "nocase", "icu"],
)
def test_uniqueness_beside_a_tenant_that_compares_loosely_is_an_oracle(org: sa.types.TypeEngine[str]) -> None:
    """Tenant ``acme`` could learn by a violation what ``ACME`` has."""
    source = sa.Table(
        "loose",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("org", org, nullable=False),
        sa.Column("email", sa.String),
        sa.UniqueConstraint("org", "email"),
    )
    with pytest.raises(InputError) as refused:
        expose(source, tenant_column="org", write=["email"])
    assert refused.value.code == "expose_unique"
    assert expose(source, tenant_column="org").fields
