"""The four roles of tokens; each includes those before it. Two are for tenants, two for the platform."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID, uuid5

from lodger.engine.core.access import names
from lodger.engine.core.errors import InputError

#: Namespace of the ids of the platform's users.
_USERS = UUID("6f8f1f0e-3c55-4b0c-9d35-6a2f5f1c7a10")


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
    """The sender of an HTTP request: the owner of its token, or a user of the platform.

    Attributes:
        token_id: id of the token, or an id made of the user's name.
        prefix: the token's public first characters; empty for a user of the platform.
        tenant_id: None for callers that see all tenants.
    """

    token_id: str
    name: str
    prefix: str
    role: Role
    tenant_id: str | None

    @classmethod
    def user(cls, name: str, role: Role | str, tenant_id: str | None = None) -> "Caller":
        """Return the caller for a user that the platform has authenticated itself.

        Args:
            name: unique name, such as an e-mail address, which the audit log shows.
            role: editor or viewer of one tenant, operator or admin of the platform.
            tenant_id: the tenant of an editor or viewer.

        Raises:
            InputError: name_invalid, role_unknown, token_scope.
        """
        if role not in set(Role):
            raise InputError("role_unknown", role=role, roles=Role)
        if Role(role).of_platform != (tenant_id is None):
            raise InputError("token_scope.platform" if tenant_id else "token_scope", role=role)
        return cls(str(uuid5(_USERS, name)), names.label(name), "", Role(role), tenant_id)

    def sees(self, tenant_id: str) -> bool:
        """Whether the caller may know that this tenant exists."""
        return self.tenant_id is None or self.tenant_id == tenant_id

    @property
    def called(self) -> str:
        """Return the name that the audit log shows."""
        return f"{self.name} ({self.prefix})" if self.prefix else self.name
