"""The store context: parameters of store functions beside a connection (ids, caches, settings). It has no state of its own."""

import json
from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import Identities
from lodger.engine.core.settings import Settings
from lodger.engine.store.connection.database import Database
from lodger.engine.store.content_cache import ContentCache
from lodger.engine.store.drivers import PerDriver
from lodger.engine.store.records import Json
from lodger.engine.store.revision_cache import RevisionCache


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The open ledger with its clock, id generator, caches and settings.

    Attributes:
        database_time: whether lease times come from the database's clock; with an injected clock they come from that clock.
        ended: what ended in past parts of a time, by tenant, its generation, hours and part, for
            :mod:`lodger.engine.store.actions.activity`.
    """

    database: Database
    clock: Clock
    ids: Identities
    revision_cache: RevisionCache
    content_cache: ContentCache
    settings: Settings
    database_time: bool = False
    ended: dict[tuple[str | None, int, int, int], Counter[tuple[str, str | None, int]]] = field(default_factory=dict)

    def check_generation(self, tenant_id: str, generation: int) -> None:
        """Drop a tenant's cached revisions and versions if its generation differs from the last one seen."""
        if self.revision_cache.check_generation(tenant_id, generation):
            self.content_cache.forget(tenant_id)

    def forget(self, tenant_id: str) -> None:
        """Drop a tenant's cached revisions and versions, after its rows were replaced."""
        self.revision_cache.forget(tenant_id)
        self.content_cache.forget(tenant_id)

    def lease_us(self, connection: Connection, now_us: int) -> int:
        """Return the time for leases, in microseconds since 1970; ``now_us`` is the time of this process."""
        return database_us(connection) if self.database_time else now_us

    def ledger_us(self) -> int:
        """Return the time by which rows are written, in microseconds since 1970: the server's, or this process's."""
        if not self.database_time:
            return self.clock.now_us()
        with self.database.read() as connection:
            return database_us(connection)


def database_us(connection: Connection) -> int:
    """Return the database's time, in microseconds since 1970."""
    return int(connection.execute(_now.of(connection)).scalar_one())


_now = PerDriver(lambda driver: select(driver.now_us()))


def dump_json(value: Json) -> str | None:
    """Return the JSON text of a value, None for None.

    Raises:
        ValueError, TypeError, RecursionError: the value is not JSON, or a text in it holds a lone surrogate.
    """
    if value is None:
        return None
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text.encode()  # UnicodeEncodeError is a ValueError: text that databases do not store
    return text


def dump_params(params: Json) -> str | None:
    """Return the JSON text of params, None for None.

    Raises:
        InputError: params_invalid.
    """
    try:
        return dump_json(params)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("params_invalid", reason=str(error)) from error


def load_json(text: str | None) -> Json:
    """Return the value of a JSON text, None for None."""
    return None if text is None else json.loads(text)
