"""What may be exposed, and what is refused before any script runs."""

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from lodger.engine.core.errors import Conflict, InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import KeySource
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.expose import expose
from lodger.engine.data.sets.scope import Scope


def table(*columns: Any, name: str = "t") -> sa.Table:
    return sa.Table(
        name,
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("org", sa.String(9), nullable=False),
        *columns,
    )


def refused(source: Any, **options: Any) -> str:
    with pytest.raises(InputError) as found:
        expose(source, **{"tenant_column": "org"} | options)
    assert found.value.fix
    return found.value.code


def test_uniqueness_over_all_tenants_is_not_written() -> None:
    for source in (
        table(sa.Column("email", sa.String(9), unique=True)),
        table(sa.Column("email", sa.String(9)), sa.UniqueConstraint("email")),
        table(sa.Column("email", sa.String(9)), sa.Column("x", sa.Integer), sa.UniqueConstraint("email", "x")),
        table(sa.Column("email", sa.String(9)), sa.Index("u", "email", unique=True)),
    ):
        assert refused(source, write=["email"]) == "expose_unique"
        assert expose(source, tenant_column="org", read=["email"]).writable == frozenset()
    lowered = table(sa.Column("email", sa.String(9)))
    sa.Index("u", sa.func.lower(lowered.c.email), unique=True)
    assert refused(lowered, write=["email"]) == "expose_unique"
    assert refused(table(), write=["id"]) == "expose_unique", "a key that a tenant chooses tells of others' keys"


def test_uniqueness_within_a_tenant_is_written_and_exceptions_are_named() -> None:
    within = table(sa.Column("email", sa.String(9)), sa.UniqueConstraint("org", "email"))
    assert expose(within, tenant_column="org", write=["email"]).writable == {"email"}
    named = table(sa.Column("email", sa.String(9)), sa.UniqueConstraint("email", name="uq_email"))
    assert expose(named, tenant_column="org", write=["email"], allow_unique=["uq_email"]).writable == {"email"}


def test_what_else_is_refused() -> None:
    source = table(
        sa.Column("a", sa.Integer), sa.Column("span", sa.Interval), sa.Column("needed", sa.Integer, nullable=False)
    )
    assert refused(source, write=["org"], read=["org"]) == "expose_tenant"
    assert refused(source, read=["nothing"]) == "expose_column"
    assert refused(source, tenant_column="nothing") == "expose_column"
    assert refused(source, read=["a"], write=["needed"]) == "expose_write_only"
    assert refused(source, read=["span"]) == "expose_type"
    assert refused(source, read=["a"], name="then") == "expose_name"
    assert refused(source, read=["a"], name="x; DROP") == "expose_name"
    assert refused(source, read=["a"], write=["a"], insert=True) == "expose_insert"
    assert refused(object(), read=["a"]) == "expose_source"
    assert not expose(source, tenant_column="org", read=["a"], write=["a"]).insertable
    pair = sa.Table(
        "p",
        sa.MetaData(),
        sa.Column("a", sa.Integer, primary_key=True),
        sa.Column("b", sa.Integer, primary_key=True),
        sa.Column("org", sa.Integer),
    )
    assert refused(pair) == "expose_key"


class Base(DeclarativeBase):
    pass


class Cart(Base):
    __tablename__ = "carts"
    key: Mapped[str] = mapped_column("cart_id", sa.Uuid(as_uuid=False), primary_key=True)
    org: Mapped[int]
    items: Mapped[int]


def test_a_mapped_class_is_named_by_its_attributes() -> None:
    made = expose(Cart, tenant_column=Cart.org, read=[Cart.key, Cart.items], write=[Cart.items], name="baskets")
    assert (made.name, made.key.name, made.key_source, sorted(made.fields)) == (
        "baskets",
        "key",
        KeySource.UUID,
        ["items", "key"],
    )
    assert made.tenant_value("42") == 42


class Staff(Base):
    __tablename__ = "staff"
    id: Mapped[int] = mapped_column(primary_key=True)
    org: Mapped[str]
    kind: Mapped[str]
    name: Mapped[str] = mapped_column("full name")
    half: Mapped[int] = mapped_column(sa.Computed("id / 2"))
    hidden: Mapped[int | None]
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "staff"}  # noqa: RUF012 - SQLAlchemy's own form


class Manager(Staff):
    budget: Mapped[int | None] = mapped_column(use_existing_column=True)
    __mapper_args__ = {"polymorphic_identity": "manager"}  # noqa: RUF012 - SQLAlchemy's own form


def test_classes_that_share_a_table() -> None:
    """The class of all rows is exposed, with the columns that it maps; a part of the rows is not the table."""
    made = expose(Staff, tenant_column=Staff.org, write=[Staff.name, "hidden"])
    assert set(made.fields) == {"id", "kind", "name", "half", "hidden"}
    assert made.fields["name"].column.name == "full name"
    assert refused(Manager) == "expose_source"
    assert refused(Staff, write=["half"]) == "expose_computed"


@pytest.mark.parametrize("tenant", ["acme", "", "4 OR 1=1", "४", "1.5", "9" * 30, "07", "+7", " 7", "-0"])
def test_a_tenant_that_the_column_cannot_name_sees_nothing(tenant: str) -> None:
    made = expose(Cart, tenant_column="org", read=["items"])
    with pytest.raises(CallRefused) as found:
        Scope(tenant).predicate(made)
    assert found.value.code == "denied"


def test_a_tenant_of_nobody_is_never_asked_for() -> None:
    made = expose(Cart, tenant_column="org", read=["items"], tenant_value=lambda _: None)
    with pytest.raises(CallRefused):
        Scope("x").predicate(made)


def test_names_are_taken_once_and_other_names_are_collections() -> None:
    datasets = Datasets()
    datasets.expose(Cart, tenant_column="org", read=["items"])
    with pytest.raises(Conflict):
        datasets.expose(Cart, tenant_column="org", read=["items"])
    assert datasets.described() == {"carts": {"key": "key", "columns": {"key": "uuid", "items": "int"}, "links": {}}}
    assert datasets.named("anything").name == "anything"


def test_the_ledgers_own_tables_are_never_exposed() -> None:
    with pytest.raises(InputError) as refused:
        expose(sa.Table("lodger_actions", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True),
                        sa.Column("tenant_id", sa.String)), tenant_column="tenant_id")  # fmt: skip
    assert refused.value.code == "expose_ledger"
