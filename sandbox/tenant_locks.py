"""A lock for each tenant: of several tenants each has its turn, whatever one of them asks for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary


class TenantLocks:
    """Locks by tenant; one that is not used any more is removed."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    @contextmanager
    def held(self, tenant: str) -> Iterator[None]:
        """Hold a tenant's lock for the block."""
        with self._making:
            one = self._locks.setdefault(tenant, threading.Lock())
        with one:
            yield
