"""Tables as platforms really have them: named by words of SQL, keyed by two columns, filled in by the database, watched by triggers."""

from typing import Any

import sqlalchemy as sa
from tests.unit.data.shop import Shop

from lodger.engine.data.changes import feed

ORG, TENANT = sa.String(40), "0189aaaa-0000-7000-8000-00000000000a"


def words() -> sa.Table:
    """Nothing in it is named as people name things."""
    return sa.Table(
        "select",
        sa.MetaData(),
        sa.Column("order", sa.Integer, primary_key=True),
        sa.Column("from", ORG, nullable=False),
        sa.Column("Group By", sa.Text, key="grp"),
        sa.Column('quo"te%s', sa.Text, key="quote"),
        sa.Column("c:olon'--", sa.Text, key="colon"),
    )


def mixed(schema: str | None) -> sa.Table:
    """Letters of both cases, a schema with a space, the tenant in the key."""
    return sa.Table(
        "OrderLines",
        sa.MetaData(schema=schema),
        sa.Column("Org%Id", ORG, primary_key=True, key="OrgId"),
        sa.Column("Line%No", sa.Integer, primary_key=True, key="LineNo"),
        sa.Column("Amount", sa.Numeric(10, 2), nullable=False),
    )


def uuids(*, native: bool) -> sa.Table:
    """Tenants and keys are UUIDs, kept as such or as their digits."""
    return sa.Table(
        f"uuids_{native}".lower(),
        sa.MetaData(),
        sa.Column("tenant", sa.Uuid(native_uuid=native), primary_key=True),
        sa.Column("key", sa.Uuid(native_uuid=native), primary_key=True),
        sa.Column("value", sa.JSON),
    )


def filled() -> sa.Table:
    """The database fills in most of it."""
    return sa.Table(
        "filled",
        sa.MetaData(),
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(always=True), primary_key=True),
        sa.Column("org", ORG, nullable=False),
        sa.Column("a", sa.Integer, nullable=False),
        sa.Column("twice", sa.Integer, sa.Computed("a * 2", persisted=True)),
        sa.Column("said", sa.String(10), server_default="x", nullable=False),
        sa.Column("python", sa.String(10), default=lambda: "py", nullable=False),
        sa.Column("changed", sa.Integer, default=1, onupdate=lambda: 5),
        sa.CheckConstraint("a < 1000", name="a small"),
    )


def counted() -> sa.Table:
    """Its key comes from a sequence that belongs to no column."""
    return sa.Table(
        "counted",
        sa.MetaData(),
        sa.Column("id", sa.Integer, sa.Sequence("everybodys_numbers"), primary_key=True),
        sa.Column("org", ORG, nullable=False),
        sa.Column("a", sa.Integer),
    )


def shown() -> sa.Table:
    """A view of the platform's, of a table that is not exposed."""
    return sa.Table("shown", sa.MetaData(), *columns_of_shown())


def columns_of_shown() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("org", ORG, nullable=False),
        sa.Column("a", sa.Integer),
    )


def watched() -> sa.Table:
    """Triggers count its writes, refuse more than 100, and pass over what is 50."""
    return sa.Table(
        "watched",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("org", ORG, nullable=False),
        sa.Column("a", sa.Integer),
        sa.Column("seen", sa.Integer),
    )


_WATCH = {
    "sqlite": (
        "CREATE TRIGGER w1 AFTER INSERT ON watched BEGIN UPDATE watched SET seen = 1 WHERE id = new.id; END",
        "CREATE TRIGGER w2 BEFORE INSERT ON watched WHEN new.a > 100 BEGIN SELECT RAISE(ABORT, 'a secret'); END",
        "CREATE TRIGGER w3 BEFORE INSERT ON watched WHEN new.a = 50 BEGIN SELECT RAISE(IGNORE); END",
    ),
    "postgresql": (
        """CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.seen := 1;
            IF NEW.a > 100 THEN RAISE EXCEPTION 'a secret'; END IF;
            IF NEW.a = 50 THEN RETURN NULL; END IF;
            RETURN NEW;
        END $$""",
        "CREATE TRIGGER w BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION watch()",
    ),
}


def furnish(shop: Shop, by: str) -> None:
    """Make all of them, with a neighbour's row in each, and expose them; ``by`` is how their changes are told."""
    postgresql = shop.dialect == "postgresql"
    schema = "My Schema" if postgresql else None
    tables = [words(), mixed(schema), uuids(native=True), uuids(native=False), filled(), watched()]
    with shop.engine.begin() as connection:
        if schema:
            connection.execute(sa.schema.CreateSchema(schema))
        base = sa.Table("behind", sa.MetaData(), *columns_of_shown())
        for table in (*tables, base):
            table.metadata.create_all(connection)
        for statement in _WATCH[shop.dialect]:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("CREATE VIEW shown AS SELECT id, org, a FROM behind WHERE a IS NOT NULL")
        connection.exec_driver_sql("INSERT INTO behind (id, org, a) VALUES (-70, 'one', -7), (-71, 'two', -7)")
        if postgresql:
            connection.exec_driver_sql("CREATE SEQUENCE everybodys_numbers")
            connection.exec_driver_sql(
                "CREATE TABLE counted (id integer PRIMARY KEY DEFAULT nextval('everybodys_numbers'), org text NOT NULL, a integer)"
            )
    expose = shop.datasets.expose
    expose(tables[0], tenant_column="from", write=["grp", "quote", "colon"], name="words", feed=by)
    expose(tables[1], tenant_column="OrgId", write=["LineNo", "Amount"], feed=by)
    for table in tables[2:4]:
        expose(table, tenant_column="tenant", write=["value"], feed=by)
    expose(tables[4], tenant_column="org", write=["a", "said"], feed=by)
    expose(tables[5], tenant_column="org", write=["a"], feed=by)
    expose(shown(), tenant_column="org", write=["a"] if postgresql else [], insert=postgresql, feed="reported")
    if postgresql:
        expose(counted(), tenant_column="org", write=["a"], feed=by)
    shop.wall()


#: Of each: what is inserted, what is changed, the columns to order and group by, and who reads it.
PLAYS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], str]] = {
    "words": ({"grp": "b", "quote": "%s", "colon": ":x"}, {"quote": '"%(x)s', "colon": "?"}, ["grp", "quote"], "one"),
    "OrderLines": ({"LineNo": 5, "Amount": "3.10"}, {"Amount": "7.25"}, ["Amount", "LineNo"], "one"),
    "uuids_true": ({"value": {"a": 1}}, {"value": [1, 2]}, ["key"], TENANT),
    "uuids_false": ({"value": {"a": 1}}, {"value": [1, 2]}, ["key"], TENANT),
    "filled": ({"a": 4}, {"a": 6}, ["said", "twice"], "one"),
    "watched": ({"a": 4}, {"a": 6}, ["seen", "a"], "one"),
    "counted": ({"a": 4}, {"a": 6}, ["a"], "one"),
    "shown": ({"a": 4}, {"a": 6}, ["a"], "one"),
}
KINDS = (feed.INSERT, feed.UPDATE, feed.DELETE)
