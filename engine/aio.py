"""The engine for asyncio, which the package exports; :mod:`lodger.engine.sync` is the same for threads."""

from lodger.engine import features, sync
from lodger.engine.service import async_engine
from lodger.engine.service.operations.declaration import Async


class Engine(features.Nouns[Async], async_engine.Engine):
    """An open ledger, for asyncio. ``async with Engine.open(path) as engine``, or :meth:`open` and :meth:`close`."""

    inner: sync.Engine
    threaded = sync.Engine


__all__ = ["Engine"]
