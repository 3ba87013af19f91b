"""What a table's uniqueness would tell one tenant of another: as the platform declares it, and as its database really has it.

A violation of a rule that spans tenants says that somebody has a value. ``expose()`` refuses to have such columns written; a rule
that stands in the database alone is found by :func:`telling`, and its columns are not written either.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Table
from sqlalchemy.dialects import postgresql

from lodger.engine.core.errors import InputError
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.values.identifiers import preparer
from lodger.engine.data.values.stored import SQLITE

#: Collations that find nothing alike but what is the same.
_EXACT = frozenset({"C", "POSIX", "BINARY", "UCS_BASIC", "C.UTF-8", "C.UTF8", "PG_C_UTF8"})


def demand_apart(table: Table, tenant: Column[Any], writes: list[Column[Any]], allowed: frozenset[str]) -> None:
    """Refuse writes to columns whose uniqueness spans tenants.

    A tenant's column that is said to compare loosely does not keep tenants apart in a constraint.

    Raises:
        InputError: expose_unique.
    """
    apart = not loose(tenant)
    rules: list[tuple[str, list[Column[Any]], bool]] = []
    rules.extend(
        (str(constraint.name or ""), list(constraint.columns), False)
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint | sa.PrimaryKeyConstraint)
    )
    # An exclusion constraint may compare by anything; only "=" on the tenant's column keeps tenants apart.
    rules.extend(
        (
            str(constraint.name or ""),
            [
                column
                for column in constraint.columns
                if column is not tenant or constraint.operators[column.name] == "="
            ],
            True,
        )
        for constraint in table.constraints
        if isinstance(constraint, postgresql.ExcludeConstraint)
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
        raise InputError(
            "expose_unique",
            f"{table.name}: {', '.join(c.name for c in columns)} is unique over all tenants, and scripts would write it",
            why="a violation would tell one tenant what another has",
            fix=f"add {tenant.name} to the constraint, leave the column out of write=, or name it in allow_unique=",
        )


def _is_allowed(label: str, columns: Sequence[str], allowed: frozenset[str]) -> bool:
    return label in allowed or (len(columns) == 1 and columns[0] in allowed)


def loose(column: Column[Any]) -> bool:
    """Whether a column says of itself that it takes different texts for the same."""
    collation = getattr(column.type, "collation", None)
    return isinstance(column.type, postgresql.CITEXT) or (collation or "C").upper() not in _EXACT


def telling(connection: Connection, sets: Iterable[TableDataset]) -> dict[str, frozenset[str]]:
    """Give the columns, by set and as scripts name them, whose uniqueness spans tenants though nobody declared it.

    Of an index over expressions all columns that are written count: what it compares is not known.
    """
    found: dict[str, frozenset[str]] = {}
    for rows in sets:
        if not rows.writable:
            continue
        told: set[str] = set()
        by_name = {rows.fields[name].column.name: name for name in rows.writable}
        named = _named(rows)
        for label, columns in _rules(connection, rows.origin).items():
            plain = [column for column in columns if column is not None]
            allowed = frozenset(plain) in named or _is_allowed(label, plain, rows.allow_unique)
            if rows.tenant_column.name in plain or allowed:
                continue
            told |= {by_name[name] for name in plain if name in by_name} if plain == columns else set(by_name.values())
        if told:
            found[rows.name] = frozenset(told)
    return found


def _named(rows: TableDataset) -> set[frozenset[str]]:
    """Give the columns of declared rules that are allowed by their names, which SQLite forgets."""
    declared = [*rows.origin.constraints, *rows.origin.indexes]
    return {
        frozenset(column.name for column in rule.columns)
        for rule in declared
        if isinstance(rule, sa.Index | sa.UniqueConstraint | sa.PrimaryKeyConstraint) and rule.name in rows.allow_unique
    }


def _rules(connection: Connection, table: Table) -> dict[str, list[str | None]]:
    """Give the columns of each unique rule by its name, None where it is over an expression."""
    names = preparer(connection.dialect.name)
    place = table.name if connection.dialect.name == SQLITE else names.format_table(table)
    found: dict[str, list[str | None]] = {}
    for label, column in connection.execute(_UNIQUE[connection.dialect.name], {"table": place}):
        found.setdefault(label, []).append(column)
    return found


#: Asked of the catalogues themselves: SQLAlchemy's inspector passes over indexes on expressions.
_UNIQUE = {
    SQLITE: sa.text(
        'SELECT l.name, i.name FROM pragma_index_list(:table) l, pragma_index_info(l.name) i WHERE l."unique" '
        "UNION ALL SELECT 'the key', name FROM pragma_table_info(:table) WHERE pk > 0"
    ),
    "postgresql": sa.text(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place) "
        "LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0 "
        "WHERE i.indrelid = to_regclass(:table) AND k.place <= i.indnkeyatts AND (i.indisunique OR i.indisexclusion)"
    ),
}
