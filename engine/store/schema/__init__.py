"""Lodger's own tables, one module per concern, on one MetaData. It must never hold a query."""

from lodger.engine.store.schema import (
    access,
    feeds,
    nodes,
    scheduling,
    script_data,
)
from lodger.engine.store.schema.metadata import metadata

__all__ = [
    "access",
    "feeds",
    "metadata",
    "nodes",
    "scheduling",
    "script_data",
]
