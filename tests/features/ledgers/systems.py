"""Systems of two ledgers: the first on the database of the test, the second in a SQLite file or on another database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.api.running_api import SETTINGS
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring


def ledgers(folder: Path, url: str, *, far: str = "far.db", room: int = 1000) -> Settings:
    """Return the settings of a system with the ledgers ``home`` and ``far``; SQLite's path is from the folder."""
    if not (folder / "keys").exists():
        Keyring(folder / "keys").add()
    file = folder / "ledgers.toml"
    file.write_text(f'home = {{ url = "{url}", room = 1000 }}\nfar = {{ url = "{far}", room = {room} }}\n')
    return Settings(**SETTINGS | {"ledgers": file, "secret_keys": folder / "keys", "api_failures_per_minute": 1000})


@contextmanager
def opened(settings: Settings, clock: VirtualClock | None = None) -> Iterator[Any]:
    """Open the system for the block."""
    with Engine.open_all(settings, clock=clock or VirtualClock()) as system:
        yield system


def create_schedule(engine: Any, tenant_id: str, **where: str) -> None:
    """Create a tenant with a script and a schedule."""
    engine.tenants.create(tenant_id, **where)
    engine.scripts.put(tenant_id, "job", "export default () => 1")
    engine.schedules.create(tenant_id, "s", script="job", rules="every 60s")
