"""The verbs on scripts and their versions."""

from collections.abc import Mapping

from lodger.engine.ledger import scripts
from lodger.engine.ledger.records import Script, ScriptVersion
from lodger.engine.verbs.noun import Verbs

# Inside the noun the word ``list`` is a verb.
ScriptList = list[Script]
VersionList = list[ScriptVersion]


class Scripts(Verbs):
    """Scripts and their versions."""

    __slots__ = ()

    def put(self, tenant_id: str, name: str, source: str | Mapping[str, str]) -> ScriptVersion:
        """Store a version; the same source again makes no new one.

        Raises:
            InputError: script_name_invalid, script_empty, entry_missing, source_not_text, source_too_large.
        """
        with self.books.database.write() as connection:
            version = scripts.put(self.books, connection, tenant_id, name, source, self._now_us)
        return self._done(version)

    def get(self, tenant_id: str, name: str, version: int | None = None) -> ScriptVersion:
        """Give a version, the latest by default; raises NotFound."""
        with self.books.database.read() as connection:
            return scripts.get(connection, tenant_id, name, version)

    def versions(self, tenant_id: str, name: str) -> VersionList:
        """Give every version, newest first."""
        with self.books.database.read() as connection:
            return scripts.versions(connection, tenant_id, name)

    def list(self, tenant_id: str) -> ScriptList:
        """Give the tenant's scripts, by name."""
        with self.books.database.read() as connection:
            return scripts.list_all(connection, tenant_id)
