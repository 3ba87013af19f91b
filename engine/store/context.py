"""What every function of the ledger is given beside its connection: ids, the revision cache, settings. No state of its own."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, select

from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import Identities
from lodger.engine.core.settings import Settings
from lodger.engine.store.connection.database import Database
from lodger.engine.store.content_cache import Sources
from lodger.engine.store.records import Json
from lodger.engine.store.revision_cache import RevisionCache
from lodger.engine.store.stores import PerDriver


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The open ledger and what is needed to keep it."""

    database: Database
    clock: Clock
    ids: Identities
    revision_cache: RevisionCache
    sources: Sources
    settings: Settings
    #: Whether leases go by the database's own clock; with a clock that was injected they go by that one.
    database_time: bool = False

    def meet(self, tenant_id: str, generation: int) -> None:
        """Forget what is kept of a tenant that is of another generation than it was; called where its work is taken up."""
        if self.revision_cache.meet(tenant_id, generation):
            self.sources.forget(tenant_id)

    def forget(self, tenant_id: str) -> None:
        """Forget what is kept of a tenant, whose rows are others now."""
        self.revision_cache.forget(tenant_id)
        self.sources.forget(tenant_id)

    def lease_us(self, connection: Connection, now_us: int) -> int:
        """Give the time that leases are kept by, microseconds since 1970; ``now_us`` is this process's."""
        return database_us(connection) if self.database_time else now_us


def database_us(connection: Connection) -> int:
    """Ask the database for its time, microseconds since 1970."""
    return int(connection.execute(_now.of(connection)).scalar_one())


_now = PerDriver(lambda driver: select(driver.now_us()))


def dumped(value: Json) -> str | None:
    """JSON text of a value, None for None.

    Raises:
        ValueError, TypeError, RecursionError: it is no JSON, or text in it holds half of a surrogate pair.
    """
    if value is None:
        return None
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text.encode()  # UnicodeEncodeError is a ValueError: what no database can store is refused here, with the rest
    return text


def listed(text: str | None) -> tuple[str, ...] | None:
    """Give the words of a JSON list, None for None."""
    return None if text is None else tuple(json.loads(text))


def input_text(params: Json) -> str | None:
    """JSON text of params, None for None.

    Raises:
        InputError: params_invalid.
    """
    try:
        return dumped(params)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            "params_invalid", "params are not JSON", why=str(error), fix="give plain JSON values"
        ) from error


def loaded(text: str | None) -> Json:
    """Give the value of a JSON text, None for None."""
    return None if text is None else json.loads(text)
