"""The verbs on tokens: bearer tokens of the HTTP API, their roles, tenants and expiry."""

from datetime import datetime

from lodger.engine.core.access.audit_context import current_audit_context
from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.states import RoleName
from lodger.engine.service.nouns.base import Noun, aware
from lodger.engine.service.operations.declaration import M, local, operation
from lodger.engine.store.records import CreatedToken, Page, SignInLink, Token
from lodger.engine.store.tenants import sessions, tenants, tokens

# Inside the class ``list`` is a verb.
TokenPage = Page[Token]


class Tokens(Noun[M]):
    """Bearer tokens of the HTTP API."""

    @operation(
        "POST", "/tenants/{tenant_id}/tokens", Role.TENANT_ADMIN, everywhere=Role.ADMIN, status=201, secret=True,
        arguments=("name", "role"),
    )  # fmt: skip
    def create(
        self, name: str, role: RoleName, *, tenant_id: str | None = None, expires_at: datetime | None = None
    ) -> CreatedToken:
        """Create a token. Its text is only in this result; the ledger stores a hash.

        Args:
            role: role of the token (:class:`lodger.engine.core.access.roles.Role`).
            tenant_id: tenant of a role of one tenant.
            expires_at: instant at which the token expires; None for no expiry.

        Raises:
            InputError: role_unknown, token_scope, token_name_invalid, expiry_past.
            NotFound: tenant_unknown.
        """
        ends = aware(expires_at)
        with self._changing(Tokens.create, tenant_id, name) as change:
            made = tokens.create(
                self.context, change.connection, name, role, tenant_id, None if ends is None else to_us(ends),
                change.audit_context.actor, self._now_us,
            )  # fmt: skip
            return change.made(made, after=made.token)

    @local("a client is one that has a token")
    def any_administrator(self) -> bool:
        """Whether an administrator's token was ever created in this ledger."""
        return self._read(tokens.any_of_platform)

    @local("a client needs a token, and this creates the first one: use lodger up or lodger token first")
    def first(self, name: str) -> CreatedToken | None:
        """Create an administrator's token if there never was one in this ledger; None if there was."""
        with self._changing(Tokens.create, None, name) as change:
            if tokens.any_of_platform(change.connection):
                return None
            made = tokens.create(
                self.context, change.connection, name, "admin", None, None, change.audit_context.actor, self._now_us
            )
            return change.made(made, after=made.token)

    @local("only the machine of the ledger signs a browser in without a token: use lodger token link")
    def sign_in_code(self) -> str | None:
        """Create a code that begins one session of the oldest valid admin token within 15 minutes; None if there is no such token."""
        with self.context.database.read() as connection:
            token_id = tokens.oldest_administrator(connection, self._now_us)
        if token_id is None:
            return None
        with self._changing(Tokens.sign_in_code, None, token_id) as change:
            code = sessions.create_code(change.connection, token_id, self._now_us)
            return change.made(code, after="a code for one session")

    @operation(
        "POST", "/tenants/{tenant_id}/sign-in-links", Role.TENANT_ADMIN, status=201, secret=True, arguments=("tenant_id", "name", "role")
    )  # fmt: skip
    def sign_in_link(
        self, tenant_id: str, name: str, role: RoleName, *, minutes: int = 5, impersonator: str | None = None
    ) -> SignInLink:
        """Create a link with which a user of a tenant signs in to the dashboard once, also inside a frame of the platform.

        Args:
            name: name of the user, which the audit log shows.
            role: a role of one tenant.
            minutes: minutes until the link expires, 1 to 60.
            impersonator: person who will use it in the name of the user; the audit log then shows both names. A tenant's
                own administrator can name no other person.

        Raises:
            InputError: role_unknown, token_scope, token_name_invalid, link_minutes, impersonator_other.
            NotFound: tenant_unknown.
        """
        if not 1 <= minutes <= 60:
            raise InputError("link_minutes", minutes=minutes)
        tokens.check_name(name)
        own = current_audit_context().tenants_caller
        if own is not None and impersonator not in {None, own}:
            raise InputError("impersonator_other", impersonator=impersonator, own=own)
        caller = Caller.user(name, role, tenant_id, impersonator=impersonator)
        with self._changing(Tokens.sign_in_link, tenant_id, name) as change:
            tenants.get(change.connection, tenant_id)
            life_us = minutes * 60_000_000
            code = sessions.create_code(change.connection, caller, self._now_us, life_us=life_us)
            link = SignInLink(f"/sign-in?code={code}", name, role, tenant_id, from_us(self._now_us + life_us))
            return change.made(link, after=f"a link for {role} {caller.name}")

    @operation(
        "DELETE",
        "/tenants/{tenant_id}/tokens/{token}",
        Role.TENANT_ADMIN,
        everywhere=Role.ADMIN,
        arguments=("token",),
        tagged=True,
        confirm="revoke token {token}, and end the sessions started with it",
    )
    def revoke(self, token: str, *, tenant_id: str | None = None) -> Token:
        """Revoke a token at once, by id or prefix, with every session that was started with it."""
        found = self._read(tokens.get, token, tenant_id)
        with self._changing(Tokens.revoke, found.tenant_id, found.id) as change:
            change.before(tokens.get(change.connection, found.id))
            return change.made(tokens.revoke(change.connection, found.id, self._now_us))

    @operation(
        "GET", "/tenants/{tenant_id}/tokens/{token}", Role.TENANT_ADMIN, everywhere=Role.ADMIN, arguments=("token",)
    )
    def get(self, token: str, *, tenant_id: str | None = None) -> Token:
        """Return a token by id or prefix, without its secret.

        Args:
            tenant_id: only a token of this tenant.

        Raises:
            NotFound: token_unknown.
        """
        return self._read(tokens.get, token, tenant_id)

    @operation("GET", "/tenants/{tenant_id}/tokens", Role.TENANT_ADMIN, everywhere=Role.ADMIN, arguments=())
    def list(self, tenant_id: str | None = None, *, limit: int | None = None, cursor: str | None = None) -> TokenPage:
        """List tokens, newest first, including expired and revoked ones.

        Raises:
            NotFound: tenant_unknown.
        """
        with self._reading(tenant_id) as connection:
            return tokens.list_page(connection, tenant_id, limit, cursor)
