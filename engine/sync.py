"""The synchronous engine, for Flask, Django and scripts; :class:`lodger.engine.Engine` is the same for asyncio."""

from lodger.engine import features
from lodger.engine.service import engine
from lodger.engine.service.operations.declaration import Sync


class Engine(features.Nouns[Sync], engine.Engine):
    """An open ledger and its verbs. Create one with :meth:`open`; it is thread-safe."""

    def load_wings(self, part: str) -> None:
        """Import the modules that the wings have for a surface, such as ``routes``."""
        features.load(part)


__all__ = ["Engine"]
