"""Wing: plans, named sets of limits that tenants refer to. Their table is the main line's, whose queries combine the limits."""

from lodger.engine.features.plans.operations import Plans

__all__ = ["Plans"]
