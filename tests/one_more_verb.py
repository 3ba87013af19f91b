"""One more verb, declared on a noun and nowhere else; then asked for on every surface. Run as a process of its own."""

import asyncio
import contextlib
import io
import sys
from pathlib import Path

from lodger.engine.core.access.roles import Role
from lodger.engine.service.nouns.tenants import Tenants
from lodger.engine.service.operations.declaration import operation


@operation("POST", "/tenants/{tenant_id}/greeting", Role.VIEWER, reads=True)
def greet(self: Tenants, tenant_id: str, *, words: str = "hello") -> str:
    """Greet a tenant.

    Args:
        words: how it is greeted.
    """
    with self.context.database.read():
        return f"{words}, {tenant_id}"


Tenants.greet = greet

# Modules imported from here on collect the table.
from tests import reference_pages
from tests.api.running_api import running_api

from lodger.engine import Engine as AsyncEngine
from lodger.engine.cli.entry import run
from lodger.engine.client import AsyncClient, Client


async def awaited(folder: Path, url: str, token: str) -> list[str]:
    async with AsyncEngine.open(str(folder / "other.db")) as engine, AsyncClient(url, token) as client:
        return [await engine.tenants.greet("acme"), await client.tenants.greet("acme", words="ahoy")]


def main(folder: Path) -> None:
    with running_api(f"sqlite:///{folder / 'ledger.db'}") as lodge:
        lodge.engine.tenants.create("acme")
        assert lodge.engine.tenants.greet("acme") == "hello, acme"
        assert lodge.ask("POST", "/tenants/acme/greeting", {"words": "hi"}).json() == "hi, acme"
        assert lodge.ask("POST", "/tenants/acme/greeting", {"word": "hi"}).status_code == 400
        described = lodge.api.description()["paths"]["/api/v1/tenants/{tenant_id}/greeting"]["post"]
        assert (described["summary"], described["x-role"]) == ("Greet a tenant.", "viewer")
        with Client(lodge.url, lodge.token("admin")) as client:
            assert client.tenants.greet("acme", words="ahoy") == "ahoy, acme"
        assert asyncio.run(awaited(folder, lodge.url, lodge.token("admin"))) == ["hello, acme", "ahoy, acme"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run(["tenant", "greet", "acme", "--words", "hi", "--db", str(folder / "ledger.db"), "--json"])
    assert (code, out.getvalue()) == (0, '"hi, acme"\n')
    assert "- `lodger tenant greet TENANT [--words WORDS]`: Greet a tenant." in reference_pages.command_line()
    assert (
        "| `POST /tenants/{tenant_id}/greeting` | `viewer` | `tenants.greet` | Greet a tenant. |"
        in reference_pages.http()
    )
    sys.stdout.write("everywhere\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
