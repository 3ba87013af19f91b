"""Lodger's own tables, one module per concern, on one MetaData. It must never hold a query."""

from lodger.engine.store.schema import access, alerts, feeds, nodes, scheduling, script_data
from lodger.engine.store.schema.metadata import metadata

__all__ = ["access", "alerts", "feeds", "metadata", "nodes", "scheduling", "script_data"]
