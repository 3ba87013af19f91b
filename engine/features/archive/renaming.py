"""Another id for a tenant while it is restored: its rows get new ids, and its secrets are encrypted for it anew."""

import json
import re
import secrets
import zlib
from collections.abc import Callable
from typing import Any

from sqlalchemy import Table

from lodger.engine.features.archive.validation import Row, bad
from lodger.engine.store.schema import access, scheduling, script_data
from lodger.engine.store.schema.metadata import SEALED
from lodger.engine.vault.vault import Sealed, Vault

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
#: Tables whose rows have ids that are unique in a ledger.
_NAMED = (scheduling.scripts, scheduling.schedules, scheduling.actions, access.audit)
#: Columns with JSON that names the tenant.
_TELLING = {(access.audit.name, "before"), (access.audit.name, "after"), (script_data.outbox.name, "payload")}
#: Most bytes of a record that are read.
_MAX_RECORD = 64 * 1024**2


class Renaming:
    """Changes the rows of an archive.

    Args:
        old, new: the tenant's id in the archive, and here.
    """

    def __init__(self, vault: Vault, old: str, new: str) -> None:
        self._vault, self._old, self._new = vault, old, new
        self._ids: dict[str, str] = {}
        # Of an id only random digits change: ids stay in the order of time, and each of them gets another.
        self._mask = secrets.randbits(48) | 1

    def learn(self, table: Table, row: Row) -> None:
        """Replace the id of a row, if its table's rows have ids; those of the platform's scripts stay."""
        if table in _NAMED and row.get("kind") != "bound" and _ID.fullmatch(row["id"]):
            self._ids[row["id"]] = f"{row['id'][:24]}{int(row['id'][24:], 16) ^ self._mask:012x}"

    def row(self, table: Table, row: Row) -> Row:
        """Return a row of the tenant under its new id.

        Raises:
            Unavailable: a secret cannot be read with the keys of this ledger, or was modified.
        """
        if SEALED in table.info:
            self._seal(row, table.info[SEALED])
        for name, value in row.items():
            if isinstance(value, str):
                row[name] = self._text(value)
                if (table.name, name) in _TELLING:
                    row[name] = json.dumps(self._renamed_json(json.loads(row[name])))
        if table is access.audit:
            for name in ("target", "named"):
                row[name] = self._new if row[name] == self._old else row[name]
        if table is scheduling.attempt_records:
            row["body"] = self._record(row["body"])
        return row

    def _seal(self, row: Row, place_of: Callable[[Row], tuple[str, ...]]) -> None:
        """Encrypt the secret value of a row for the new tenant; ``place_of`` returns the place that it is bound to."""
        value = self._vault.open(Sealed(row["key_id"], row["sealed"]), *place_of(row | {"tenant_id": self._old}))
        sealed = self._vault.seal(value, *place_of(row | {"tenant_id": self._new}))
        row |= {"key_id": sealed.key_id, "sealed": sealed.text}

    def _text(self, text: str) -> str:
        """Replace every known id in a text by its new one."""
        return _ID.sub(lambda found: self._ids.get(found[0], found[0]), text)

    def _renamed_json(self, value: Any) -> Any:
        """Return a JSON value with the new tenant id in the members that name the tenant."""
        if isinstance(value, list):
            return [self._renamed_json(each) for each in value]
        if not isinstance(value, dict):
            return value
        of_tenant = value.get("id") == self._old and "generation" in value
        names = {"tenant_id", "tenant"} | ({"id", "name"} if of_tenant else set())
        return {
            name: self._new if name in names and each == self._old else self._renamed_json(each)
            for name, each in value.items()
        }

    def _record(self, body: bytes) -> bytes:
        """Return a compressed record of an attempt with new ids in it."""
        try:
            opened = zlib.decompressobj().decompress(body, _MAX_RECORD)
            return zlib.compress(self._text(opened.decode()).encode(), 1)
        except (zlib.error, UnicodeDecodeError):
            raise bad("the record of an attempt cannot be read") from None
