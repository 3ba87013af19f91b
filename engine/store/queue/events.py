"""Events of scripts and of the engine that leave the engine, and the hook of their receivers."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, false, or_

from lodger.engine.store.records import Json

#: Format of an event's name.
EVENT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,62}){0,7}", re.ASCII)
#: Prefix of the names of the engine's own events.
ENGINE_PREFIX = "lodger."


@dataclass(frozen=True, slots=True)
class Receivers:
    """A kind of receivers of a tenant's events.

    Attributes:
        enqueue: see :func:`enqueue`.
        subscriptions: the patterns of events by tenant, of those of these tenants that have receivers.
        exist: the condition that the tenant of a column has receivers.
        find: the receiver of a name of a tenant, None if there is none.
    """

    enqueue: Callable[[Connection, str, str, Json, tuple[str, int, int], int], int]
    subscriptions: Callable[[Connection, Sequence[str]], dict[str, list[list[str]]]] = lambda _connection, _tenants: {}
    exist: Callable[[ColumnElement[Any]], ColumnElement[bool]] = lambda _tenant: false()
    find: Callable[[Connection, str, str], object | None] = lambda _connection, _tenant, _name: None


#: Appended to by wings.
RECEIVERS: list[Receivers] = []


def enqueue(
    connection: Connection, tenant_id: str, event: str, data: Json, place: tuple[str, int, int], now_us: int
) -> int:
    """Enqueue an event for every receiver of the tenant that subscribes to it; return how many there are.

    Args:
        place: action id, step and number of the effect; the message ids are derived from it.
    """
    return sum(each.enqueue(connection, tenant_id, event, data, place, now_us) for each in RECEIVERS)


def subscribers(connection: Connection, tenant_ids: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the tenants, each with the names of those of these events of the engine that a receiver subscribes to."""
    for receivers in RECEIVERS:
        for tenant_id, patterns in receivers.subscriptions(connection, tenant_ids).items():
            yield from ((tenant_id, name) for name in names if any(matches(each, name) for each in patterns))


def have_receivers(tenant: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that the tenant of a column has receivers."""
    return or_(false(), *(each.exist(tenant) for each in RECEIVERS))


def has_receiver(connection: Connection, tenant_id: str, name: str) -> bool:
    """Whether a tenant has a receiver of this name."""
    return any(each.find(connection, tenant_id, name) is not None for each in RECEIVERS)


def matches(patterns: Sequence[str], event: str) -> bool:
    """Whether a pattern matches an event. The engine's own events match by name or ``lodger.*``, never by ``*`` alone."""
    if event.startswith(ENGINE_PREFIX):
        patterns = [each for each in patterns if each.startswith(ENGINE_PREFIX)]
    return any(each in ("*", event) or (each.endswith(".*") and event.startswith(each[:-1])) for each in patterns)
