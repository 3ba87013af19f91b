"""The verbs on named locks, and ``engine.lock``, which holds one during a block."""

from datetime import datetime, timedelta
from typing import Generic

from lodger.engine.core.access import names
from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.features.locks.blocks import MAX_US, Block, lease_us
from lodger.engine.service.nouns.base import Noun, aware
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.platform import locks
from lodger.engine.store.platform.locks import Lock

LockList = list[Lock]


class Locks(Noun[M]):
    """Locks between the platform's processes: each has at most one holder. Their changes are frequent and not in the audit log."""

    @operation("POST", "/locks/{name}/take", Role.OPERATOR, may_fail=True, home=True)
    def take(
        self, name: str, holder: str, lease: float | str | timedelta = "1m", *, slot: datetime | None = None
    ) -> Lock | None:
        """Take a lock, or renew it by taking it again; None if another holder has it.

        Args:
            holder: name of the holder, such as host and process; equal names are the same holder.
            lease: time after which the lock is freed if it is not renewed: milliseconds, a timedelta, or a text such as
                ``"90s"``; at most a day, by the database's time if several machines share it.
            slot: take it for this occurrence of a schedule: only one holder gets it, also after it was freed.

        Raises:
            InputError: lock_name_invalid, lock_holder_invalid, lock_lease_invalid, instant_naive.
        """
        names.check(name, "lock_name_invalid")
        names.check(holder, "lock_holder_invalid")
        wanted_us, at = lease_us(lease), aware(slot)
        if not 0 < wanted_us <= MAX_US:
            raise InputError("lock_lease_invalid", lease=lease)
        with self.context.database.write() as connection:
            slot_us = None if at is None else to_us(at)
            return locks.take(self.context, connection, name, holder, wanted_us, slot_us, self._now_us)

    @operation("POST", "/locks/{name}/free", Role.OPERATOR, may_fail=True, home=True)
    def free(self, name: str, holder: str) -> bool:
        """Free a lock; False if this holder did not have it."""
        with self.context.database.write() as connection:
            return locks.free(self.context, connection, name, holder, self._now_us)

    @operation("GET", "/locks", Role.AUDITOR, home=True)
    def list(self) -> LockList:
        """List every lock that was ever taken, by name, with its holder."""
        with self.context.database.read() as connection:
            return locks.list_all(self.context, connection, self._now_us)


class LockNouns(Generic[M]):
    """Named locks on an engine or a client."""

    locks: Locks[M]

    def lock(
        self,
        name: str,
        lease: float | str | timedelta = "1m",
        *,
        slot: datetime | None = None,
        holder: str | None = None,
    ) -> Block:
        """Hold a named lock during a block, renewing its lease: ``with engine.lock("rebuild") as held: if held: …``.

        The value is None if another process or thread holds the lock; arguments as for ``locks.take``. With asyncio:
        ``async with engine.lock(…)``.
        """
        return Block(self.locks, name, lease, slot, holder)
