"""The HTTP API as one ASGI application, and the stock server (uvicorn) that serves it.

It authenticates, limits, validates and writes answers as JSON; every decision is the engine's. It must not import the command line,
the dashboard or the client, and no other package imports it, except ``lodger up``, lazily.
"""
