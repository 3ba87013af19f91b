"""Lodger's own tables, one module per concern, on one MetaData. It must never hold a query."""

from lodger.engine.store.schema import (
    access,
    attempt_records,
    feeds,
    nodes,
    scheduling,
    script_data,
)
from lodger.engine.store.schema.metadata import metadata

__all__ = [
    "access",
    "attempt_records",
    "feeds",
    "metadata",
    "nodes",
    "scheduling",
    "script_data",
]
