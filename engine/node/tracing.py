"""The interface by which a node makes spans of its attempts; a wing implements it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from lodger.engine.capabilities.fetch_state import Send
from lodger.engine.core.events import EventBus
from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Execute


class Tracer(Protocol):
    """The spans of one node."""

    def traced(self, execute: Execute) -> Execute:
        """Return a function that executes an attempt in its span."""

    def calls(self) -> Callable[[str], AbstractContextManager[object]]:
        """Return a function that records the span of a host call, by the call's name, below the present span."""

    def sending(self, send: Send) -> Send:
        """Return a way out that records the span of each request."""

    def exemplar(self, claim: Claim) -> dict[str, str] | None:
        """Return the labels of an exemplar that leads to a claim's trace, None if the trace is not sampled."""

    def subscribe(self, bus: EventBus) -> None:
        """Record the span of a slot when its action has ended."""

    async def close(self) -> None:
        """Export the remaining spans."""


#: Open a tracer for a node, by the node's name; None if spans are not exported.
TRACERS: list[Callable[[str], Tracer | None]] = []


def open_tracer(node: str) -> Tracer | None:
    """Return the first tracer that exports spans; None if there is none."""
    return next((tracer for each in TRACERS if (tracer := each(node)) is not None), None)
