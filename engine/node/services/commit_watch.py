"""Learns of commits by asking the database for its version."""

from typing import ClassVar

from lodger.engine.core.events import LedgerChanged
from lodger.engine.node.context import FAR_S, NodeContext
from lodger.engine.node.service import Service

#: A clock that is so far from where it should be after a wait was set, or the machine was suspended, microseconds.
STEP_US = 20_000
#: How soon a server that could not be asked is asked again, at the least, seconds.
MIN_AGAIN_S = 1.0
#: How long a server may take to answer before all services look by themselves, seconds.
SILENT_S = 1.0


class CommitWatch(Service):
    """Looks every ``poll_s``, once for all services. While commits cannot be seen, those that depend on them look by themselves."""

    name: ClassVar[str] = "commit-watch"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._version: object | None = None
        self._expected_us = 0

    async def round(self) -> float:
        """Publish that another process has committed, or that the clock was set."""
        context, poll_s = self.context, self.context.settings.poll_s
        stepped = abs(self.clock.now_us() - self._expected_us) > STEP_US
        await context.db.poll_version(SILENT_S)
        version = context.db.version()
        if version is None:
            if self._version is not None:
                self._version = None
                context.bus.publish(LedgerChanged())
            return max(MIN_AGAIN_S, poll_s) if context.db.polls else FAR_S
        if version != self._version or stepped:
            self._version = version
            await context.db.refresh()
            context.bus.publish(LedgerChanged())
        self._expected_us = self.clock.now_us() + int(poll_s * 1_000_000)
        return poll_s
