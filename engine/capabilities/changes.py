"""Host side of ``changes``: the changes of a dataset since the consumer's last successful run."""

from typing import Any

from sqlalchemy import Connection

from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.clock import from_us
from lodger.engine.core.refusal import bad_request, denied
from lodger.engine.data.changes import feed
from lodger.engine.data.changes.feed import START, Batch, Change
from lodger.engine.data.sets.dataset import Dataset, database_of
from lodger.engine.effects.effect import Consumed
from lodger.engine.effects.journal_rows import FeedPosition
from lodger.engine.store.queue import followers
from lodger.engine.store.queue.followers import Position

DEFAULT_LIMIT = 100
MAX_CHANGES = 500
#: Possible starts of a consumer: the oldest kept change, or after the newest.
STARTS = ("start", "now")


async def changes(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle db.changes: return the next changes, each once; ``more`` is true if others follow."""
    rows = session.datasets.named(given["set"])
    if not feed.kept(rows):
        raise bad_request(f"changes of {rows.name} are not recorded")
    if given["from"] is not None and given["from"] not in STARTS:
        raise bad_request("'from' must be 'start' or 'now'")
    database = database_of(rows)
    if database is not None and not await database.ask(database.receives):
        raise denied(f"changes of {rows.name} are not recorded: its database is not prepared")
    session.budgets.spend("queries")
    state = await _position(session, rows)
    owner = feed.owner_of(rows, session.claim.tenant_id)
    limit = min(given["limit"] or DEFAULT_LIMIT, MAX_CHANGES)

    def read_changes(connection: Connection) -> Batch:
        """Return the next changes after the reader's position, or none for a reader that begins now."""
        if given["from"] == "now":
            return Batch([], feed.last(connection, state.source, owner), more=False)
        at = START if given["from"] == "start" else state.at
        if at != START:
            feed.require_complete(connection, state.source, owner, at)
        return feed.read(connection, state.source, owner, at, limit, consumer=session.consumer)

    found, to, more = await session.read(read_changes, rows)
    session.budgets.spend("rows_read", len(found))
    if to != state.at:
        session.journal.add(
            Consumed(rows.name, state.source, session.consumer, state.base, to, len(found), more, line=given["line"])
        )
        state.base = state.at = to
    return {"changes": [_shown(rows, each) for each in found], "more": more}


async def _position(session: Session, rows: Dataset) -> FeedPosition:
    """Return the run's position in the feed of a dataset, read from the ledger at its first use."""
    source = feed.source_of(rows)
    state = session.journal.feeds.get(source)
    if state is None:

        def read_position(connection: Connection) -> Position | None:
            """Return the stored position of the reader in this dataset's changes, None if it has none."""
            return followers.position(connection, session.claim.tenant_id, session.consumer, source)

        found = await session.read(read_position)
        state = session.journal.feeds[source] = FeedPosition(source, found, found or START)
    return state


def _shown(rows: Dataset, change: Change) -> dict[str, Any]:
    """Return a change as scripts see it."""
    return {
        "id": feed.key_shown(rows, change.key),
        "kind": change.kind,
        "at": strict_json.tag_instant(from_us(change.at_us)),
    }


HANDLERS = {"db.changes": changes}
