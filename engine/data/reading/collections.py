"""Collections as operators see them: number of documents, and indexed paths."""

from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, delete, func, insert, select, update

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.data.reading import document_index
from lodger.engine.data.sets.expose import NAME
from lodger.engine.data.values.fields import PATH
from lodger.engine.data.values.stored import document_row
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema.script_data import collection_indexes, documents
from lodger.engine.store.schema.script_data import document_index as entries
from lodger.engine.store.tenants import tenants

#: Documents that one transaction adds to a new index.
AT_ONCE = 500
_i, _d, _e = collection_indexes.c, documents.c, entries.c


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection of a tenant: number of documents and indexed paths."""

    name: str
    documents: int
    indexes: tuple[str, ...]


def list_all(connection: Connection, tenant_id: str) -> list[CollectionInfo]:
    """Return the collections of a tenant by name; raises NotFound."""
    numbers = select(_d.collection, func.count()).where(_d.tenant_id == tenant_id).group_by(_d.collection)
    paths = select(_i.collection, _i.path).where(_i.tenant_id == tenant_id, _i.complete == 1)
    _tenant, counted, known = read_together(
        partial(tenants.get, connection, tenant_id),
        partial(connection.execute, numbers),
        partial(connection.execute, paths),
        connection=connection,
    )
    found: dict[str, int] = {row[0]: row[1] for row in counted}
    indexed: dict[str, list[str]] = {}
    for row in known:
        indexed.setdefault(row.collection, []).append(row.path)
    return [
        CollectionInfo(name, found.get(name, 0), tuple(sorted(indexed.get(name, ()))))
        for name in sorted({*found, *indexed})
    ]


def declare(connection: Connection, tenant_id: str, name: str, path: str, now_us: int) -> None:
    """Create an index, or continue an unfinished one.

    Raises:
        InputError: collection_name, index_path.
        Conflict: indexes_full.
        NotFound: tenant_unknown.
    """
    ready_queue.lock(connection, [tenant_id])
    mine = (_i.tenant_id == tenant_id, _i.collection == name)
    _tenant, rows = read_together(
        partial(tenants.get, connection, tenant_id),
        partial(connection.scalars, select(_i.path).where(*mine)),
        connection=connection,
    )
    if not NAME.fullmatch(name):
        raise InputError("collection_name", name=name)
    if not PATH.fullmatch(path) or path == "id":
        raise InputError("index_path", path=path)
    known = list(rows)
    if path in known:
        return
    if len(known) >= document_index.MAX_INDEXES:
        raise Conflict("indexes_full", name=name, count=len(known), maximum=document_index.MAX_INDEXES)
    prepared.write(
        connection,
        insert(collection_indexes).values(
            tenant_id=tenant_id, collection=name, path=path, complete=0, upto="", made_us=now_us
        ),
    )


def build(connection: Connection, tenant_id: str, name: str, path: str) -> bool:
    """Add a batch of existing documents to an index; return whether it is complete.

    Takes the tenant's lock, so that no commit writes a document meanwhile without its index entries.
    """
    ready_queue.lock(connection, [tenant_id])
    mine = (_i.tenant_id == tenant_id, _i.collection == name, _i.path == path)
    state = connection.execute(select(_i.complete, _i.upto).where(*mine)).first()
    if state is None:
        raise NotFound("index_unknown.dropped", name=name, path=path)
    if state.complete:
        return True
    rows = connection.execute(
        select(_d.id, _d.body)
        .where(_d.tenant_id == tenant_id, _d.collection == name, _d.id > state.upto)
        .order_by(_d.id)
        .limit(AT_ONCE)
    ).all()
    fixed = {"tenant_id": tenant_id, "collection": name}
    found = [document_index.entry(path, document_row(row.id, row.body)) | fixed for row in rows]
    insert_many(connection, entries, found, absent=True)
    complete = len(rows) < AT_ONCE
    upto = rows[-1].id if rows else state.upto
    prepared.write(connection, update(collection_indexes).where(*mine).values(complete=int(complete), upto=upto))
    return complete


def drop(connection: Connection, tenant_id: str, name: str, path: str) -> None:
    """Remove an index; raises NotFound."""
    ready_queue.lock(connection, [tenant_id])
    tenants.get(connection, tenant_id)
    gone = connection.execute(
        delete(collection_indexes).where(_i.tenant_id == tenant_id, _i.collection == name, _i.path == path)
    )
    if gone.rowcount == 0:
        raise NotFound("index_unknown", name=name, path=path)
    connection.execute(delete(entries).where(_e.tenant_id == tenant_id, _e.collection == name, _e.path == path))
