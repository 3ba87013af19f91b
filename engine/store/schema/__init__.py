"""Lodger's own tables, one module per concern, on one MetaData. It must never hold a query."""

from lodger.engine.store.schema import data, feeds, nodes, platform, scheduling
from lodger.engine.store.schema.metadata import metadata

__all__ = ["data", "feeds", "metadata", "nodes", "platform", "scheduling"]
