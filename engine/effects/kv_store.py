"""Keyed values in the ledger's database: queries, conflict checks and writes."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, or_

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import OwnTable
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects.commit_errors import ConflictFound
from lodger.engine.effects.effect import KvAdd, KvSet, add_numbers
from lodger.engine.effects.write_set import WriteSet
from lodger.engine.store.schema.script_data import kv

_VALUES = OwnTable(kv)
MAX_KEY = 512


def read(connection: Connection, tenant_id: str, scope: str, keys: Iterable[str], now_us: int) -> dict[str, str]:
    """Return the JSON texts of the keys with an unexpired value."""
    found = _unexpired(tenant_id, scope, now_us).where(kv.c.key.in_(list(keys)))
    return {row.key: row.value for row in connection.execute(found)}


def list_page(
    connection: Connection, tenant_id: str, scope: str, prefix: str, after: str, limit: int, now_us: int
) -> list[tuple[str, str]]:
    """Return (key, JSON text) of keys with this prefix after ``after``, in code point order."""
    found = _unexpired(tenant_id, scope, now_us).where(kv.c.key > after)
    if prefix:
        found = found.where(kv.c.key >= prefix, kv.c.key <= prefix + "\U0010ffff" * MAX_KEY)
    return [(row.key, row.value) for row in connection.execute(found.order_by(kv.c.key).limit(limit))]


def _unexpired(tenant_id: str, scope: str, now_us: int) -> Any:
    """Select the values of a scope that have not expired."""
    alive = or_(kv.c.expires_us.is_(None), kv.c.expires_us > now_us)
    return Scope(tenant_id).select(_VALUES, kv.c.key, kv.c.value).where(kv.c.scope == scope, alive)


def check_unchanged(connection: Connection, write_set: WriteSet, now_us: int) -> None:
    """Check that keys that were read and then set still have the same value; additions are not checked.

    Raises:
        ConflictFound: a value has changed.
    """
    for held in write_set.held:
        if read(connection, write_set.tenant_id, held.scope, [held.key], now_us).get(held.key) != held.base:
            what = f"kv: the value of '{held.key}' has changed in the meantime"
            raise ConflictFound("conflict", what, index=held.index, place=held.line)


def write(connection: Connection, tenant_id: str, effect: KvSet | KvAdd, now_us: int) -> None:
    """Write a change of a key's value.

    Raises:
        CallRefused: ``not_a_number`` or ``out_of_range`` of an addition.
    """
    scope = Scope(tenant_id)
    if isinstance(effect, KvSet):
        scope.set_value(connection, effect.scope, effect.key, effect.value, effect.expires_us, now_us)
        return
    place = (kv.c.scope == effect.scope, kv.c.key == effect.key)
    row = connection.execute(scope.select(_VALUES, kv.c.value, kv.c.expires_us).where(*place).with_for_update()).first()
    alive = row if row is not None and (row.expires_us is None or row.expires_us > now_us) else None
    value = add_amount(alive.value if alive else None, effect.amount)
    scope.set_value(connection, effect.scope, effect.key, value, alive.expires_us if alive else None, now_us)


def add_amount(held: str | None, amount: float) -> str:
    """Return the JSON text of the sum of a stored number and an amount.

    Raises:
        CallRefused: ``not_a_number`` or ``out_of_range``.
    """
    number = 0 if held is None else strict_json.parse(held)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise CallRefused("not_a_number", "the value of the key is not a number")
    return strict_json.dump(add_numbers(number, amount))
