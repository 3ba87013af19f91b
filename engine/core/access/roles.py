"""The roles of callers: four for one tenant, three for the platform. Each operation declares the role that it needs."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID, uuid5

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import in_the_name_of
from lodger.engine.core.errors import InputError

#: Namespace of the ids of the platform's users.
_USERS = UUID("6f8f1f0e-3c55-4b0c-9d35-6a2f5f1c7a10")


class Role(StrEnum):
    """A role of a caller, and the right that an operation needs, which is named for the lowest role that has it."""

    VIEWER = "viewer"
    RUNNER = "runner"
    EDITOR = "editor"
    TENANT_ADMIN = "tenant_admin"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def of_platform(self) -> bool:
        """Whether the role sees every tenant."""
        return self in OF_PLATFORM

    def covers(self, needed: "Role") -> bool:
        """Whether a caller with this role may use operations that need the other."""
        return needed in _RIGHTS[self]


OF_PLATFORM = frozenset({Role.AUDITOR, Role.OPERATOR, Role.ADMIN})
#: The rights of each role.
_RIGHTS = {
    Role.VIEWER: {Role.VIEWER},
    Role.RUNNER: {Role.VIEWER, Role.RUNNER},
    Role.EDITOR: {Role.VIEWER, Role.RUNNER, Role.EDITOR},
    Role.TENANT_ADMIN: {Role.VIEWER, Role.RUNNER, Role.EDITOR, Role.TENANT_ADMIN},
    Role.AUDITOR: {Role.VIEWER, Role.AUDITOR},
    Role.OPERATOR: {Role.VIEWER, Role.RUNNER, Role.EDITOR, Role.AUDITOR, Role.OPERATOR},
    Role.ADMIN: set(Role),
}

#: What each role is for; the reference is written from it.
MEANING = {
    Role.VIEWER: "reads everything of one tenant",
    Role.RUNNER: "also runs, repeats and cancels what the tenant has stored; changes no script and no schedule",
    Role.EDITOR: "also changes scripts and schedules of the tenant",
    Role.TENANT_ADMIN: "also creates and revokes the tenant's tokens and sign-in links",
    Role.AUDITOR: "reads everything of every tenant, the whole audit log, nodes and metrics; changes nothing",
    Role.OPERATOR: "does what an editor does for every tenant; suspends tenants, sets their limits, manages nodes",
    Role.ADMIN: "does everything; also creates tokens, and creates and deletes tenants",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of an HTTP request: the owner of its token, or a user of the platform.

    Attributes:
        token_id: id of the token, or an id made of the user's name.
        prefix: the token's public first characters; empty for a user of the platform.
        tenant_id: None for callers that see all tenants.
        copied: whether the token is a copy of one in the first of several ledgers.
    """

    token_id: str
    name: str
    prefix: str
    role: Role
    tenant_id: str | None
    copied: bool = False

    @classmethod
    def user(
        cls,
        name: str,
        role: Role | str,
        tenant_id: str | None = None,
        *,
        identity: str | None = None,
        impersonator: str | None = None,
    ) -> "Caller":
        """Return the caller for a user that the platform has authenticated itself.

        Args:
            name: unique name, such as an e-mail address, which the audit log shows.
            role: a role of one tenant or of the platform.
            tenant_id: the tenant of a role of one tenant.
            impersonator: person who acts in the name of the user; the audit log shows both names.
            identity: text that tells the user from others of the same name; the name by default.

        Raises:
            InputError: name_invalid, role_unknown, token_scope.
        """
        if role not in set(Role):
            raise InputError("role_unknown", role=role, roles=Role)
        if Role(role).of_platform != (tenant_id is None):
            raise InputError("token_scope.platform" if Role(role).of_platform else "token_scope", role=role)
        user_id = str(uuid5(_USERS, f"{tenant_id or ''} {identity or name}"))
        called = names.label(name) if impersonator is None else in_the_name_of(names.label(impersonator), name)
        return cls(user_id, called, "", Role(role), tenant_id)

    def sees(self, tenant_id: str) -> bool:
        """Whether the caller may know that this tenant exists."""
        return self.tenant_id is None or self.tenant_id == tenant_id

    @property
    def called(self) -> str:
        """Return the name that the audit log shows for this caller."""
        return f"{self.name} ({self.prefix})" if self.prefix else self.name
