"""Sees that somebody has committed something, or that the clock was set, and wakes who has to know: one look for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lodger.engine.node.service import Service

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: A clock that is so far from where it should be after a wait was set, or the machine was suspended, microseconds.
STEP_US = 20_000
#: How long who is woken by this one may sleep by itself, seconds.
FAR_S = 60.0
#: How soon a server that could not be asked is asked again, at the least, seconds.
AGAIN_S = 1.0
#: How long a server may take to answer before all look by themselves, seconds.
SILENT_S = 1.0


class Lookout(Service):
    """Looks every ``poll_s``. While nobody can tell of commits, those that depend on them look by themselves."""

    name: ClassVar[str] = "lookout"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._version: object | None = None
        self._expected_us = 0

    def nudge(self) -> None:
        """Whoever would be woken is awake already."""

    async def round(self) -> float:
        """Look once."""
        node, poll_s = self._node, self._node.settings.poll_s
        stepped = abs(self.clock.now_us() - self._expected_us) > STEP_US
        await node.pen.look(SILENT_S)
        version = node.pen.version()
        if version is None:
            if self._version is not None:
                self._version = None
                node.look_again()
            return max(AGAIN_S, poll_s) if node.pen.asks else FAR_S
        if version != self._version or stepped:
            self._version = version
            await node.pen.refresh()
            node.look_again()
        elif node.dispatcher.running or node.dispatcher.in_doubt:
            node.watch.nudge()
        self._expected_us = self.clock.now_us() + int(poll_s * 1_000_000)
        return poll_s
