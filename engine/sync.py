"""The synchronous engine, for Flask, Django and scripts; :class:`lodger.engine.Engine` is the same for asyncio."""

from lodger.engine.service.engine import Engine

__all__ = ["Engine"]
