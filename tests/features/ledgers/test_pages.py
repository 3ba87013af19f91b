"""The dashboard over two ledgers names one that cannot be reached, and shows the other's tenants."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from fastapi.routing import APIRoute
from starlette.routing import Route
from tests.api.running_api import serving
from tests.features.ledgers.systems import create_schedule, ledgers, opened
from tests.store.bench import OK, THROWN, Bench
from tests.store.virtual_clock import VirtualClock
from tests.web.every_page import filled

from lodger.engine.web.dashboard import Dashboard

#: Tenants, each with its ledger.
TENANTS = {"ada": "far", "bob": "home", "cy": "far", "dan": "home"}


def furnish(engine: Any, clock: VirtualClock) -> None:
    for number, (tenant, ledger) in enumerate(TENANTS.items()):
        clock.advance(1)
        create_schedule(engine, tenant, ledger=ledger)
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


def test_pages_name_a_ledger_that_cannot_be_reached_and_show_the_others(tmp_path: Path) -> None:
    settings = ledgers(tmp_path, "home.db")
    clock = VirtualClock()
    with opened(settings, clock) as system:
        furnish(system, clock)
        with shown(system) as pages:
            assert len([pages.text(path) for _name, path in pages.paths("ada")]) > 20, "a tenant of the second ledger"
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
