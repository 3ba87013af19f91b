"""The verbs on URLs of scripts: a request to one runs a script."""

from collections.abc import Iterable
from datetime import datetime

from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.features.script_urls import script_urls
from lodger.engine.features.script_urls.script_urls import CreatedScriptUrl, ScriptUrl
from lodger.engine.service.nouns.base import Noun, aware
from lodger.engine.service.operations.declaration import M, operation

# Inside the class ``list`` is a verb.
UrlList = list[ScriptUrl]


class Urls(Noun[M]):
    """URLs that run scripts: each carries a secret, and POST to it requests a one-off run with the request as input."""

    @operation("POST", "/tenants/{tenant_id}/urls", Role.EDITOR, status=201, secret=True)
    def create(
        self,
        tenant_id: str,
        name: str,
        script: str,
        *,
        get: bool = False,
        headers: Iterable[str] = (),
        answers: bool = False,
        origins: Iterable[str] = (),
        signature: str | None = None,
        secret: str | None = None,
        expires_at: datetime | None = None,
    ) -> CreatedScriptUrl:
        """Create a URL that runs a script; only the result contains its path on the API server, and only once.

        Args:
            script: name of the script; each request runs its newest version.
            get: let GET run the script, too.
            headers: names of request headers that the script gets, besides content-type.
            answers: let the sender wait for the answer that the script returns ({status, headers, body}). Default: 202 at once.
            origins: origins whose pages may send requests and read the answer, such as https://shop.example; * for all.
            signature: style in which senders sign: standard or sha256. Default: none.
            secret: name of the tenant's secret that senders sign with.
            expires_at: instant from which the URL is unknown. Default: never.

        Raises:
            InputError: url_name_invalid, url_header_invalid, url_origin_invalid, url_signature_invalid, url_params,
                urls_full, expiry_past, library_not_run.
            NotFound: tenant_unknown, script_unknown, secret_unknown.
            Conflict: url_exists.
        """
        with self._changing(Urls.create, tenant_id, name, name) as change:
            expires = aware(expires_at)
            wanted = ScriptUrl(
                self.context.ids.new(), tenant_id, name, script, get, script_urls.normal_headers(headers), answers,
                script_urls.normal_origins(origins), signature, secret, from_us(self._now_us), change.audit_context.actor,
                None if expires is None else from_us(to_us(expires)), None,
            )  # fmt: skip
            made = script_urls.create(change.connection, wanted)
            return change.made(made, after=made.url)

    @operation("GET", "/tenants/{tenant_id}/urls", Role.VIEWER)
    def list(self, tenant_id: str) -> UrlList:
        """List a tenant's URLs by name, without their secret parts.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._read(script_urls.named.list_all, tenant_id)

    @operation(
        "DELETE", "/tenants/{tenant_id}/urls/{name}", Role.EDITOR, status=204, confirm="revoke URL {name} of {tenant_id}"
    )  # fmt: skip
    def revoke(self, tenant_id: str, name: str) -> None:
        """Revoke a URL at once; runs that it has requested are not cancelled.

        Raises:
            NotFound: url_unknown.
        """
        with self._changing(Urls.revoke, tenant_id, name, name) as change:
            change.before(script_urls.named.erase(change.connection, tenant_id, name))
            change.made(None, after=None)
