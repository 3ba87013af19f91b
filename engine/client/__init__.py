"""The engine's operations, asked of a server over HTTP: the same names, parameters and results. It opens no ledger.

``Client`` for scripts, Flask and Django, ``AsyncClient`` for asyncio.
"""

try:
    from lodger.engine.client.aio import AsyncClient
    from lodger.engine.client.blocking import Client
except ModuleNotFoundError as missing:
    if missing.name != "httpx2":
        raise
    text = "the client needs httpx2, which is not installed: pip install 'lodger[client]'"
    raise ModuleNotFoundError(text, name=missing.name) from missing

__all__ = ["AsyncClient", "Client"]
