"""The engine's operations, asked of a server over HTTP: the same names, parameters and results. It opens no ledger.

``Client`` for scripts, Flask and Django, ``AsyncClient`` for asyncio. Names load on first use (PEP 562).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.engine.client.aio import AsyncClient
    from lodger.engine.client.blocking import Client

__all__ = ["AsyncClient", "Client"]

_HOMES = {"AsyncClient": "aio", "Client": "blocking"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        home = import_module(f"lodger.engine.client.{_HOMES[name]}")
    except ModuleNotFoundError as missing:
        if missing.name != "httpx2":
            raise
        text = "the client needs httpx2, which is not installed: pip install 'lodger[client]'"
        raise ModuleNotFoundError(text, name=missing.name) from missing
    return getattr(home, name)
