"""The page that finds tenants, schedules, scripts, runs by their id, and operations by a text."""

import json
from typing import Any
from urllib.parse import quote

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.web import rendering
from lodger.engine.web.page import Reader, Values
from lodger.engine.web.pages import operations
from lodger.engine.web.texts import _

#: Most tenants, schedules and scripts that are shown.
MOST = 8


def find(reader: Reader) -> tuple[str, Values]:
    """Return the page with what a text finds: its template and values."""
    text, found = reader.request.query_params.get("q", "").strip(), list[tuple[str, str, str]]()
    if (tenant := reader.tenant["tenant_id"]) is not None:
        reader.ask("tenants.get", tenant_id=tenant)
    if len(text) < 2:
        return "find.html", {"text": "", "found": found}
    wanted = {"filter": json.dumps(text, ensure_ascii=False), "limit": MOST}
    schedules, scripts, tenants, run = reader.together(
        ("schedules.list", reader.tenant | wanted),
        ("scripts.list", reader.tenant | wanted),
        ("tenants.list", wanted) if reader.caller.tenant_id is None else list,
        lambda: _run(reader, text),
    )
    found += [(_("tenant"), each.id, _path(each.id)) for each in tenants]
    for kind, part, entries in ((_("schedule"), "schedules", schedules), (_("script"), "scripts", scripts)):
        for each in entries:
            of = kind if tenant else f"{kind} · {each.tenant_id}"
            found.append((of, each.name, _path(each.tenant_id, part, each.name)))
    found += [(_("run"), each.id, _path(each.tenant_id, "actions", each.id)) for each in run]
    base = "" if tenant is None else _path(tenant)
    for name, route in operations.routes(reader).items():
        title = f"{_(route.noun).capitalize()} {rendering.verb(name)}"
        if text.lower() in title.lower():
            found.append((_("operation"), title, f"{base}/operations/{name}"))
    return "find.html", {"text": text, "found": found}


def _path(tenant: str, *segments: str) -> str:
    """Return the path of a tenant's page, below the dashboard's root."""
    return "/".join(("/t", *(quote(each, safe="") for each in (tenant, *segments))))


def _run(reader: Reader, text: str) -> list[Any]:
    """Return the action with an id that begins or ends with a text, if there is one."""
    try:
        return [reader.ask("actions.get", **reader.tenant, action_id=text)]
    except (InputError, NotFound):
        return []
