"""Wing: several ledgers as one system, with a directory of the tenants of each, and a verb that moves a tenant."""

from lodger.engine.features.ledgers.operations import Ledgers, TenantVerbs
from lodger.engine.features.ledgers.system import System
from lodger.engine.service import engine

engine.SYSTEMS.append(System.open)

__all__ = ["Ledgers", "TenantVerbs"]
