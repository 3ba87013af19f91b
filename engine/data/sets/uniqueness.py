"""Uniqueness across tenants, as the platform declares it and as its database has it.

A violation of such a constraint reveals that another tenant has a value, so scripts may not write its columns: ``expose()``
refuses declared ones, and :func:`cross_tenant_unique_columns` finds those that only the database has.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Table

from lodger.engine.core.errors import InputError
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.store.drivers import driver_of, drivers


def require_unique_within_tenant(
    table: Table, tenant: Column[Any], writes: list[Column[Any]], allowed: frozenset[str]
) -> None:
    """Refuse writes to columns that are unique across tenants.

    A case-insensitive tenant column does not separate tenants in a constraint.

    Raises:
        InputError: expose_unique.
    """
    apart = not is_case_insensitive(tenant)
    rules: list[tuple[str, list[Column[Any]], bool]] = []
    rules.extend(
        (str(constraint.name or ""), list(constraint.columns), False)
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint | sa.PrimaryKeyConstraint)
    )
    # An exclusion constraint may compare by anything; only "=" on the tenant's column keeps tenants apart.
    rules.extend(
        (rule.name, [column for column in rule.columns if column is not tenant or column in rule.equal], True)
        for driver in drivers()
        for rule in driver.exclusions(table)
    )
    for index in table.indexes:
        if index.unique:
            plain = all(isinstance(expression, Column) for expression in index.expressions)
            rules.append((str(index.name or ""), list(index.columns), not plain))
    for label, columns, opaque in rules:
        touched = [column.name for column in columns if column in writes]
        if (apart and tenant in columns) or not (touched or (opaque and writes)):
            continue
        if _is_allowed(label, [column.name for column in columns], allowed):
            continue
        raise InputError("expose_unique", table=table.name, columns=(c.name for c in columns), tenant=tenant.name)


def _is_allowed(label: str, columns: Sequence[str], allowed: frozenset[str]) -> bool:
    """Whether the platform allows writing a constraint's columns: by its label, or by the name of its only column."""
    return label in allowed or (len(columns) == 1 and columns[0] in allowed)


def is_case_insensitive(column: Column[Any]) -> bool:
    """Whether a column's collation treats different texts as equal."""
    return any(driver.is_loose(column.type) for driver in drivers())


def cross_tenant_unique_columns(connection: Connection, sets: Iterable[TableDataset]) -> dict[str, frozenset[str]]:
    """Return the columns by dataset, as scripts name them, with an undeclared uniqueness across tenants.

    An index over expressions counts for all written columns, because its columns are unknown.
    """
    found: dict[str, frozenset[str]] = {}
    for rows in sets:
        if not rows.writable:
            continue
        columns_found: set[str] = set()
        by_name = {rows.fields[name].column.name: name for name in rows.writable}
        named = _named(rows)
        for label, columns in driver_of(connection).unique_rules(connection, rows.origin).items():
            plain = [column for column in columns if column is not None]
            allowed = frozenset(plain) in named or _is_allowed(label, plain, rows.allow_unique)
            if rows.tenant_column.name in plain or allowed:
                continue
            columns_found |= (
                {by_name[name] for name in plain if name in by_name} if plain == columns else set(by_name.values())
            )
        if columns_found:
            found[rows.name] = frozenset(columns_found)
    return found


def _named(rows: TableDataset) -> set[frozenset[str]]:
    """Return the column sets of declared constraints that the platform allows by name: SQLite does not keep names."""
    declared = [*rows.origin.constraints, *rows.origin.indexes]
    return {
        frozenset(column.name for column in rule.columns)
        for rule in declared
        if isinstance(rule, sa.Index | sa.UniqueConstraint | sa.PrimaryKeyConstraint) and rule.name in rows.allow_unique
    }
