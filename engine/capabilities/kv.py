"""Host side of ``kv``: JSON values under keys, of the whole tenant or (``own``) of the running schedule."""

from typing import Any

from sqlalchemy import Connection

from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request
from lodger.engine.effects import kv_store
from lodger.engine.effects.effect import KvAdd, KvSet
from lodger.engine.effects.journal_rows import KnownValue
from lodger.engine.store.drivers import prepared

MAX_VALUE = 64 * 1024
MAX_TTL_S = 366 * 86_400
DEFAULT_LIMIT = 100
#: Maximum size of one answer; the next page begins after its last key.
PAGE_BYTES = 512 * 1024


def _scope(session: Session, given: dict[str, Any]) -> str:
    """Return the scope of a key: shared by the tenant, or of the schedule."""
    if not given["own"]:
        return ""
    if session.claim.schedule_id is None:
        raise bad_request("this run does not belong to a schedule, so it has no own keys")
    return session.claim.schedule_id


async def _known(session: Session, scope: str, key: str) -> KnownValue:
    """Return the known state of a key, reading it if necessary."""
    held = session.journal.value(scope, key)
    if not held.known and not held.written:
        session.budgets.spend("queries")

        def read_value(connection: Connection) -> str | None:
            """Return the committed value of the key as JSON text, None without one."""
            prepared.last(connection)
            return kv_store.read(connection, session.claim.tenant_id, scope, [key], session.now_us).get(key)

        held.base = held.now = await session.read(read_value)
        held.known = True
    return held


async def get(session: Session, given: dict[str, Any]) -> Any:
    """Handle kv.get: return the value of a key, null if it has none."""
    held = await _known(session, _scope(session, given), given["key"])
    held.shown = held.known
    return None if held.now is None else strict_json.parse(held.now)


async def set_(session: Session, given: dict[str, Any]) -> None:
    """Handle kv.set: the new value of a key enters the journal."""
    effect = _effect(session, given)
    session.budgets.spend("rows_written")
    session.journal.set_value(effect, effect.value)


async def swap(session: Session, given: dict[str, Any]) -> bool:
    """Handle kv.swap: return whether the key had the expected value and has the new one now.

    The commit checks the value again: a different one by then is a conflict.
    """
    effect = _effect(session, given)
    held = await _known(session, effect.scope, effect.key)
    held.shown = held.known
    expected = None if given["expected"] is None else strict_json.normal(given["expected"])
    if not _equal(None if held.now is None else strict_json.parse(held.now), expected):
        return False
    session.budgets.spend("rows_written")
    session.journal.set_value(effect, effect.value)
    return True


def _effect(session: Session, given: dict[str, Any]) -> KvSet:
    """Validate a value and its lifetime; a value of null deletes the key only in a swap."""
    text: str | None = strict_json.dump(strict_json.normal(given["value"]))
    if len((text or "").encode()) > MAX_VALUE:
        raise bad_request(f"a value has at most {MAX_VALUE} bytes of JSON")
    expires_us = None
    if given["ttlSeconds"] is not None:
        if not 0 < given["ttlSeconds"] <= MAX_TTL_S:
            raise bad_request(f"ttlSeconds must be from 1 to {MAX_TTL_S}")
        expires_us = session.now_us + int(given["ttlSeconds"] * 1_000_000)
    if given["value"] is None and "expected" in given:
        text = expires_us = None
    return KvSet(_scope(session, given), given["key"], text, expires_us, line=given["line"])


def _equal(one: Any, two: Any) -> bool:
    """Compare JSON values like JavaScript: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(one[name], two[name]) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_equal, one, two))
    return bool(one == two)


async def delete(session: Session, given: dict[str, Any]) -> None:
    """Handle kv.delete: the deletion of a key enters the journal."""
    session.budgets.spend("rows_written")
    session.journal.set_value(KvSet(_scope(session, given), given["key"], None, line=given["line"]), None)


async def add(session: Session, given: dict[str, Any]) -> Any:
    """Handle kv.add: return the new number."""
    scope = _scope(session, given)
    held = await _known(session, scope, given["key"])
    now = kv_store.add_amount(held.now, given["amount"])
    session.budgets.spend("rows_written")
    session.journal.set_value(KvAdd(scope, given["key"], given["amount"], line=given["line"]), now)
    return strict_json.parse(now)


async def list_(session: Session, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Handle kv.list: return a page of keys with their values, in code point order, including the journal's."""
    scope, prefix, after = _scope(session, given), given["prefix"] or "", given["after"] or ""
    limit = min(given["limit"] or DEFAULT_LIMIT, 500)
    own = {key: held.now for (of, key), held in session.journal.values.items() if of == scope and held.written}
    session.budgets.spend("queries")

    def list_committed(connection: Connection) -> list[tuple[str, str]]:
        """Return committed keys with their values: enough for a page beside the run's own."""
        many = limit + len(own)
        return kv_store.list_page(connection, session.claim.tenant_id, scope, prefix, after, many, session.now_us)

    found: dict[str, str | None] = dict(await session.read(list_committed))
    found |= {key: value for key, value in own.items() if key.startswith(prefix) and key > after}
    kept = [(key, value) for key, value in sorted(found.items()) if value is not None][:limit]
    shown: list[dict[str, Any]] = []
    size = 0
    for key, value in kept:
        size += len(key) + len(value)
        if shown and size > PAGE_BYTES:
            break
        shown.append({"key": key, "value": strict_json.parse(value)})
    session.budgets.spend("rows_read", len(shown))
    return shown


HANDLERS = {"kv.get": get, "kv.set": set_, "kv.swap": swap, "kv.delete": delete, "kv.add": add, "kv.list": list_}
