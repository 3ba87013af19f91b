"""The actor, channel and reason of the operations carried out now; the audit log records them with every change.

An embedding platform sets them around its calls::

    with audit_as("alice@example.com", why="ticket 4711"):
        engine.schedules.pause("acme", "nightly")

Somebody who acts in the name of a user leaves both names: ``audit_as("support@example.com", acting_as="alice@example.com")``.

Without such a block the actor is the operating system's user of the process.
"""

import getpass
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import Connection

from lodger.engine.core.context_values import holding

#: Longest name of an actor and longest reason, letters; what is longer is cut.
MAX_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class AuditContext:
    """Actor and channel of the operations carried out now, with checks that belong to one request.

    Attributes:
        actor: a person, a token, a user of the operating system.
        via: ``python``, ``cli``, ``http``, or ``node`` for what the engine does by itself.
        why: the reason that was given.
        acting_as: user in whose name the actor acts; ``actor`` has both names.
        request_id: of the HTTP request.
        expect: called with what is stored, inside the transaction that would change it; raises when it is not what the
            caller saw (If-Match).
        remember: called with the verb's answer, inside the transaction, before it is stored (idempotency keys).
        tenants_caller: name of a caller with a role of one tenant, who vouches for no other name.
    """

    actor: str
    via: str
    why: str | None = None
    acting_as: str | None = None
    request_id: str | None = None
    expect: Callable[[Any], None] | None = None
    remember: Callable[[Connection, Any], None] | None = None
    tenants_caller: str | None = None


_ACTING = " as "
_present: ContextVar[AuditContext | None] = ContextVar("lodger_act", default=None)


@cache
def _user() -> str:
    """Return the name of the operating system's user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return "unknown"


def current_audit_context() -> AuditContext:
    """Return the audit context of the current task or thread."""
    return _present.get() or AuditContext(_user(), "python")


@contextmanager
def audit_as(
    actor: str | None = None, *, acting_as: str | None = None, via: str | None = None, why: str | None = None
) -> Iterator[AuditContext]:
    """Set actor and reason for the block; arguments that are not given keep their outer values.

    ``acting_as`` is the user in whose name the actor acts; the audit log shows both.

    Applies to the current task or thread, and to what the engine does for it.
    """
    outer = current_audit_context()
    act = replace(
        outer,
        actor=in_the_name_of(_printable_prefix(actor) or outer.actor, acting_as),
        via=via or outer.via,
        why=_printable_prefix(why) or outer.why,
        acting_as=_printable_prefix(acting_as) or outer.acting_as,
    )
    with use_audit_context(act):
        yield act


def use_audit_context(act: AuditContext) -> AbstractContextManager[None]:
    """Use this audit context during the block."""
    return holding(_present, act)


def in_the_name_of(actor: str, user: str | None) -> str:
    """Return what the audit log shows for an actor who acts as a user: both names, each cut to half of the space."""
    half = (MAX_CHARACTERS - len(_ACTING)) // 2
    user = _printable_prefix(user)
    return actor if user is None else f"{actor[:half]}{_ACTING}{user[:half]}"


def _printable_prefix(text: str | None) -> str | None:
    """Return the first MAX_CHARACTERS of a text with spaces for unprintable ones; None if nothing is left."""
    if text is None:
        return None
    return "".join(char if char.isprintable() else " " for char in text)[:MAX_CHARACTERS].strip() or None
