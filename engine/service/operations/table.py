"""Every route of the HTTP API that is a verb of the engine. What streams, logs in or says how the service is stands in ``api``."""

from collections.abc import Callable
from typing import Any

from lodger.engine.core.access.roles import Role
from lodger.engine.service.nouns.actions import Actions
from lodger.engine.service.nouns.audit import Audit
from lodger.engine.service.nouns.collections import Collections
from lodger.engine.service.nouns.grants import Grants
from lodger.engine.service.nouns.locks import Locks
from lodger.engine.service.nouns.metrics import Metrics
from lodger.engine.service.nouns.nodes import Nodes
from lodger.engine.service.nouns.schedules import Schedules
from lodger.engine.service.nouns.scripts import Scripts
from lodger.engine.service.nouns.secrets import Secrets
from lodger.engine.service.nouns.tenants import Tenants
from lodger.engine.service.nouns.tokens import Tokens
from lodger.engine.service.nouns.webhooks import Webhooks
from lodger.engine.service.operations.route import Route

NOUNS: dict[str, type] = {
    "tenants": Tenants,
    "grants": Grants,
    "collections": Collections,
    "secrets": Secrets,
    "webhooks": Webhooks,
    "scripts": Scripts,
    "schedules": Schedules,
    "actions": Actions,
    "tokens": Tokens,
    "audit": Audit,
    "nodes": Nodes,
    "locks": Locks,
    "metrics": Metrics,
}

_T = "/tenants/{tenant_id}"
_SCRIPT = _T + "/scripts/{name}"
_SCHEDULE = _T + "/schedules/{schedule}"
_ACTION = _T + "/actions/{action_id}"

VIEWER, EDITOR, OPERATOR, ADMIN = Role.VIEWER, Role.EDITOR, Role.OPERATOR, Role.ADMIN


def _route(line: str, name: str, role: Role, **more: Any) -> Route:
    method, path = line.split()
    noun, verb = name.split(".")
    function: Callable[..., Any] = getattr(NOUNS[noun], verb)
    return Route(method, path, noun, verb, function, role, **more)


ROUTES: tuple[Route, ...] = (
    _route("POST /tenants", "tenants.create", ADMIN, status=201),
    _route("GET /tenants", "tenants.list", OPERATOR),
    _route(f"GET {_T}", "tenants.get", VIEWER),
    _route(f"PATCH {_T}", "tenants.edit", OPERATOR),
    _route(f"DELETE {_T}", "tenants.delete", ADMIN, status=204),
    _route(f"POST {_T}/suspend", "tenants.suspend", OPERATOR),
    _route(f"POST {_T}/resume", "tenants.resume", OPERATOR),
    _route(f"GET {_T}/usage", "tenants.usage", VIEWER),
    _route(f"GET {_T}/archive", "tenants.export", ADMIN, media="application/gzip"),
    _route(f"PUT {_T}/archive", "tenants.restore", ADMIN, status=201, raw="archive", media="application/gzip"),
    _route(f"GET {_T}/grants", "grants.list", VIEWER),
    _route(f"PUT {_T}/grants", "grants.keep", OPERATOR),
    _route(f"POST {_T}/grants/give", "grants.give", OPERATOR),
    _route(f"POST {_T}/grants/take", "grants.take", OPERATOR),
    _route(f"PUT {_T}/people", "grants.people", OPERATOR),
    _route(f"GET {_T}/collections", "collections.list", VIEWER),
    _route(f"PUT {_T}/collections/{{collection}}/indexes/{{path}}", "collections.index", EDITOR),
    _route(f"DELETE {_T}/collections/{{collection}}/indexes/{{path}}", "collections.drop_index", EDITOR),
    _route(f"GET {_T}/secrets", "secrets.list", VIEWER),
    _route(f"PUT {_T}/secrets/{{name}}", "secrets.put", EDITOR, secret=True),
    _route(f"DELETE {_T}/secrets/{{name}}", "secrets.delete", EDITOR, status=204),
    _route("POST /secrets/rotate", "secrets.rotate", ADMIN),
    _route(f"GET {_T}/webhooks", "webhooks.list", VIEWER),
    _route(f"GET {_T}/webhooks/{{name}}", "webhooks.get", VIEWER),
    _route(f"PUT {_T}/webhooks/{{name}}", "webhooks.put", EDITOR, secret=True),
    _route(f"POST {_T}/webhooks/{{name}}/renew", "webhooks.renew", EDITOR, secret=True),
    _route(f"DELETE {_T}/webhooks/{{name}}", "webhooks.delete", EDITOR, status=204),
    _route("GET /scripts/offered", "scripts.offered", VIEWER),
    _route(f"GET {_T}/scripts", "scripts.list", VIEWER),
    _route(f"PUT {_SCRIPT}", "scripts.put", EDITOR),
    _route(f"GET {_SCRIPT}", "scripts.get", VIEWER),
    _route(f"PUT {_SCRIPT}/module", "scripts.put", EDITOR, raw="source", media="application/wasm"),
    _route(f"PUT {_SCRIPT}/ping", "scripts.put_ping", EDITOR),
    _route(f"GET {_SCRIPT}/module", "scripts.module", VIEWER, media="application/wasm"),
    _route(f"POST {_T}/check-script", "scripts.check", EDITOR),
    _route(f"POST {_SCRIPT}/dry-run", "scripts.dry_run", EDITOR),
    _route(f"GET {_SCRIPT}/versions", "scripts.versions", VIEWER, most=100),
    _route(f"GET {_SCRIPT}/diff", "scripts.diff", VIEWER),
    _route(f"POST {_SCRIPT}/rollback", "scripts.rollback", EDITOR),
    _route(f"GET {_T}/schedules", "schedules.list", VIEWER),
    _route("GET /schedules", "schedules.list", OPERATOR),
    _route(f"POST {_T}/schedules", "schedules.create", EDITOR, status=201),
    _route(f"GET {_SCHEDULE}", "schedules.get", VIEWER),
    _route(f"PATCH {_SCHEDULE}", "schedules.edit", EDITOR),
    _route(f"DELETE {_SCHEDULE}", "schedules.delete", EDITOR),
    _route(f"POST {_SCHEDULE}/pause", "schedules.pause", EDITOR),
    _route(f"POST {_SCHEDULE}/resume", "schedules.resume", EDITOR),
    _route(f"GET {_SCHEDULE}/revisions", "schedules.revisions", VIEWER),
    _route(f"GET {_SCHEDULE}/diff", "schedules.diff", VIEWER),
    _route(f"POST {_SCHEDULE}/rollback", "schedules.rollback", EDITOR),
    _route(f"POST {_SCHEDULE}/what-if", "schedules.what_if", VIEWER),
    _route(f"GET {_SCHEDULE}/counters", "schedules.counters", VIEWER),
    _route(f"GET {_SCHEDULE}/last-run", "schedules.last_run", VIEWER),
    _route(f"POST {_SCHEDULE}/run-now", "actions.run_now", EDITOR, status=201),
    _route(f"POST {_SCHEDULE}/backfill", "actions.backfill", EDITOR, status=201),
    _route("POST /preview", "schedules.preview", VIEWER),
    _route(f"GET {_T}/actions", "actions.list", VIEWER),
    _route("GET /actions", "actions.list", OPERATOR),
    _route(f"POST {_T}/run-at", "actions.run_at", EDITOR, status=201),
    _route(f"POST {_T}/run-in", "actions.run_in", EDITOR, status=201),
    _route(f"GET {_ACTION}", "actions.get", VIEWER),
    _route(f"GET {_ACTION}/attempts", "actions.attempts", VIEWER),
    _route(f"GET {_ACTION}/logs", "actions.logs", VIEWER),
    _route(f"GET {_ACTION}/deliveries", "actions.deliveries", VIEWER),
    _route(f"POST {_ACTION}/cancel", "actions.cancel", EDITOR),
    _route(f"POST {_ACTION}/replay", "actions.replay", EDITOR, status=201),
    _route(f"POST {_ACTION}/retry", "actions.retry", EDITOR),
    _route(f"GET {_ACTION}/compared", "actions.compared", VIEWER),
    _route(f"GET {_T}/running", "actions.running", VIEWER),
    _route(f"GET {_T}/overdue", "actions.overdue", VIEWER),
    _route("GET /running", "actions.running", OPERATOR),
    _route("GET /overdue", "actions.overdue", OPERATOR),
    _route("GET /actions/{action_id}", "actions.get", OPERATOR),
    _route("GET /actions/{action_id}/attempts", "actions.attempts", OPERATOR),
    _route("GET /actions/{action_id}/logs", "actions.logs", OPERATOR),
    _route("GET /actions/{action_id}/deliveries", "actions.deliveries", OPERATOR),
    _route("POST /actions/{action_id}/cancel", "actions.cancel", OPERATOR),
    _route("POST /actions/{action_id}/replay", "actions.replay", OPERATOR, status=201),
    _route("POST /actions/{action_id}/retry", "actions.retry", OPERATOR),
    _route("GET /actions/{action_id}/compared", "actions.compared", OPERATOR),
    _route("GET /nodes", "nodes.list", OPERATOR),
    _route("GET /locks", "locks.list", OPERATOR),
    _route("POST /locks/{name}/take", "locks.take", OPERATOR),
    _route("POST /locks/{name}/free", "locks.free", OPERATOR),
    _route("GET /metrics", "metrics.read", OPERATOR),
    _route("GET /metrics/blocked", "metrics.blocked", OPERATOR),
    _route("POST /tokens", "tokens.create", ADMIN, status=201, secret=True),
    _route("GET /tokens", "tokens.list", ADMIN),
    _route("GET /tokens/{token}", "tokens.get", ADMIN),
    _route("DELETE /tokens/{token}", "tokens.revoke", ADMIN),
    _route("GET /audit", "audit.list", OPERATOR),
    _route(f"GET {_T}/audit", "audit.list", VIEWER),
)

#: Verbs that are no route, each with its reason; a test holds the two together against the engine itself.
NOT_HERE = {
    "tokens.first": "who makes the first token has none to show: lodger up, and lodger token first",
    "scripts.put_handler": "a function of the platform's own Python cannot be sent",
    "metrics.text": "is no JSON: GET /metrics/text",
    "audit.export": "streams lines: GET /audit/export and /tenants/{tenant_id}/audit/export",
}


def routes_of(noun: str, verb: str) -> tuple[Route, ...]:
    """Give the routes of a verb, those with more of the path fixed first."""
    found = [route for route in ROUTES if (route.noun, route.verb) == (noun, verb)]
    return tuple(sorted(found, key=lambda route: -route.path.count("{")))
