"""The verbs on documents. They read with the filters of scripts, and write as a run does: through a journal."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import Connection

from lodger.engine.capabilities.db_write import new_values
from lodger.engine.core import strict_json
from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.data.filtering.cursor import read_cursor, write_cursor
from lodger.engine.data.filtering.evaluator import Row, terms_of
from lodger.engine.data.filtering.parsing import read_filter, read_order
from lodger.engine.data.reading import collections
from lodger.engine.data.reading.reader import Reader
from lodger.engine.data.sets.dataset import Collection
from lodger.engine.data.sets.expose import NAME
from lodger.engine.data.sets.scope import Scope
from lodger.engine.effects import commit
from lodger.engine.effects.commit_errors import WriteBlocked
from lodger.engine.effects.effect import Delete
from lodger.engine.effects.journal import Journal
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.pages import MAX_ROWS
from lodger.engine.store.records import Page
from lodger.engine.store.tenants import tenants

#: Characters of a document's id.
MAX_ID = 200


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a collection.

    Attributes:
        document: its id, which may be any text and is therefore in no path of the API.
        values: its fields; an instant is ``{"$instant": "2027-01-31T09:00:00.000000Z"}``.
    """

    ETAG: ClassVar = ("document", "values")

    collection: str
    document: str
    values: dict[str, Any]


# Inside the class ``list`` is a verb.
DocumentPage = Page[Document]


class Documents(Noun[M]):
    """Documents that a tenant's scripts keep in collections."""

    @operation("GET", "/tenants/{tenant_id}/collections/{collection}/documents", Role.VIEWER)
    def list(
        self,
        tenant_id: str,
        collection: str,
        *,
        filter: str = "{}",  # noqa: A002 - the word of all lists
        order: str = "id",
        limit: int = 100,
        cursor: str | None = None,
    ) -> DocumentPage:
        """List documents of a collection that match a filter.

        Args:
            filter: JSON, as a script's filter: {"city": "Bonn", "degrees": {"gt": 10}}.
            order: path of a field to sort by, with - before it from high to low.

        Raises:
            InputError: collection_name, document_refused, limit_invalid.
            NotFound: tenant_unknown, collection_unknown.
        """
        rows = _collection(collection)
        if not 1 <= limit <= MAX_ROWS:
            raise InputError("limit_invalid", limit=limit, maximum=MAX_ROWS)
        with self.context.database.read() as connection, _refusals():
            known = collections.list_all(connection, tenant_id)
            if collection not in {each.name for each in known}:
                raise NotFound("collection_unknown", name=collection, tenant=tenant_id)
            driver_of(connection).allow_scans(connection)
            tree = read_filter(strict_json.parse(filter), rows.lookup)
            terms = read_order(order, rows.lookup, rows.key)
            after = None if cursor is None else read_cursor(cursor, collection, terms)
            found, cut = Reader(connection, Scope(tenant_id)).page(rows, tree, terms, limit + 1, after=after)
            more, shown = cut or len(found) > limit, found[:limit]
            following = write_cursor(collection, terms, terms_of(terms, shown[-1])) if more else None
            return Page([_document(collection, each) for each in shown], following)

    @operation("GET", "/tenants/{tenant_id}/collections/{collection}/document", Role.VIEWER)
    def get(self, tenant_id: str, collection: str, document: str) -> Document:
        """Return a document.

        Raises:
            InputError: collection_name, document_refused.
            NotFound: document_unknown.
        """
        with self.context.database.read() as connection, _refusals():
            found = _find(connection, tenant_id, _collection(collection), document)
            if found is None:
                raise NotFound("document_unknown", collection=collection, document=document)
            return found

    @operation("PUT", "/tenants/{tenant_id}/collections/{collection}/document", Role.EDITOR, stores=True, tagged=True)
    def put(self, tenant_id: str, collection: str, document: str, values: Mapping[str, Any]) -> Document:
        """Store a document: in place of the one with this id, or as a new one. Scripts that follow the collection see the change.

        Args:
            values: all fields of the document, as JSON.

        Raises:
            InputError: collection_name, document_refused.
            Conflict: document_reserved, precondition_failed, storage_full.
            NotFound: tenant_unknown.
        """
        rows = _collection(collection)
        with self._changing(Documents.put, tenant_id, document, f"{collection}/{document}") as change, _refusals():
            tenants.get(change.connection, tenant_id)
            before = _find(change.connection, tenant_id, rows, document)
            made = {"id": document} | new_values(rows, _read(values), paths=False)
            journal = Journal(tenant_id, "")
            if before is not None:
                journal.delete(Delete(rows, document), {"id": document} | change.before(before).values)
            journal.insert(rows, made)
            commit.apply(change.connection, journal, now_us=self._now_us)
            return change.made(_document(collection, made))

    @operation(
        "DELETE", "/tenants/{tenant_id}/collections/{collection}/document", Role.EDITOR, status=204,
        tagged=True, confirm="delete document {document} of {collection}",
    )  # fmt: skip
    def delete(self, tenant_id: str, collection: str, document: str) -> None:
        """Delete a document.

        Raises:
            InputError: collection_name, document_refused.
            Conflict: document_reserved, precondition_failed.
            NotFound: document_unknown.
        """
        rows = _collection(collection)
        with self._changing(Documents.delete, tenant_id, document, f"{collection}/{document}") as change, _refusals():
            before = _find(change.connection, tenant_id, rows, document)
            if before is None:
                raise NotFound("document_unknown", collection=collection, document=document)
            journal = Journal(tenant_id, "")
            journal.delete(Delete(rows, document), {"id": document} | change.before(before).values)
            commit.apply(change.connection, journal, now_us=self._now_us)
            change.made(None, after=None)


def _collection(name: str) -> Collection:
    """Return the collection of a name.

    Raises:
        InputError: collection_name.
    """
    if not NAME.fullmatch(name):
        raise InputError("collection_name", name=name)
    return Collection(name)


def _document(collection: str, row: Row) -> Document:
    """Return a row as a document."""
    return Document(collection, row["id"], {name: value for name, value in row.items() if name != "id"})


def _read(value: Any) -> Any:
    """Return a value as a script's argument with it is read.

    Raises:
        CallRefused: it has characters that are stored nowhere, or is too large.
    """
    try:
        return strict_json.parse(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise bad_request(f"it is no JSON: {error}") from None


def _find(connection: Connection, tenant_id: str, rows: Collection, document: str) -> Document | None:
    """Return a document of a tenant; None if there is none.

    Raises:
        CallRefused: no document has this id.
    """
    _read(document)
    if not 0 < len(document) <= MAX_ID:
        raise bad_request(f"the id of a document has 1 to {MAX_ID} characters")
    found = Reader(connection, Scope(tenant_id)).rows(rows, [document]).get(document)
    return None if found is None else _document(rows.name, found)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise what a script would be refused as errors of the caller."""
    try:
        yield
    except CallRefused as refusal:
        raise InputError("document_refused", reason=refusal.message) from None
    except WriteBlocked as blocked:
        raise Conflict("document_reserved", reason=blocked.conflict.message) from None
