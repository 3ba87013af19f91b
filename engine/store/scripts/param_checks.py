"""Checks of params when a run is requested, instead of a failure of every attempt."""

from sqlalchemy import Connection

from lodger.engine.core.errors import InputError
from lodger.engine.store.context import StoreContext, dump_params
from lodger.engine.store.records import Json
from lodger.engine.store.scripts import scripts
from lodger.sandbox.limits import Limits
from lodger.sandbox.prescan import JsonRefused, require

#: Levels of the script's input around its params.
CONTEXT_DEPTH = 2


def checked_text(
    context: StoreContext, connection: Connection, tenant_id: str, params: Json, wishes: str | None = None
) -> str | None:
    """Return params as JSON text, None for None.

    Args:
        wishes: limits of the schedule, as JSON text.

    Raises:
        InputError: params_invalid, params_too_large, params_too_deep.
    """
    text = dump_params(params)
    check_text(context, connection, tenant_id, text, wishes)
    return text


def check_text(
    context: StoreContext, connection: Connection, tenant_id: str, text: str | None, wishes: str | None = None
) -> None:
    """Refuse params that exceed the tenant's limits, lowered by the schedule's.

    Raises:
        InputError: params_too_large, params_too_deep.
    """
    if text is not None:
        require_fitting(text, scripts.limits_of(context, connection, tenant_id, wishes))


def require_fitting(text: str, limits: Limits) -> None:
    """Refuse params that exceed limits.

    Raises:
        InputError: params_too_large, params_too_deep.
    """
    body = text.encode()
    if len(body) > limits.input_bytes:
        raise InputError(
            "params_too_large", count=len(body), input_bytes=limits.input_bytes, details={"limit": limits.input_bytes}
        )
    try:
        require(body, max_depth=limits.json_depth - CONTEXT_DEPTH)
    except JsonRefused:
        raise InputError(
            "params_too_deep",
            depth=limits.json_depth - CONTEXT_DEPTH,
            limit=limits.json_depth,
            context=CONTEXT_DEPTH,
            details={"limit": limits.json_depth - CONTEXT_DEPTH},
        ) from None
