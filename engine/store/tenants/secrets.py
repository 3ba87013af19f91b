"""Secrets of tenants: stored encrypted, by name, with the hosts that requests may send them to."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, Table, insert, select, update

from lodger.engine.core.access.origins import Origin, parse_origin
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.egress.headers import is_value
from lodger.engine.store.bulk import update_row
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.rows import record
from lodger.engine.store.schema.metadata import SEALED, metadata
from lodger.engine.store.schema.script_data import secrets
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.named import Named
from lodger.engine.vault.redaction import SHORTEST
from lodger.engine.vault.vault import Sealed, Vault

MAX_BYTES = 16 * 1024
MAX_SECRETS = 200
MAX_HOSTS = 20
#: Number of rows that one transaction encrypts again.
BATCH = 200
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
#: Names with another meaning where scripts access secrets.
_TAKEN = frozenset({"basic", "read", "then", "constructor", "toJSON", "toString", "valueOf"})
_c = secrets.c


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret without its value. ``key_id``: the key it is encrypted with."""

    tenant_id: str
    name: str
    hosts: tuple[str, ...]
    key_id: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class OpenSecret:
    """A secret with its value, decrypted for one request."""

    name: str
    hosts: tuple[Origin, ...]
    value: str = field(repr=False)


def put(
    vault: Vault, connection: Connection, tenant_id: str, name: str, value: str, hosts: Iterable[str], now_us: int
) -> Secret:
    """Store a secret, or its new value.

    Raises:
        InputError: secret_name_invalid, secret_value_invalid, host_invalid, secrets_full.
        NotFound: tenant_unknown.
        Unavailable: the keys are not available.
    """
    places = json.dumps(sorted({str(parse_origin(host)) for host in hosts}))
    _check(name, value, places)
    sealed = vault.seal(value, tenant_id, name, places)
    ready_queue.lock(connection, [tenant_id])
    tenants.get(connection, tenant_id)
    mine = (_c.tenant_id == tenant_id, _c.name == name)
    values = {"hosts": places, "key_id": sealed.key_id, "sealed": sealed.text, "updated_us": now_us}
    if connection.execute(update(secrets).where(*mine).values(values)).rowcount == 0:
        if named.count(connection, tenant_id) >= MAX_SECRETS:
            raise InputError("secrets_full", tenant=tenant_id, maximum=MAX_SECRETS)
        prepared.write(connection, insert(secrets).values(tenant_id=tenant_id, name=name, created_us=now_us, **values))
    return named.get(connection, tenant_id, name)


def _check(name: str, value: str, places: str) -> None:
    """Refuse an invalid name, value or list of hosts."""
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise InputError("secret_name_invalid", name=name)  # fmt: skip
    if not len(value) >= SHORTEST or len(value.encode("utf-8", "surrogatepass")) > MAX_BYTES or "\0" in value:
        raise InputError("secret_value_invalid", name=name, shortest=SHORTEST, maximum=MAX_BYTES)  # fmt: skip
    hosts = json.loads(places)
    if hosts and not is_value(value):
        raise InputError("secret_value_invalid.header", name=name)  # fmt: skip
    if len(hosts) > MAX_HOSTS:
        raise InputError("host_invalid.many", count=len(hosts), maximum=MAX_HOSTS)


def open_secrets(vault: Vault, connection: Connection, tenant_id: str, names: Iterable[str]) -> dict[str, OpenSecret]:
    """Return those of a tenant's secrets that exist, with their values.

    Raises:
        Unavailable: the keys are not available, or a row was modified.
    """
    rows = connection.execute(select(secrets).where(_c.tenant_id == tenant_id, _c.name.in_(list(names))))
    found = {}
    for row in rows:
        value = vault.open(Sealed(row.key_id, row.sealed), tenant_id, row.name, row.hosts)
        found[row.name] = OpenSecret(row.name, tuple(parse_origin(host) for host in json.loads(row.hosts)), value)
    return found


def reencrypt(vault: Vault, connection: Connection) -> int:
    """Encrypt a batch of values of one table under older keys with the newest; return their number, 0 if none are left.

    Raises:
        Unavailable: a key is missing, or a row was modified; the batch is not changed.
    """
    newest, _ = vault.keyring.newest()
    for table in _sealed_tables():
        key = table.primary_key.columns
        old = select(table).where(table.c.key_id != newest).order_by(*key).limit(BATCH).with_for_update()
        rows = connection.execute(old).mappings().all()
        for row in rows:
            again = vault.again(Sealed(row["key_id"], row["sealed"]), *table.info[SEALED](row))
            update_row(connection, table, *(row[column.name] for column in key), key_id=again.key_id, sealed=again.text)
        if rows:
            return len(rows)
    return 0


def keys_in_use(connection: Connection) -> set[str]:
    """Return the ids of the keys in use."""
    return {key_id for table in _sealed_tables() for key_id in connection.scalars(select(table.c.key_id).distinct())}


def _sealed_tables() -> list[Table]:
    """Return the tables with encrypted values, those of wings included."""
    return [table for table in metadata.sorted_tables if SEALED in table.info]


named = Named(
    secrets, select(secrets), partial(record, Secret), lambda tenant, name: NotFound("secret_unknown", tenant=tenant, name=name)
)  # fmt: skip
