"""For a platform's own tests: the engine on a ledger of its own, a clock that the test moves, a node that works at once.

It must never be imported by code that serves tenants.
"""

from lodger.engine.testing.clock import FakeClock
from lodger.engine.testing.stage import Sent, Stage

__all__ = ["FakeClock", "Sent", "Stage"]
