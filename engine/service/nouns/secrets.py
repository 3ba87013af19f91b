"""The verbs on secrets: stored encrypted, granted by name, never read back."""

from collections.abc import Iterable
from dataclasses import dataclass

from lodger.engine.core.access.roles import Role
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.tenants import grants, secrets
from lodger.engine.store.tenants.secrets import Secret

# Inside the class ``list`` is a verb.
SecretList = list[Secret]


@dataclass(frozen=True, slots=True)
class Rotated:
    """Result of a rotation: number of secrets encrypted again, the key used, and dropped keys."""

    renewed: int
    key_id: str
    dropped: tuple[str, ...] = ()


class Secrets(Noun[M]):
    """Secrets that scripts use in requests. No verb returns a value."""

    @operation("PUT", "/tenants/{tenant_id}/secrets/{name}", Role.EDITOR, secret=True, stores=True)
    def put(self, tenant_id: str, name: str, value: str, *, hosts: Iterable[str] = (), grant: bool = False) -> Secret:
        """Store a secret, or its new value; requests from now on use it.

        Args:
            hosts: hosts that a header may send it to, such as ``api.example.com`` or ``*.example.com``; by default
                none.
            grant: also give the tenant the grant ``secret:NAME``.

        Raises:
            InputError: secret_name_invalid, secret_value_invalid, host_invalid, secrets_full.
            NotFound: tenant_unknown.
            Unavailable: keys_unset, keys_missing, keys_readable, keys_invalid, extra_missing.
        """
        with self._changing(Secrets.put, tenant_id, name, name) as change:
            change.before(secrets.named.find(change.connection, tenant_id, name))
            made = secrets.put(self.vault, change.connection, tenant_id, name, value, hosts, self._now_us)
            if grant:
                grants.change_grants(self.context, change.connection, tenant_id, [f"secret:{name}"], [])
            return change.made(made)

    @operation("GET", "/tenants/{tenant_id}/secrets", Role.VIEWER)
    def list(self, tenant_id: str) -> SecretList:
        """List a tenant's secrets by name: names and hosts, never values.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._read(secrets.named.list_all, tenant_id)

    @operation(
        "DELETE",
        "/tenants/{tenant_id}/secrets/{name}",
        Role.EDITOR,
        status=204,
        confirm="delete secret {name} of {tenant_id}",
    )
    def delete(self, tenant_id: str, name: str) -> None:
        """Delete a secret.

        Raises:
            NotFound: secret_unknown.
        """
        with self._changing(Secrets.delete, tenant_id, name, name) as change:
            change.before({"name": name})
            secrets.named.erase(change.connection, tenant_id, name)
            change.made(None, after=None)

    @operation("POST", "/secrets/rotate", Role.ADMIN)
    def rotate(self, *, new_key: bool = False, drop: bool = False) -> Rotated:
        """Encrypt all secrets with the newest key; may be interrupted and repeated at any time.

        Args:
            new_key: create a new key first. With several nodes, distribute the new file before you continue without
                this.
            drop: delete the keys that encrypt nothing any more.

        Raises:
            Unavailable: the keys are not readable or not writable, or a row was modified.
        """
        ring = self.vault.keyring
        if new_key:
            ring.add()
        renewed = 0
        while True:
            with self.context.database.write() as connection:
                some = secrets.reencrypt(self.vault, connection)
            if not some:
                break
            renewed += some
        dropped: set[str] = set()
        if drop:
            with self.context.database.read() as connection:
                dropped = set(ring.keys()) - secrets.keys_in_use(connection) - {ring.newest()[0]}
            ring.drop(dropped)
        done = Rotated(renewed, ring.newest()[0], tuple(sorted(dropped)))
        with self._changing(Secrets.rotate, None, done.key_id) as change:
            change.made(done)
        return done
