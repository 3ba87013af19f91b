"""A tenant that is restored under another id: all of it, and nothing that names the old one. On both databases."""

import re
import zlib
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update
from tests.features.archive.archives import contents, elsewhere, ensure_key, furnish
from tests.store.bench import Bench

from lodger.engine.core.errors import Conflict, InputError, Unavailable
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.settings import Settings
from lodger.engine.features.archive.export import tables
from lodger.engine.store.schema.scheduling import attempt_records
from lodger.engine.store.schema.script_data import documents
from lodger.engine.store.tenants.secrets import open_secrets
from lodger.engine.sync import Engine

__all__ = ["elsewhere"]
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def rows(bench: Bench, tenant: str) -> dict[str, list[str]]:
    """Return the rows of a tenant by table, as text; the bodies of records unpacked."""
    found = {}
    with bench.engine.context.database.read() as connection:
        for table in tables().values():
            some = [row._asdict() for row in connection.execute(select(table).where(table.c.tenant_id == tenant))]
            if table is attempt_records:
                some = [row | {"body": zlib.decompress(bytes(row["body"]))} for row in some]
            found[table.name] = sorted(map(repr, some))
    return found


def ids(bench: Bench, tenant: str) -> set[str]:
    listed = bench.engine
    return {
        *(each.id for each in listed.scripts.list(tenant)),
        *(each.id for each in listed.schedules.list(tenant)),
        *(each.id for each in listed.actions.list(tenant, limit=None)),
        *(each.id for each in listed.audit.list(tenant)),
    }


@pytest.mark.parametrize("beside", [True, False], ids=["beside the old one", "elsewhere"])
def test_everything_arrives_and_nothing_names_the_old_tenant(bench: Bench, elsewhere: Bench, beside: bool) -> None:
    furnish(bench)
    engine = bench.engine
    consent = {"authorize_url": "https://example.com/ask", "redirect_uri": "https://me.example.com/oauth/callback"}
    engine.connections.put("acme", "crm", "https://example.com/token", "me", hosts=["example.com"], **consent)
    engine.connections.consent("acme", "crm")
    engine.actions.replay("acme", bench.actions()[0].id)
    asked = bench.actions()[0].id
    with engine.context.database.write() as connection:
        connection.execute(update(attempt_records).values(body=zlib.compress(f'{{"action":"{asked}"}}'.encode())))
        named = {"tenant_id": "acme", "collection": "carts", "id": "2", "created_us": 1, "updated_us": 1}
        foreign = "019b0000-0000-7000-8000-000000000000"
        body = f'{{"run":"{asked}","mine":"{foreign}","of":"acme"}}'
        connection.execute(insert(documents).values(named | {"body": body}))
    engine.tenants.suspend("acme")
    archive, old, before = engine.tenants.export("acme"), ids(bench, "acme"), rows(bench, "acme")
    here = bench if beside else elsewhere
    if not beside:
        here.engine.scripts.put(PLATFORM, "report", "export default () => 2", offered=True)
    made = here.engine.tenants.restore("roadrunner", archive, of="acme")
    assert (made.id, made.state, made.limits) == ("roadrunner", "suspended", {"concurrent_runs": 7})
    after = rows(here, "roadrunner")
    assert {name: len(some) for name, some in after.items()} == {name: len(some) for name, some in before.items()}
    assert "'consent': None" in after["lodger_connections"][0], "a link is of one tenant only"
    own = {identity for identity in old if identity not in {each.id for each in engine.scripts.list(PLATFORM)}}
    texts = "".join(text for some in after.values() for text in some)
    assert own & set(_ID.findall(texts)) == set()
    assert [text for text in re.findall(r".{40}acme.{20}", texts) if '"of":"acme"' not in text] == []
    assert foreign in texts, "an id that is none of Lodger's stays"
    names = [
        [each.name for each in at.engine.schedules.list(tenant)]
        for at, tenant in ((bench, "acme"), (here, "roadrunner"))
    ]
    assert names[0] == names[1]
    order = [
        [(each.due_at, each.state) for each in at.engine.actions.list(tenant, limit=None)]
        for at, tenant in ((bench, "acme"), (here, "roadrunner"))
    ]
    assert order[0] == order[1]
    with here.engine.context.database.read() as connection:
        opened = open_secrets(here.engine.vault, connection, "roadrunner", ["KEY"])
    assert opened["KEY"].value == "a value of some length"
    here.engine.webhooks.renew("roadrunner", "hook")
    if beside:
        assert rows(bench, "acme") == before, "the old one is as it was"
    here.clock.us += 1_000_000_000
    here.engine.tenants.resume("roadrunner")
    assert here.run()


def test_what_cannot_be_renamed_is_refused(bench: Bench, tmp_path: Path) -> None:
    furnish(bench)
    engine = bench.engine
    engine.tenants.suspend("acme")
    archive = engine.tenants.export("acme")
    with pytest.raises(InputError, match="archive of tenant 'acme'") as other:
        engine.tenants.restore("roadrunner", archive, of="coyote")
    assert "--of acme" in other.value.fix
    with pytest.raises(Conflict, match="already exists"):
        engine.tenants.restore("acme", archive, of="acme")
    settings = Settings(secret_keys=tmp_path / "others")
    with Engine.open(str(tmp_path / "keyless.db"), clock=bench.clock, settings=settings) as keyless:
        ensure_key(keyless)
        keyless.scripts.put(PLATFORM, "report", "export default () => 2", offered=True)
        with pytest.raises(Unavailable) as unknown:
            keyless.tenants.restore("roadrunner", archive, of="acme")
        assert unknown.value.code == "key_unknown"
        assert not any(contents(keyless).values())
        assert keyless.tenants.count().count == 0
