"""Wing: the documents of collections, read and changed by people."""

from lodger.engine.features.documents.operations import Documents

__all__ = ["Documents"]
