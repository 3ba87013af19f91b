"""Grants of tenants, and the addresses of their own people."""

import json
import re
from collections.abc import Iterable

from sqlalchemy import Connection

from lodger.engine.core.access import grants
from lodger.engine.core.access.origins import with_ascii_domain
from lodger.engine.core.errors import InputError
from lodger.engine.store.bulk import update_row
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema.scheduling import tenants as rows
from lodger.engine.store.tenants import tenants

MAX_PEOPLE = 10_000
_PERSON = re.compile(r"(\*|[^\s@*,;:<>\"()\[\]\\]{1,64})@[a-z0-9-]+(\.[a-z0-9-]+)*", re.ASCII)


def list_grants(context: StoreContext, connection: Connection, tenant_id: str) -> tuple[str, ...]:
    """Return the tenant's grants as written, or those of the setting if it has none of its own."""
    given = tenants.get(connection, tenant_id).grants
    return context.content_cache.grants(None if given is None else json.dumps(given)).shown()


def store_grants(connection: Connection, tenant_id: str, held: Iterable[str] | None) -> None:
    """Store exactly these grants; None stands for those of the setting, even if it changes.

    Raises:
        InputError: grant_unknown, grants_too_many, host_invalid.
        NotFound: tenant_unknown.
    """
    ready_queue.lock(connection, [tenant_id])
    tenants.get(connection, tenant_id)
    update_row(connection, rows, tenant_id, grants=encode(held))


def change_grants(
    context: StoreContext, connection: Connection, tenant_id: str, give: Iterable[str], take: Iterable[str]
) -> None:
    """Add and remove grants; those of the setting become the tenant's own. Removing a missing grant changes nothing.

    Raises:
        InputError, NotFound: as :func:`store_grants`.
    """
    ready_queue.lock(connection, [tenant_id])
    taken, given = grants.parse(take).shown(), grants.parse(give).shown()
    # A grant of fetch replaces one of other limits for the same hosts, and is taken whatever its limits are.
    kept = [
        each
        for each in list_grants(context, connection, tenant_id)
        if each not in taken and not any(grants.same_host(each, other) for other in (*taken, *given))
    ]
    update_row(connection, rows, tenant_id, grants=encode({*kept, *given}))


def encode(held: Iterable[str] | None) -> str | None:
    """Check grants and return their JSON text."""
    return None if held is None else json.dumps(grants.parse(held).shown())


def store_people(connection: Connection, tenant_id: str, addresses: Iterable[str]) -> None:
    """Replace the addresses of the tenant's own people: addresses, and ``*@example.com`` for whole domains.

    Raises:
        InputError: address_invalid, people_too_many.
        NotFound: tenant_unknown.
    """
    ready_queue.lock(connection, [tenant_id])
    tenants.get(connection, tenant_id)
    update_row(connection, rows, tenant_id, people=encode_people(addresses))


def encode_people(addresses: Iterable[str]) -> str | None:
    """Check addresses and return their JSON text."""
    found = sorted({_ascii(address.strip().lower()) for address in addresses})
    for address in found:
        if not _PERSON.fullmatch(address):
            raise InputError("address_invalid", address=address)
    if len(found) > MAX_PEOPLE:
        raise InputError("people_too_many", count=len(found), max_people=MAX_PEOPLE)  # fmt: skip
    return json.dumps(found) if found else None


def _ascii(address: str) -> str:
    """Return a mail address with its domain in ASCII."""
    try:
        return with_ascii_domain(address)
    except ValueError:
        raise InputError("address_invalid", address=address) from None


def is_one_of(people: Iterable[str], address: str) -> bool:
    """Whether an address is one of these people's, or of one of their domains."""
    wanted = address.lower()
    return bool({wanted, "*@" + wanted.rpartition("@")[2]} & set(people))
