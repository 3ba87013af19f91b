"""The triggers of the ledger's tables on SQLite."""

# ruff: noqa: S608 - every statement is made of names of Lodger's own tables

from collections.abc import Iterator, Sequence

from sqlalchemy import Table

from lodger.engine.store.drivers.guards import RowTrigger, Stored, guards_of

APPEND_ONLY = "the audit log is append-only"


def statements(tables: Sequence[Table]) -> Iterator[str]:
    """Yield the statements that complete new tables."""
    for table in tables:
        needs = guards_of(table)
        if needs.stored is not None:
            yield from _counting(table.name, needs.stored)
        if needs.append_only is not None:
            yield from _append_only(table, needs.append_only)
    for table in tables:
        for trigger in guards_of(table).triggers:
            yield from _row_trigger(trigger)


def _counting(table: str, stored: Stored) -> Iterator[str]:
    """Yield the triggers that count the stored bytes of tenants."""

    def size_sql(row: str) -> str:
        """Return SQL for the number of bytes that a row, ``old`` or ``new``, stores."""
        return " + ".join(f'coalesce(length(CAST({row}."{column}" AS BLOB)), 0)' for column in stored.columns)

    counter, amounts = stored.counter, {"kept_bytes": "0", "history_bytes": "0", "audit_bytes": "0"}
    amounts[counter] = size_sql("NEW")
    more = (
        f"INSERT INTO lodger_storage (tenant_id, {', '.join(amounts)}) "
        f"SELECT NEW.tenant_id, {', '.join(amounts.values())} WHERE NEW.tenant_id <> '' "
        f"ON CONFLICT (tenant_id) DO UPDATE SET {counter} = {counter} + excluded.{counter};"
    )
    less = f"UPDATE lodger_storage SET {counter} = {counter} - ({size_sql('OLD')}) WHERE tenant_id = OLD.tenant_id;"
    yield f"CREATE TRIGGER {table}_more AFTER INSERT ON {table} BEGIN {more} END"
    yield f"CREATE TRIGGER {table}_less AFTER DELETE ON {table} BEGIN {less} END"
    if stored.updated:
        yield f"CREATE TRIGGER {table}_other AFTER UPDATE ON {table} BEGIN {less} {more} END"


def _append_only(table: Table, deletable: str) -> Iterator[str]:
    """Yield the triggers that refuse changes of rows."""
    refuse = f"BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END"
    same = " AND ".join(f"{column.name} = NEW.{column.name}" for column in table.primary_key)
    yield f"CREATE TRIGGER {table.name}_kept BEFORE UPDATE ON {table.name} {refuse}"
    yield f"CREATE TRIGGER {table.name}_stays BEFORE DELETE ON {table.name} WHEN NOT ({deletable}) {refuse}"
    # REPLACE removes the conflicting row without firing the trigger of a deletion.
    replaced = f"EXISTS (SELECT 1 FROM {table.name} WHERE {same})"
    yield f"CREATE TRIGGER {table.name}_new BEFORE INSERT ON {table.name} WHEN {replaced} {refuse}"


def _row_trigger(trigger: RowTrigger) -> Iterator[str]:
    """Yield the statements that create a trigger for each of its events."""
    for name, (event, condition) in trigger.events.items():
        yield (
            f"CREATE TRIGGER {trigger.name}_{name} AFTER {event} WHEN {condition} AND {trigger.condition} "
            f"BEGIN {trigger.statement}; END"
        )
