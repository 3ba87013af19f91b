"""The section ``[signin]`` of ``lodger.toml``: the provider, and which claims make a user which caller."""

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM_PREFIX
from lodger.engine.service import platform_file
from lodger.engine.service.platform_file import PlatformFile, Section, Table, Text

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

NAME = "signin"
#: A claim that says whether another one was proved, by its name.
PROVED_BY = {"email": "email_verified", "phone_number": "phone_number_verified"}


def secure(url: str) -> str:
    """Check that an address is encrypted, or of this machine.

    Raises:
        ValueError: it is neither.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    encrypted = parts.scheme == "https" or (parts.scheme == "http" and local)
    if not host or not encrypted or parts.username or parts.fragment:
        raise ValueError("it is an address that begins with https:// (http:// for this machine)")
    return url


class Rule(Table):
    """One rule: users with a claim of a value have a role, of the platform, of a tenant, or of the tenant that a claim names.

    Attributes:
        claim: name of the claim, with dots into objects; without it the rule is for every user.
        value: what the claim is, or what it has if it is a list.
    """

    claim: str | None = None
    value: str | bool | int | None = None
    role: Annotated[Role, Field(strict=False)]
    tenant: str | None = None
    tenant_claim: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Check that the parts of a rule belong together."""
        if (self.claim is None) != (self.value is None):
            raise ValueError("claim and value belong together")
        if self.role.of_platform != (self.tenant is None and self.tenant_claim is None):
            raise ValueError("a role of one tenant needs tenant or tenant_claim, a role of the platform has none")
        if self.tenant is not None and self.tenant_claim is not None:
            raise ValueError("give tenant or tenant_claim, not both")
        return self


class SignIn(Table):
    """An OpenID Connect provider, and what its users may do: the first rule that fits counts.

    Attributes:
        issuer: the provider's identifier, below which ``/.well-known/openid-configuration`` describes it.
        callback: the address that the provider sends browsers back to, if it is not the dashboard's own ``/sign-in/callback``.
        title: what the button calls the provider.
        name: the claim that the audit log shows.
    """

    issuer: Annotated[str, AfterValidator(secure)]
    client_id: Text
    client_secret: Text | None = None
    callback: Annotated[str, AfterValidator(secure)] | None = None
    title: str = Field("OpenID Connect", min_length=1, max_length=60)
    scopes: tuple[str, ...] = Field(("openid", "email", "profile"), strict=False)
    name: str = "email"
    session_minutes: int = Field(12 * 60, ge=5, le=30 * 24 * 60)
    rules: list[Rule] = Field(min_length=1)

    @property
    def claims(self) -> set[str]:
        """Names of the claims that callers are made from."""
        named = {name for rule in self.rules for name in (rule.claim, rule.tenant_claim) if name}
        return {name.partition(".")[0] for name in named | {self.name}}

    def caller(self, claims: Mapping[str, Any]) -> Caller:
        """Return the caller that a user with these claims is.

        Raises:
            InputError: signin_no_role, signin_tenant, name_invalid.
        """
        for rule in self.rules:
            if rule.claim is not None and not _has(_claim(claims, rule.claim), rule.value):
                continue
            tenant = rule.tenant
            if rule.tenant_claim is not None:
                found = _claim(claims, rule.tenant_claim)
                if isinstance(found, list) and len(found) == 1:
                    found = found[0]
                # Whoever names tenants at the provider does not become the platform, whose scripts are offered to all.
                if not isinstance(found, str) or not found or found.startswith(PLATFORM_PREFIX):
                    raise InputError("signin_tenant", claim=rule.tenant_claim)
                tenant = found
            name = _claim(claims, self.name)
            subject = claims["sub"]
            name = name if isinstance(name, str) and name else subject
            return Caller.user(name, rule.role, tenant, identity=f"{self.issuer} {subject}")
        raise InputError("signin_no_role")


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim; None for an absent one, and for an address that the provider has not proved to be the user's."""
    proof = PROVED_BY.get(name)
    if proof is not None and claims.get(proof) is not True:
        return None
    found: Any = claims
    for part in [name] if name in claims else name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _has(found: Any, value: Any) -> bool:
    """Whether a claim is this value, or a list that has it; 1 is not true."""
    values = found if isinstance(found, list) else [found]
    return any(type(each) is type(value) and each == value for each in values)


def _keep(engine: "Engine", value: SignIn, file: PlatformFile) -> None:
    """Set the provider of an engine's pages to that of the file."""
    engine.of_surfaces[NAME] = value


platform_file.SECTIONS[NAME] = Section(SignIn, _keep)
