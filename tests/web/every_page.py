"""A running API with hostile text wherever a tenant can put text, and the paths of every page of the dashboard in it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi.routing import APIRoute
from starlette.routing import Route
from tests.api.running_api import RunningApi, running_api
from tests.store.bench import Bench

from lodger.engine.core.access.audit_context import audit_as
from lodger.engine.effects.finished import Finished
from lodger.engine.web.dashboard import Dashboard
from lodger.sandbox.job import LogLine, ScriptError
from lodger.sandbox.outcome import Outcome

#: Markup, a closing script tag, a URL that is a script, templates' syntax: for names, which are printable and without slashes.
NAME = "<img src=x onerror=pwned=1>{{91*137}}<svg onload=pwned=2>\"'`${pwned=3}"
#: The same for texts, with what a name cannot have: slashes, bidirectional controls, line separators.
TEXT = NAME + "</textarea></pre></script><script>pwned=4</script> javascript:pwned=5 \u202ertl\u2066 \u2028 {% raw %}"
#: Segments of paths that name an object, and pages of the platform.
PARAMETER = re.compile(r"{(\w+)}")


@contextmanager
def hostile_api(folder: Path) -> Iterator[RunningApi]:
    """Serve a ledger with the tenants acme and other, each with hostile texts in every place, and a node's name."""
    keys = folder / "keys"
    with running_api(f"sqlite:///{folder / 'ledger.db'}", secret_keys=keys) as made:
        made.engine.secrets.vault.keyring.add()
        made.token("admin")
        for tenant in ("acme", "other"):
            _furnish(made, tenant)
        Dashboard(made.api).add()
        yield made


def _furnish(made: RunningApi, tenant: str) -> None:
    """Create a tenant with hostile texts in every place."""
    engine, bench = made.engine, Bench(made.engine, made.clock)
    with audit_as(actor=NAME, why="".join(filter(str.isprintable, TEXT))):
        engine.tenants.create(tenant, NAME, people=["ann@shop.example"])
        engine.scripts.put(tenant, NAME, f"// {TEXT.replace(chr(0x2028), '')}\nexport default () => 1\n", why="first")
        engine.scripts.put(tenant, NAME, f"// {TEXT.replace(chr(0x2028), '')}\nexport default () => 2\n", why="second")
        engine.schedules.create(
            tenant, NAME, script=NAME, rules="every 1h", params={"text": TEXT, NAME: 1}, first_after=None
        )
        engine.schedules.edit(tenant, NAME, params={"text": TEXT})
        engine.secrets.put(tenant, "KEY", "a value of some length", hosts=["example.com"])
        engine.webhooks.put(tenant, "hook", "https://example.com/?q=<img>", events=["order.*"])
        engine.tokens.create(NAME, "viewer", tenant_id=tenant)
    for outcome in (Outcome.OK, Outcome.SCRIPT_ERROR):
        engine.actions.run_now(tenant, NAME, params={"text": TEXT})
        bench.lease(NAME)
        bench.renew(NAME)
        made.clock.advance(1)
        error = ScriptError(NAME, TEXT, stack=TEXT, file="main.js", line=2) if outcome is not Outcome.OK else None
        effects = ({"effect": "insert", "collection": NAME, "id": TEXT, "values": {NAME: TEXT}},)
        finished = Finished(
            outcome, None if error else json.dumps({NAME: TEXT}), error, (LogLine("warn", TEXT),), effects=effects
        )
        bench.commit(*bench.claim(node=NAME), finished=finished, node=NAME)
    engine.actions.run_now(tenant, NAME)
    engine.schedules.pause(tenant, NAME, note="".join(filter(str.isprintable, TEXT)))
    made.clock.advance(10)
    bench.renew(NAME)


def paths(made: RunningApi, tenant: str = "acme", **objects: list[str]) -> list[str]:
    """Return the path of every page, with each object of the tenant that it can show, or with the given ones."""
    objects = {
        "tenant": [tenant], "schedule": [NAME], "script": [NAME],
        "operation": ["schedules.edit", "alerts.put", "schedules.list", "secrets.list"],
    } | objects  # fmt: skip
    if "action" not in objects:
        objects["action"] = [each.id for each in made.engine.actions.list(tenant)]
    found = []
    for route in made.api.framework.router.routes:
        page = isinstance(route, Route) and not isinstance(route, APIRoute) and "GET" in (route.methods or ())
        if page and not route.path.startswith(("/static/", "/sign-in")):
            found += filled(route.path, objects)
    return found


def filled(path: str, objects: dict[str, list[str]]) -> list[str]:
    """Return the paths of a page: one for each object that it can show."""
    parameter = PARAMETER.search(path)
    if parameter is None:
        return [path]
    return [
        each
        for value in objects[parameter[1]]
        for each in filled(path.replace(parameter[0], quote(value, safe="")), objects)
    ]
