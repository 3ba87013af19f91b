"""The verbs on collections: which there are, and which of their paths are indexed."""

from lodger.engine.data.reading import collections
from lodger.engine.data.reading.collections import CollectionInfo
from lodger.engine.service.nouns.noun import Verbs

# Inside the noun the word ``list`` is a verb.
CollectionList = list[CollectionInfo]


class Collections(Verbs):
    """Documents of tenants. They need no set-up; an index makes filters on a path fast where there are many."""

    __slots__ = ()

    def list(self, tenant_id: str) -> CollectionList:
        """Give a tenant's collections by name; raises NotFound."""
        with self.books.database.read() as connection:
            return collections.list_all(connection, tenant_id)

    def index(self, tenant_id: str, collection: str, path: str) -> CollectionList:
        """Index a path like ``address.city``; returns when every document is in it. Broken off, it goes on when asked again.

        Raises:
            InputError: collection_name, index_path.
            Conflict: indexes_full.
            NotFound: tenant_unknown.
        """
        with self._changing("collections.index", tenant_id, collection) as change:
            collections.declare(change.connection, tenant_id, collection, path, self._now_us)
            change.made(None, {"collection": collection, "path": path})
        complete = False
        while not complete:
            with self.books.database.write() as connection:
                complete = collections.build(connection, tenant_id, collection, path)
        return self.list(tenant_id)

    def drop_index(self, tenant_id: str, collection: str, path: str) -> CollectionList:
        """Remove an index; raises NotFound."""
        with self._changing("collections.drop_index", tenant_id, collection) as change:
            change.before({"collection": collection, "path": path})
            collections.drop(change.connection, tenant_id, collection, path)
            change.made(None, None)
        return self.list(tenant_id)
