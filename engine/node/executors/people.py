"""Who belongs to a tenant and may be mailed without further grant: as the ledger knows it, or as the platform answers."""

from collections.abc import Callable, Collection

from sqlalchemy import Connection, select

from lodger.engine.capabilities.session import Reads
from lodger.engine.store.context import listed
from lodger.engine.store.schema.scheduling import tenants
from lodger.engine.store.tenants.grants import is_one_of


class StoredPeople:
    """Asks the ledger (``engine.grants.people``). Satisfies :class:`~lodger.engine.capabilities.session.People`.

    Args:
        read: answers a question on the ledger's database, not as the role of scripts.
    """

    def __init__(self, read: Reads) -> None:
        self._read = read

    async def __call__(self, tenant_id: str, addresses: Collection[str], /) -> Collection[str]:
        """Give those that are own."""

        def ask(connection: Connection) -> tuple[str, ...]:
            return listed(connection.scalar(select(tenants.c.people).where(tenants.c.id == tenant_id))) or ()

        known = await self._read(ask)
        return {address for address in addresses if is_one_of(known, address)}


class AskedPeople:
    """Asks the platform, in a thread for reads: it may look into its own tables.

    Args:
        read: whose threads are used.
        is_own: whether an address is one of a tenant's own people's.
    """

    def __init__(self, read: Reads, is_own: Callable[[str, str], bool]) -> None:
        self._read = read
        self._is_own = is_own

    async def __call__(self, tenant_id: str, addresses: Collection[str], /) -> Collection[str]:
        """Give those that are own."""
        return await self._read(lambda _connection: {each for each in addresses if self._is_own(tenant_id, each)})
