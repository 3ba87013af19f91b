"""Handlers of host calls by name, one for each call in ``lodger.stdlib.calls``. None is looked up by attribute."""

from lodger.engine.capabilities import (
    attempt_limits,
    changes,
    db_bulk,
    db_read,
    db_write,
    emit,
    fetch,
    kv,
    mail,
    secrets,
)
from lodger.engine.capabilities.session import Handler

HANDLERS: dict[str, Handler] = {
    **db_read.HANDLERS,
    **db_write.HANDLERS,
    **db_bulk.HANDLERS,
    **changes.HANDLERS,
    **kv.HANDLERS,
    **mail.HANDLERS,
    **fetch.HANDLERS,
    **secrets.HANDLERS,
    **emit.HANDLERS,
    **attempt_limits.HANDLERS,
}
