"""Queries and statements on Lodger's own tables, synchronous on a connection. It must never decide policy or run a script."""
