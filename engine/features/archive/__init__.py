"""Wing: archives that move a tenant to another ledger."""

from lodger.engine.features.archive.operations import TenantVerbs

__all__ = ["TenantVerbs"]
