"""The source of a shadow counts towards a tenant's stored bytes, as that of a version does."""

# ruff: noqa: S608 - every statement is made of names in this file

from alembic import op

revision = "0135"
down_revision = "0134"
branch_labels = None
depends_on = None

TABLE, TRIGGER = "lodger_script_shadows", "lodger_script_shadows_stored"
#: Columns that never change while a row lives.
COUNTED = ("modules", "wasm", "why")


def _size(row: str) -> str:
    sqlite = op.get_bind().dialect.name == "sqlite"
    size = "coalesce(length(CAST({} AS BLOB)), 0)" if sqlite else "coalesce(octet_length({}), 0)"
    return " + ".join(size.format(f"{row}.{column}") for column in COUNTED)


def _change(sign: str, row: str) -> str:
    # A tenant with a shadow has a version of the script, and so a counter.
    return f"UPDATE lodger_storage SET kept_bytes = kept_bytes {sign} ({_size(row)}) WHERE tenant_id = {row}.tenant_id;"


def _change_by_all(sign: str) -> str:
    total = f"(SELECT sum({_size('t')}) FROM {TABLE} AS t WHERE t.tenant_id = lodger_storage.tenant_id)"
    return f"UPDATE lodger_storage SET kept_bytes = kept_bytes {sign} {total} WHERE tenant_id IN (SELECT tenant_id FROM {TABLE})"


def upgrade() -> None:
    """Upgrade the schema."""
    more, less = _change("+", "NEW"), _change("-", "OLD")
    if op.get_bind().dialect.name == "sqlite":
        made = [f"TRIGGER {TRIGGER}_more AFTER INSERT ON {TABLE} BEGIN {more} END",
                f"TRIGGER {TRIGGER}_less AFTER DELETE ON {TABLE} BEGIN {less} END"]  # fmt: skip
    else:
        body = f"BEGIN IF TG_OP = 'INSERT' THEN {more} ELSE {less} END IF; RETURN NULL; END"
        made = [f"FUNCTION {TRIGGER}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ {body} $$",
                f"TRIGGER {TRIGGER} AFTER INSERT OR DELETE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION {TRIGGER}()"]  # fmt: skip
    for each in made:
        op.execute(f"CREATE {each}")
    # After the trigger, because its lock keeps writers out: each row is counted once.
    op.execute(_change_by_all("+"))


def downgrade() -> None:
    """Downgrade the schema."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"DROP TRIGGER {TRIGGER}_more")
        op.execute(f"DROP TRIGGER {TRIGGER}_less")
    else:
        op.execute(f"DROP TRIGGER {TRIGGER} ON {TABLE}")
        op.execute(f"DROP FUNCTION {TRIGGER}()")
    op.execute(_change_by_all("-"))
