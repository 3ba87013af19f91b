"""The verbs on scripts and their versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lodger.engine.errors import NotFound
from lodger.engine.ledger import scripts
from lodger.engine.ledger.records import Script, ScriptVersion
from lodger.engine.ledger.script_content import Content, Given, read
from lodger.engine.typed_params import read_fields
from lodger.engine.verbs.module_check import ModuleCheck
from lodger.engine.verbs.noun import Verbs

# Inside the noun the word ``list`` is a verb.
ScriptList = list[Script]
VersionList = list[ScriptVersion]


@dataclass(frozen=True, slots=True)
class Scripts(Verbs):
    """Scripts and their versions."""

    check: ModuleCheck

    def put(
        self,
        tenant_id: str,
        name: str,
        source: Given,
        *,
        params: Mapping[str, Any] | None = None,
        offered: bool = False,
    ) -> ScriptVersion:
        """Store a version; the same source again makes no new one.

        Args:
            source: the text of ``main.js``, source by file name with ``main.js`` among them, or the bytes of a WebAssembly module,
                which is compiled first, in a locked worker.
            params: its typed params, see :mod:`lodger.engine.typed_params`; None for any JSON value.
            offered: every tenant may bind it, by its name with @ before it; for scripts of the tenant ``@platform``.

        Raises:
            InputError: script_name_invalid, script_empty, entry_missing, source_not_text, source_too_large, not_webassembly,
                module_refused, module_too_costly, fields_invalid, not_offerable.
            Unavailable: a module cannot be compiled on this host.
        """
        content = self._compiled(tenant_id, name, source) if isinstance(source, bytes) else source
        fields = read_fields(params)
        with self.books.database.write() as connection:
            version = scripts.put(
                self.books, connection, tenant_id, name, content, self._now_us, fields=fields, offered=offered
            )
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

    def offered(self) -> ScriptList:
        """Give the platform's scripts that every tenant may bind, by name; their ``fields`` say what they want to be told."""
        with self.books.database.read() as connection:
            return scripts.offered(connection)
