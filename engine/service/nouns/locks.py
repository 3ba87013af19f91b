"""The verbs on named locks: work of the platform's that one process does at a time, or once for each slot."""

from datetime import datetime, timedelta

from lodger.engine.core.access import names
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.service.nouns.noun import Verbs, aware
from lodger.engine.store.platform import locks
from lodger.engine.store.platform.locks import Lock

# Inside the noun the word ``list`` is a verb.
LockList = list[Lock]
#: Longest lease: whoever holds a lock renews it, or has died.
MOST_US = 86_400_000_000


class Locks(Verbs):
    """Named locks between the platform's processes. They change hands by the minute, so the audit log leaves them out."""

    __slots__ = ()

    def take(
        self, name: str, holder: str, lease: float | str | timedelta = "1m", *, slot: datetime | None = None
    ) -> Lock | None:
        """Take a lock, or renew it by taking it again; None when another has it.

        Args:
            holder: who takes it, such as host and process: whoever says the same is the same.
            lease: until when it is held unless it is renewed or freed: milliseconds, a timedelta, or a text such as ``"90s"``; at
                most a day. By the database's time where several machines share it.
            slot: take it for this occurrence: it is given to one, once, even after it was freed.

        Raises:
            InputError: lock_name_invalid, lock_holder_invalid, lock_lease_invalid, instant_naive.
        """
        names.check(name, "lock_name_invalid", "a lock", "such as rebuild-index")
        names.check(holder, "lock_holder_invalid", "who holds a lock", "such as the host's name and the process's id")
        lease_us, at = _us(lease), aware(slot)
        if not 0 < lease_us <= MOST_US:
            raise InputError(
                "lock_lease_invalid", f"nobody holds a lock for {lease!r}", why="a lease ends within a day", fix='"1m"'
            )
        with self.books.database.write() as connection:
            slot_us = None if at is None else to_us(at)
            return locks.take(self.books, connection, name, holder, lease_us, slot_us, self._now_us)

    def free(self, name: str, holder: str) -> bool:
        """Give a lock back; False when this holder did not have it any more."""
        with self.books.database.write() as connection:
            return locks.free(self.books, connection, name, holder, self._now_us)

    def list(self) -> LockList:
        """Give every lock that was ever taken, by name, with who has it."""
        with self.books.database.read() as connection:
            return locks.list_all(self.books, connection, self._now_us)


def _us(lease: float | str | timedelta) -> int:
    if isinstance(lease, str):
        return parse_duration(lease)
    if isinstance(lease, timedelta):
        return lease // timedelta(microseconds=1)
    # NaN is below nothing.
    return round(lease * 1000) if abs(lease) < MOST_US else 0
