"""Wing: named locks between the platform's processes."""

from lodger.engine.features.locks.operations import LockNouns

__all__ = ["LockNouns"]
