"""The dashboard over two ledgers shows what it shows over one, and names a ledger that cannot be reached."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

import httpx2
from fastapi.routing import APIRoute
from starlette.routing import Route
from tests.api.running_api import SETTINGS, serving
from tests.features.ledgers.systems import create_schedule, ledgers, opened
from tests.store.bench import OK, THROWN, Bench
from tests.store.virtual_clock import VirtualClock
from tests.web.every_page import filled

from lodger.engine.core.settings import Settings
from lodger.engine.sync import Engine
from lodger.engine.web.dashboard import Dashboard

#: Tenants, each with its ledger.
TENANTS = {"ada": "far", "bob": "home", "cy": "far", "dan": "home"}
#: Ids, tokens and times of processors, which differ.
_VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|lodger_\w+|\b[0-9a-f]{6,}\b|cpu_s day \S+")


def furnish(engine: Any, clock: VirtualClock, *, several: bool) -> None:
    for number, (tenant, ledger) in enumerate(TENANTS.items()):
        clock.advance(1)
        create_schedule(engine, tenant, **({"ledger": ledger} if several else {}))
        engine.tenants.edit(tenant, name=f"name {9 - number}")
        bench, node = Bench(engine.at(tenant), clock), f"n-{tenant}"
        for run in range(number + 2):
            engine.actions.run_now(tenant, "s")
            clock.advance(1)
            bench.lease(node)
            bench.renew(node)
            bench.commit(*bench.claim(node=node), finished=THROWN if run % 2 else OK, node=node)
        engine.actions.run_in(tenant, "job", 60_000 + number)
        engine.tokens.create(f"of {tenant}", "viewer", tenant_id=tenant)
    clock.advance(200)


class Pages:
    """The pages of an engine, for one administrator."""

    def __init__(self, engine: Any, http: httpx2.Client) -> None:
        self.engine, self.http = engine, http
        self.routes: list[str] = []

    def text(self, path: str, status: int = 200) -> str:
        """Return the words of a page."""
        answer = self.http.get(path, headers={"accept": "text/html"})
        assert answer.status_code == status, (path, answer.text[-2000:])
        plain = re.sub(r"<script.*?</script>|<[^>]+>", " ", answer.text, flags=re.DOTALL)
        return re.sub(r"[ \t]+", " ", html.unescape(plain))

    def paths(self, tenant: str) -> Iterator[tuple[str, str]]:
        """Yield the pattern and the path of each page of the platform and of a tenant."""
        actions = [each.id for each in self.engine.actions.list(tenant, limit=2)]
        objects = {
            "tenant": [tenant],
            "schedule": ["s"],
            "script": ["job"],
            "action": actions,
            "operation": ["schedules.list"],
        }
        for route in self.routes:
            for number, path in enumerate(filled(route, objects)):
                yield f"{route} {number} of {tenant}", path


@contextmanager
def shown(engine: Any) -> Iterator[Pages]:
    with serving(engine) as server, httpx2.Client(base_url=server.url, timeout=50, trust_env=False) as http:
        Dashboard(server.api).add()
        http.post("/api/v1/session", json={"token": engine.tokens.create("admin", "admin").text}).raise_for_status()
        pages = Pages(engine, http)
        pages.routes = [
            each.path for each in server.api.framework.router.routes
            if isinstance(each, Route) and not isinstance(each, APIRoute) and "GET" in (each.methods or ())
            and not each.path.startswith(("/static/", "/sign-in"))
        ]  # fmt: skip
        yield pages


def furnished(engine: Any, clock: VirtualClock, *, several: bool) -> dict[str, str]:
    """Furnish an engine; return the words of each page of the platform and of a tenant of the second ledger."""
    furnish(engine, clock, several=several)
    with shown(engine) as pages:
        return {name: _VARYING.sub("…", pages.text(path)) for name, path in pages.paths("ada")}


def test_pages_are_those_of_one_ledger_and_name_one_that_cannot_be_reached(tmp_path: Path) -> None:
    clock = VirtualClock()
    with Engine.open(str(tmp_path / "one.db"), clock=clock, settings=Settings(**SETTINGS)) as engine:
        one = furnished(engine, clock, several=False)
    settings, clock = ledgers(tmp_path, "home.db"), VirtualClock()
    with opened(settings, clock) as system:
        several = furnished(system, clock, several=True)
    assert len(one) > 20
    for name, text in one.items():
        assert text == several[name], name + "\n".join(
            unified_diff(text.splitlines(), several[name].splitlines(), lineterm="", n=0)
        )
    (tmp_path / "far.db").rename(tmp_path / "away.db")
    with opened(settings, clock) as system, shown(system) as pages:
        for name, path in pages.paths("bob"):
            text = pages.text(path)
            if "{tenant}" not in name and "{action}" not in name and "{operation}" not in name:
                missing = "their part is missing here: far" in text
                assert missing == (name.split()[0] not in {"/operations", "/settings", "/find"}), name
                assert not re.search(r"\bada\b", text), name
        gone = {
            "tenant": ["ada"],
            "schedule": ["s"],
            "script": ["job"],
            "action": ["x"],
            "operation": ["schedules.list"],
        }
        for path in [each for route in pages.routes if "{tenant}" in route for each in filled(route, gone)]:
            assert "'far' cannot be reached" in pages.text(path, 503), path
