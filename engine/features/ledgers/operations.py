"""The verbs of a system of several ledgers. An engine of one ledger has them, too, and says that it has one only."""

from dataclasses import dataclass

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import InputError
from lodger.engine.features.ledgers.directory import TenantPlace
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation


@dataclass(frozen=True, slots=True)
class LedgerState:
    """One ledger of the system.

    Attributes:
        place: its address without a password.
        problem: why it cannot be reached; None if it answers.
        tenants: number of tenants that the directory has there, None while it cannot be read; ``room``: their maximum, None for none.
        nodes: names of its running nodes.
        moving: tenants whose move from or to it is not finished; the same command goes on with it.
    """

    name: str
    place: str
    problem: str | None
    tenants: int | None
    room: int | None
    nodes: tuple[str, ...]
    moving: tuple[str, ...]


class TenantVerbs(Noun[M]):
    """Verbs on tenants."""

    @operation("GET", "/tenants/{tenant_id}/ledger", Role.VIEWER, command="ledger")
    def place(self, tenant_id: str) -> TenantPlace:
        """Show the ledger that a tenant lives in.

        Raises:
            NotFound: tenant_unknown. InputError: ledgers_unset.
        """
        raise InputError("ledgers_unset")

    @operation("POST", "/tenants/{tenant_id}/move", Role.ADMIN, slow=True)
    def move(self, tenant_id: str, ledger: str) -> TenantPlace:
        """Move a tenant to another ledger while all others work; what was interrupted goes on when it is called again.

        The tenant is suspended, copied, switched to the other ledger, resumed there, and erased in the one that it leaves.
        Slots of the time between become gap rows. With the ledger that it lives in, an unfinished move is taken back.

        Args:
            ledger: name of a ledger of the file that ``LODGER_LEDGERS`` names.

        Raises:
            NotFound: tenant_unknown, ledger_unknown.
            Conflict: tenant_moving, tenant_exists, tenant_unfinished, tenant_too_large, script_not_offered, platform_stays.
            Unavailable: ledger_unreachable. InputError: ledgers_unset.
        """
        raise InputError("ledgers_unset")


LedgerList = list[LedgerState]


class Ledgers(Noun[M]):
    """The ledgers of the system, each on a PostgreSQL server or in a SQLite file of its own."""

    @operation("GET", "/ledgers", Role.AUDITOR)
    def list(self) -> LedgerList:
        """List the ledgers in the order of the file that ``LODGER_LEDGERS`` names; none without it."""
        return []
