"""The four roles of tokens; each includes those before it. Two are for tenants, two for the platform."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """A role; each covers those before it."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def of_platform(self) -> bool:
        """Whether it sees every tenant."""
        return self in {Role.OPERATOR, Role.ADMIN}

    def covers(self, needed: "Role") -> bool:
        """Whether a caller with this role may use operations that need the other."""
        return _RANK[self] >= _RANK[needed]


_RANK = {role: rank for rank, role in enumerate(Role)}

#: What each role is for; the reference is written from it.
MEANING = {
    Role.VIEWER: "reads everything of one tenant",
    Role.EDITOR: "also changes scripts and schedules of the tenant, runs and cancels its actions",
    Role.OPERATOR: "does the same for every tenant; suspends tenants, sets their limits, reads the whole audit log, manages nodes",
    Role.ADMIN: "does everything; also creates tokens, and creates and deletes tenants",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the token of an HTTP request. ``tenant_id`` is None for a token of the platform."""

    token_id: str
    name: str
    prefix: str
    role: Role
    tenant_id: str | None

    def sees(self, tenant_id: str) -> bool:
        """Whether the caller may know that this tenant exists."""
        return self.tenant_id is None or self.tenant_id == tenant_id

    @property
    def called(self) -> str:
        """Return the name that the audit log shows."""
        return f"{self.name} ({self.prefix})"
