"""Gives up the lease of this node in time."""

from typing import ClassVar

from lodger.engine.node.service import Service


class LeaseWatchdog(Service):
    """Drops the lease by this node's own elapsed time, even if the database does not answer."""

    name: ClassVar[str] = "lease-watchdog"

    async def round(self) -> float:
        """Drop a lease that was not renewed in time."""
        settings, identity = self.context.settings, self.context.identity
        left = identity.renewed_s + settings.lease_s - settings.surrendering_s - self.clock.elapsed_s()
        if identity.lease is not None and left <= 0:
            self.context.surrender("the lease could not be renewed in time")
        return min(max(left, 0.05), settings.renewal_s)
