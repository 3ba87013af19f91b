"""The verbs on tokens: who may ask over HTTP, for whom and until when."""

from datetime import datetime

from lodger.engine.core.clock import to_us
from lodger.engine.service.nouns.noun import Verbs, aware
from lodger.engine.store import pages, signing_keys
from lodger.engine.store.records import NewToken, Page, Token
from lodger.engine.store.tenants import tokens

# Inside the noun the word ``list`` is a verb.
TokenPage = Page[Token]


class Tokens(Verbs):
    """Bearer tokens of the HTTP API."""

    __slots__ = ()

    def create(
        self, name: str, role: str, *, tenant_id: str | None = None, expires_at: datetime | None = None
    ) -> NewToken:
        """Make a token. Its text is in the answer, and nowhere else ever again: what is kept is a hash.

        Args:
            role: admin or operator of the platform, editor or viewer of one tenant (:class:`lodger.engine.core.access.roles.Role`).
            tenant_id: the tenant of an editor or viewer.
            expires_at: from when it opens nothing; None: until it is revoked.

        Raises:
            InputError: role_unknown, token_scope, token_name_invalid, expiry_past.
            NotFound: tenant_unknown.
        """
        ends = aware(expires_at)
        with self._changing("tokens.create", tenant_id, name) as change:
            made = tokens.create(
                self.books, change.connection, name, role, tenant_id, None if ends is None else to_us(ends),
                change.act.actor, self._now_us,
            )  # fmt: skip
            return change.made(made, after=made.token)

    def first(self, name: str) -> NewToken | None:
        """Make an administrator's token when there never was one on this ledger; None when there was."""
        with self._changing("tokens.create", None, name) as change:
            if tokens.any_of_platform(change.connection):
                return None
            made = tokens.create(
                self.books, change.connection, name, "admin", None, None, change.act.actor, self._now_us
            )
            return change.made(made, after=made.token)

    def revoke(self, token: str) -> Token:
        """End a token at once, by id or prefix, with every session that was begun with it."""
        with self.books.database.read() as connection:
            found = tokens.get(connection, token)
        with self._changing("tokens.revoke", found.tenant_id, found.id) as change:
            change.before(tokens.get(change.connection, found.id))
            return change.made(tokens.revoke(change.connection, found.id, self._now_us))

    def get(self, token: str) -> Token:
        """Give a token by id or prefix, without its secret; raises NotFound."""
        with self.books.database.read() as connection:
            return tokens.get(connection, token)

    def list(self, tenant_id: str | None = None, *, limit: int | None = None, cursor: str | None = None) -> TokenPage:
        """Give tokens, newest first, ended ones too: all of them, or a page (see :meth:`Tenants.list`)."""
        with self.books.database.read() as connection:
            of = f"tokens:{tenant_id}"
            before = signing_keys.place(connection, of, cursor) if cursor else None
            found = tokens.some(connection, tenant_id, limit=limit, before=before)
            return pages.page(connection, of, found, lambda each: each.id)
