"""The verbs on connections."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import Conflict
from lodger.engine.features.connections import connections
from lodger.engine.features.connections.connections import CALLBACK, Connected
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.tenants import grants

# Inside the class ``list`` is a verb.
ConnectionList = list[Connected]


@dataclass(frozen=True, slots=True)
class Consent:
    """A link that a person opens in a browser to consent; valid once, for ten minutes."""

    url: str = field(repr=False)


class Connections(Noun[M]):
    """Secrets that are tokens of an OAuth 2 provider: the engine gets and renews them, scripts use their handles."""

    @operation("PUT", "/tenants/{tenant_id}/connections/{name}", Role.EDITOR, secret=True, tagged=True, stores=True)
    def put(
        self,
        tenant_id: str,
        name: str,
        token_url: str,
        client_id: str,
        client_secret: str = "",
        *,
        hosts: Iterable[str],
        scopes: Iterable[str] = (),
        authorize_url: str | None = None,
        redirect_uri: str | None = None,
        auth: str = "basic",
        grant: bool = False,
    ) -> Connected:
        """Create a connection, or replace it with all of its tokens.

        Without ``authorize_url`` it gets tokens by its client credentials; with it, after a person has consented
        (``connections.consent``), by that person's grant, with PKCE, and by refresh tokens.

        Args:
            token_url: of the provider; a public host, and a port that the operator allows.
            hosts: hosts that requests may send the token to.
            redirect_uri: this server's address with ``/oauth/callback`` at its end, as the provider knows it.
            auth: how the client authenticates itself: basic or post.
            grant: also give the tenant the grant ``secret:NAME``.

        Raises:
            InputError: connection_invalid, connections_full, host_invalid.
            Conflict: connection_name_taken.
            NotFound: tenant_unknown.
            Unavailable: keys_unset and other errors of the keys.
        """
        settings = {
            "token_url": token_url, "client_id": client_id, "hosts": list(hosts), "scopes": list(scopes),
            "authorize_url": authorize_url, "redirect_uri": redirect_uri, "auth": auth,
        }  # fmt: skip
        with self._changing(Connections.put, tenant_id, name, name) as change:
            change.before(connections.named.find(change.connection, tenant_id, name))
            made = connections.put(
                self.vault, change.connection, tenant_id, name, client_secret, settings, self._now_us
            )
            if grant:
                grants.change_grants(self.context, change.connection, tenant_id, [f"secret:{name}"], [])
            return change.made(made)

    @operation("POST", "/tenants/{tenant_id}/connections/{name}/consent", Role.EDITOR, secret=True)
    def consent(self, tenant_id: str, name: str) -> Consent:
        """Make the link that a person opens to consent. An earlier link is no longer valid.

        Raises:
            NotFound: connection_missing.
            Conflict: connection_without_consent.
        """
        with self._changing(Connections.consent, tenant_id, name, name) as change:
            found = connections.named.get(change.connection, tenant_id, name)
            if found.redirect_uri is None:
                raise Conflict("connection_without_consent", name=name)
            link = secrets.token_urlsafe(32)
            connections.begin_consent(change.connection, tenant_id, name, link, self._now_us)
            made = Consent(found.redirect_uri.removesuffix(CALLBACK) + "/oauth/start/" + link)
            return change.made(made, after={"name": name, "consent": "asked"})

    @operation("GET", "/tenants/{tenant_id}/connections/{name}", Role.VIEWER)
    def get(self, tenant_id: str, name: str) -> Connected:
        """Return one connection, without its secrets.

        Raises:
            NotFound: connection_missing.
        """
        return self._read(connections.named.get, tenant_id, name)

    @operation("GET", "/tenants/{tenant_id}/connections", Role.VIEWER)
    def list(self, tenant_id: str) -> ConnectionList:
        """List a tenant's connections by name.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._read(connections.named.list_all, tenant_id)

    @operation(
        "DELETE",
        "/tenants/{tenant_id}/connections/{name}",
        Role.EDITOR,
        status=204,
        tagged=True,
        confirm="delete connection {name} of {tenant_id}",
    )
    def delete(self, tenant_id: str, name: str) -> None:
        """Delete a connection with its tokens; the provider is not told.

        Raises:
            NotFound: connection_missing.
        """
        with self._changing(Connections.delete, tenant_id, name, name) as change:
            change.before(connections.named.erase(change.connection, tenant_id, name))
            change.made(None, after=None)
