"""Lodger's own tables, one module per concern, on one MetaData."""

from lodger.engine.ledger.schema import data
from lodger.engine.ledger.schema.metadata import metadata

__all__ = ["data", "metadata"]
