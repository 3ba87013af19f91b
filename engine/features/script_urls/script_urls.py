"""URLs of scripts: a request to one runs a script of a tenant. Only a hash of the secret part is stored."""

import hashlib
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.egress.signature import STYLES
from lodger.engine.store.drivers import prepared
from lodger.engine.store.drivers.expressions import Id
from lodger.engine.store.records import AnyRow
from lodger.engine.store.rows import record
from lodger.engine.store.schema.metadata import table_of_tenants
from lodger.engine.store.schema.scheduling import Name, Us
from lodger.engine.store.scripts import bindings
from lodger.engine.store.tenants import secrets as tenant_secrets
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.named import Named

#: Where the API receives requests, after its root.
PATH = "/api/v1/in/"
MAX_URLS = 100
MAX_HEADERS = 20
MAX_ORIGINS = 20
#: Resolution of ``used_us``, microseconds.
USED_US = 60_000_000
#: Credentials of the sender, which no script gets.
WITHHELD = frozenset({"authorization", "cookie", "proxy-authorization", "x-csrf-token"})
#: Headers that every script gets.
ALWAYS = ("content-type",)
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
_ORIGIN = re.compile(r"https?://[a-z0-9.-]{1,253}(:[0-9]{1,5})?", re.ASCII)
_HEADER = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
#: URLs that run scripts; only a hash of the secret part is stored. ``secret`` names a secret of the tenant.
script_urls = table_of_tenants(
    "lodger_script_urls",
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("id", Id, nullable=False),
    sa.Column("script", Name, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    # 1 if GET runs the script, too.
    sa.Column("takes_get", sa.SmallInteger, nullable=False),
    # Names of the request headers that the script gets, a JSON list.
    sa.Column("headers", sa.Text, nullable=False),
    # 1 if the sender waits for the answer of the script.
    sa.Column("answers", sa.SmallInteger, nullable=False),
    # Origins whose pages may read the answer, a JSON list.
    sa.Column("origins", sa.Text, nullable=False),
    sa.Column("signature", sa.String(16)),
    sa.Column("secret", sa.String(63)),
    sa.Column("created_us", Us, nullable=False),
    sa.Column("created_by", Name, nullable=False),
    sa.Column("expires_us", Us),
    sa.Column("used_us", Us),
    sa.UniqueConstraint("digest"),
)
_c = script_urls.c


@dataclass(frozen=True, slots=True)
class ScriptUrl:
    """A URL of a script, without its secret part.

    Attributes:
        get: whether GET runs the script, too.
        headers: names of request headers that the script gets.
        answers: whether the sender waits for the answer of the script.
        origins: origins whose pages may send requests and read the answer.
        signature: how senders sign, None for no signature; ``secret``: name of the tenant's secret that they sign with.
        used_at: last use, to the minute.
    """

    id: str
    tenant_id: str
    name: str
    script: str
    get: bool
    headers: tuple[str, ...]
    answers: bool
    origins: tuple[str, ...]
    signature: str | None
    secret: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class CreatedScriptUrl:
    """A new URL with its path on the API server; shown only once."""

    url: ScriptUrl
    path: str = field(repr=False)


def create(connection: sa.Connection, url: ScriptUrl) -> CreatedScriptUrl:
    """Store a new URL; only the returned value contains its path.

    Raises:
        InputError: url_name_invalid, url_header_invalid, url_origin_invalid, url_signature_invalid, url_params,
            urls_full, expiry_past, library_not_run.
        NotFound: tenant_unknown, script_unknown, secret_unknown.
        Conflict: url_exists.
    """
    _check(url)
    tenants.get(connection, url.tenant_id)
    if bindings.find(connection, url.tenant_id, url.script).fields is not None:
        raise InputError("url_params", script=url.script)  # fmt: skip
    if url.secret is not None:
        tenant_secrets.named.get(connection, url.tenant_id, url.secret)
    if named.count(connection, url.tenant_id) >= MAX_URLS:
        raise InputError("urls_full", tenant=url.tenant_id, maximum=MAX_URLS)
    if named.find(connection, url.tenant_id, url.name) is not None:
        raise Conflict("url_exists", name=url.name)
    text = secrets.token_urlsafe(32)
    values = {
        "tenant_id": url.tenant_id, "name": url.name, "id": url.id, "script": url.script, "digest": digest_of(text),
        "takes_get": int(url.get), "headers": json.dumps(url.headers), "answers": int(url.answers),
        "origins": json.dumps(url.origins), "signature": url.signature, "secret": url.secret,
        "created_us": to_us(url.created_at), "created_by": url.created_by,
        "expires_us": None if url.expires_at is None else to_us(url.expires_at),
    }  # fmt: skip
    prepared.write(connection, sa.insert(script_urls).values(values))
    return CreatedScriptUrl(url, PATH + text)


def _check(url: ScriptUrl) -> None:
    """Refuse invalid options of a URL."""
    if not _NAME.fullmatch(url.name):
        raise InputError("url_name_invalid", name=url.name[:80])  # fmt: skip
    wrong = [each for each in url.headers if not _HEADER.fullmatch(each) or each in WITHHELD]
    if wrong:
        raise InputError("url_header_invalid", header=wrong[0][:80], withheld=sorted(WITHHELD))
    if len(url.headers) > MAX_HEADERS + len(ALWAYS):
        raise InputError("url_header_invalid.many", maximum=MAX_HEADERS)
    for each in url.origins:
        if each != "*" and not _ORIGIN.fullmatch(each):
            raise InputError("url_origin_invalid", origin=each[:200])
    if len(url.origins) > MAX_ORIGINS:
        raise InputError("url_origin_invalid.many", maximum=MAX_ORIGINS)
    if (url.signature is None) != (url.secret is None) or url.signature not in (None, *STYLES):
        raise InputError("url_signature_invalid", styles=STYLES)  # fmt: skip
    if url.expires_at is not None and url.expires_at <= url.created_at:
        raise InputError("expiry_past.url")


def digest_of(text: str) -> str | None:
    """Return the hash of a URL's secret part; None if it has not the form of one."""
    return hashlib.sha256(text.encode()).hexdigest() if _SECRET.fullmatch(text) else None


def open_url(connection: sa.Connection, digest: str, now_us: int) -> ScriptUrl | None:
    """Return the URL of a hash; None if it is unknown, revoked, expired, or its tenant is not active."""
    found = sa.select(script_urls).where(_c.digest == digest, sa.or_(_c.expires_us.is_(None), _c.expires_us > now_us))
    row = connection.execute(found).first()
    if row is None or tenants.get(connection, row.tenant_id).state != "active":
        return None
    return _url(row)


def record_use(connection: sa.Connection, url: ScriptUrl, now_us: int) -> None:
    """Record the use of a URL."""
    stale = sa.or_(_c.used_us.is_(None), _c.used_us < now_us - USED_US)
    mine = sa.and_(_c.tenant_id == url.tenant_id, _c.name == url.name, stale)
    prepared.write(connection, sa.update(script_urls).where(mine).values(used_us=now_us))


def normal_headers(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of headers in lower case, with those that every script gets."""
    return tuple(sorted({*ALWAYS, *(name.lower() for name in names)}))


def normal_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Return origins as browsers send them: in lower case, without a slash at the end."""
    return tuple(sorted({each.lower().removesuffix("/") for each in origins}))


def _url(row: AnyRow) -> ScriptUrl:
    """Return the script URL of a row."""
    return record(ScriptUrl, row, get=bool(row.takes_get))


named = Named(
    script_urls,
    sa.select(script_urls),
    _url,
    lambda tenant, name: NotFound("url_unknown.tenant", tenant=tenant, name=name),
)
