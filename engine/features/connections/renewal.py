"""Tokens for the attempts of a node: read, and renewed before they end, by one node at a time."""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from lodger.engine.core.access.origins import parse_origin
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.refusal import CallRefused
from lodger.engine.egress.request_errors import NoAnswer
from lodger.engine.egress.way_out import WayOut
from lodger.engine.features.connections import connections, tokens
from lodger.engine.features.connections.connections import Connected, Opened
from lodger.engine.features.connections.tokens import NoTokens, Tokens
from lodger.engine.store.context import StoreContext
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.engine.vault.vault import Vault
from lodger.sandbox.outcome import Outcome

#: A token is renewed so long before its end, microseconds.
EARLY_US = 30_000_000
#: Pauses between tries while a provider is away, and between looks while another node renews, seconds.
PAUSES_S, LOOK_S = (0.5, 2.0, 5.0), 0.1
T = TypeVar("T")
_log = logging.getLogger("lodger.connections")


class Renewals:
    """Source of the tokens of connections for attempts.

    Args:
        way_out: sends the requests for tokens; its rules for addresses hold.
    """

    def __init__(self, context: StoreContext, vault: Vault, way_out: WayOut) -> None:
        self._context, self._vault, self._way_out = context, vault, way_out
        self._renewing: set[asyncio.Task[str]] = set()

    async def __call__(self, tenant_id: str, names: Collection[str]) -> dict[str, OpenSecret]:
        """Return the tokens of those of a tenant's connections that exist.

        Raises:
            CallRefused: connection_waiting, connection_revoked, connection_failed, connection_unavailable.
        """
        found = {}
        for name in sorted(names):
            opened = await self._read(tenant_id, name)
            if opened is not None:
                token = await self._token(opened)
                found[name] = OpenSecret(name, tuple(parse_origin(each) for each in opened.about.hosts), token)
        return found

    async def _read(self, tenant_id: str, name: str) -> Opened | None:
        """Read and decrypt a connection in a thread; None if there is none."""
        find = partial(connections.find, self._vault, tenant_id=tenant_id, name=name)
        return await asyncio.to_thread(_run, self._context.database.read, find)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that writes, in a thread."""
        return await asyncio.to_thread(_run, self._context.database.write, change)

    async def _token(self, opened: Opened) -> str:
        """Return a valid token of a connection; renew it first if need be, or wait while another node does."""
        about = opened.about
        given_up_s = asyncio.get_running_loop().time() + connections.RENEWING_US / 1_000_000
        while (token := _valid(opened, self._context.clock.now_us())) is None:
            _require_grant(opened)
            now_us = self._context.clock.now_us()
            begin = partial(connections.begin_renewal, self._vault, about.tenant_id, about.name, now_us)
            mine = await self._write(begin)
            if mine is not None:
                # It goes on when the attempt has ended: the provider may have rotated the refresh token already.
                task = asyncio.ensure_future(self._renewed(mine))
                self._renewing.add(task)
                task.add_done_callback(self._renewing.discard)
                return await asyncio.shield(task)
            if asyncio.get_running_loop().time() > given_up_s:
                raise _away(about.name, "another node has not finished to renew it")
            await asyncio.sleep(LOOK_S)
            again = await self._read(about.tenant_id, about.name)
            if again is None:
                raise CallRefused("secret_unknown", f"there is no secret with the name {about.name}")
            opened = again
        return token

    async def _renewed(self, opened: Opened) -> str:
        """Ask the provider and store its answer before it is used."""
        about = opened.about
        done = False
        try:
            if (token := _valid(opened, self._context.clock.now_us())) is not None:
                return token
            _require_grant(opened)
            reason = ""
            for pause_s in (*PAUSES_S, None):
                answer = await ask(self._way_out, opened, grant_of(opened))
                if isinstance(answer, Tokens):
                    await store(self._context, self._vault, opened, answer)
                    done = True
                    return answer.access
                if not answer.later:
                    await self._write(partial(connections.give_up, self._vault, self._context, opened, answer))
                    done = True
                    raise _refused(about, answer.reason, revoked=answer.revoked)
                reason = answer.reason
                if pause_s is not None:
                    await asyncio.sleep(pause_s)
            raise _away(about.name, reason)
        finally:
            if not done:
                await self._write(lambda connection: connections.end_renewal(connection, about.tenant_id, about.name))


def _run(begin: Callable[[], AbstractContextManager[Connection]], work: Callable[[Connection], T]) -> T:
    """Return the result of a function in a transaction."""
    with begin() as connection:
        return work(connection)


async def store(
    context: StoreContext, vault: Vault, opened: Opened, answer: Tokens, *, consented: bool = False
) -> None:
    """Store tokens, again while the database does not answer: a provider gives a rotated refresh token only once."""
    keep = partial(connections.keep, vault, opened, answer, context.clock.now_us(), consented=consented)
    for pause_s in PAUSES_S:
        with suppress(Unavailable):
            await asyncio.to_thread(_run, context.database.write, keep)
            return
        await asyncio.sleep(pause_s)
    await asyncio.to_thread(_run, context.database.write, keep)


def grant_of(opened: Opened) -> dict[str, str]:
    """Return the fields of a request for a new token."""
    scope = {"scope": " ".join(opened.about.scopes)} if opened.about.scopes else {}
    if opened.about.authorize_url is None:
        return {"grant_type": "client_credentials"} | scope
    return {"grant_type": "refresh_token", "refresh_token": opened.kept.refresh or ""}


async def ask(way_out: WayOut, opened: Opened, fields: dict[str, str]) -> Tokens | NoTokens:
    """Ask the provider for tokens."""
    about = opened.about
    made = tokens.request(
        about.token_url, about.client_id, opened.kept.client_secret, about.auth, fields, about.tenant_id
    )
    try:
        return tokens.read(await way_out.send(made))
    except NoAnswer as none:
        # The tenant reads the reason: it does not tell which names and addresses exist inside.
        _log.warning("connection %s of tenant %s: %s: %s", about.name, about.tenant_id, none.code, none.reason)
        later = none.code != "fetch_refused"
        return NoTokens(
            "the provider gave no answer" if later else "the address of the provider is not allowed", later=later
        )
    except Unavailable as error:
        return NoTokens(f"this node cannot send requests: {error.code}", later=True)


def _valid(opened: Opened, now_us: int) -> str | None:
    """Return the token, None if it must be renewed first."""
    if opened.kept.access is None or opened.about.state != "ready" or opened.expires_us is None:
        return None
    # A short token is used for half of its time.
    return opened.kept.access if opened.expires_us - EARLY_US > now_us else None


def _require_grant(opened: Opened) -> None:
    """Raise CallRefused if the connection can get no token: revoked, or waiting for a consent."""
    about = opened.about
    if about.state == "revoked":
        raise _refused(about, about.problem or "", revoked=True)
    if about.authorize_url is None:
        return
    if about.state == "waiting" and opened.kept.refresh is None:
        raise CallRefused(
            "connection_waiting",
            f"no person has consented to connection {about.name} yet: lodger connection consent TENANT {about.name} makes the link",
        )
    if opened.kept.refresh is None:
        raise _refused(about, "the provider has given no refresh token, and the access token has ended", revoked=True)


def _refused(about: Connected, reason: str, *, revoked: bool) -> CallRefused:
    """Return the refusal of a call whose connection gets no token, with the command that mends it."""
    if not revoked:
        return CallRefused(
            "connection_failed",
            f"connection {about.name} gets no token: {reason}; correct it: lodger connection put TENANT {about.name}",
        )
    again = "consent" if about.authorize_url else "put"
    return CallRefused(
        "connection_revoked",
        f"the grant of connection {about.name} is no longer valid: {reason}; renew it: lodger connection {again} TENANT {about.name}",
    )


def _away(name: str, reason: str) -> CallRefused:
    """Return the refusal while a provider does not answer: unless the script catches it, the attempt is repeated as after a fault of
    the engine."""
    return CallRefused(
        "connection_unavailable", f"connection {name} gets no token now: {reason}", outcome=Outcome.ENGINE_FAULT
    )
