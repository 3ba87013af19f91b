"""The dashboard: server-rendered pages over the declared operations, with the API's sessions, roles and limits.

It reads through operations only, never from tables; changes go through the HTTP API from the browser. Installed by ``lodger[web]``.
"""
