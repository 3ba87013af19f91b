"""The verbs on collections and their indexes."""

from lodger.engine.core.access.roles import Role
from lodger.engine.data.reading import collections
from lodger.engine.data.reading.collections import CollectionInfo
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation

# Inside the class ``list`` is a verb.
CollectionList = list[CollectionInfo]


class Collections(Noun[M]):
    """Documents of tenants. They need no setup; an index makes filters on a path fast in large collections."""

    @operation("GET", "/tenants/{tenant_id}/collections", Role.VIEWER)
    def list(self, tenant_id: str) -> CollectionList:
        """List a tenant's collections with their indexes, by name.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._all(tenant_id)

    def _all(self, tenant_id: str) -> CollectionList:
        """Return all collections of a tenant."""
        return self._read(collections.list_all, tenant_id)

    @operation("PUT", "/tenants/{tenant_id}/collections/{collection}/indexes/{path}", Role.EDITOR, items="collections")
    def index(self, tenant_id: str, collection: str, path: str) -> CollectionList:
        """Index a path such as ``address.city``, so that filters on it need not read every document. Repeat it after an interruption.

        Raises:
            InputError: collection_name, index_path.
            Conflict: indexes_full.
            NotFound: tenant_unknown.
        """
        with self._changing(Collections.index, tenant_id, collection) as change:
            collections.declare(change.connection, tenant_id, collection, path, self._now_us)
            change.made(None, {"collection": collection, "path": path})
        complete = False
        while not complete:
            with self.context.database.write() as connection:
                complete = collections.build(connection, tenant_id, collection, path)
        return self._all(tenant_id)

    @operation(
        "DELETE", "/tenants/{tenant_id}/collections/{collection}/indexes/{path}", Role.EDITOR, items="collections"
    )
    def drop_index(self, tenant_id: str, collection: str, path: str) -> CollectionList:
        """Remove an index.

        Raises:
            NotFound: index_unknown.
        """
        with self._changing(Collections.drop_index, tenant_id, collection) as change:
            change.before({"collection": collection, "path": path})
            collections.drop(change.connection, tenant_id, collection, path)
            change.made(None, None)
        return self._all(tenant_id)
