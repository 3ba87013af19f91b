"""Wing: batches, many tenants, scripts and schedules that are created in one request and one transaction."""

from lodger.engine.features.batches.operations import Batches

__all__ = ["Batches"]
