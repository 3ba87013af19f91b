"""The verbs on scripts and their versions."""

from collections.abc import Iterable
from dataclasses import dataclass

from lodger.engine.errors import NotFound
from lodger.engine.ledger import scripts
from lodger.engine.ledger.grants import encoded
from lodger.engine.ledger.records import Script, ScriptVersion
from lodger.engine.ledger.script_content import Content, Given, read
from lodger.engine.verbs.module_check import ModuleCheck
from lodger.engine.verbs.noun import UNCHANGED, Verbs

# Inside the noun the word ``list`` is a verb.
ScriptList = list[Script]
VersionList = list[ScriptVersion]


@dataclass(frozen=True, slots=True)
class Scripts(Verbs):
    """Scripts and their versions."""

    check: ModuleCheck

    def put(
        self, tenant_id: str, name: str, source: Given, *, grants: Iterable[str] | None = UNCHANGED
    ) -> ScriptVersion:
        """Store a version; the same source and grants again make no new one.

        Args:
            source: the text of ``main.js``, source by file name with ``main.js`` among them, or the bytes of a WebAssembly module,
                which is compiled first, in a locked worker.
            grants: of the tenant's grants those that this script needs; None for all of them. Left out: as the version before.

        Raises:
            InputError: script_name_invalid, script_empty, entry_missing, source_not_text, source_too_large, not_webassembly,
                module_refused, module_too_costly, grant_unknown.
            Unavailable: a module cannot be compiled on this host.
        """
        content = self._compiled(tenant_id, name, source) if isinstance(source, bytes) else source
        needs = encoded if grants is UNCHANGED else lambda _before: encoded(grants)
        with self.books.database.write() as connection:
            version = scripts.put(self.books, connection, tenant_id, name, content, self._now_us, needs=needs)
        return self._done(version)

    def _compiled(self, tenant_id: str, name: str, wasm: bytes) -> Content:
        # Outside of the transaction: nobody waits for a stranger's module to compile.
        with self.books.database.read() as connection:
            limits = scripts.limits_of(self.books, connection, tenant_id)
            scripts.named(name, "script")
            content = read(wasm, limits)
            try:
                known = scripts.get(connection, tenant_id, name).digest
            except NotFound:
                known = ""
        if known != content.digest:
            self.check.demand(tenant_id, wasm, limits)
        return content

    def get(self, tenant_id: str, name: str, version: int | None = None) -> ScriptVersion:
        """Give a version, the latest by default; raises NotFound."""
        with self.books.database.read() as connection:
            return scripts.get(connection, tenant_id, name, version)

    def module(self, tenant_id: str, name: str, version: int | None = None) -> bytes:
        """Give the bytes of a version that is a WebAssembly module, the latest by default.

        Raises:
            NotFound: script_unknown.
            InputError: no_module.
        """
        with self.books.database.read() as connection:
            return scripts.module(connection, tenant_id, name, version)

    def versions(self, tenant_id: str, name: str) -> VersionList:
        """Give every version, newest first."""
        with self.books.database.read() as connection:
            return scripts.versions(connection, tenant_id, name)

    def list(self, tenant_id: str) -> ScriptList:
        """Give the tenant's scripts, by name."""
        with self.books.database.read() as connection:
            return scripts.list_all(connection, tenant_id)
