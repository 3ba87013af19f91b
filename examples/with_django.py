"""Inside Django: views ask the engine of their process; the node is a process of its own, on the same ledger.

python examples/with_django.py [PORT]                      the site
lodger up --role node --db shops.db                        the node, started apart

curl -X POST "localhost:8001/shops/oak/scripts/hello?rule=every+5s" -d "export default () => 'hello'"
curl localhost:8001/shops/oak/runs
"""

import sys
from functools import cache
from pathlib import Path

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.sync import Engine

LEDGER = Path("shops.db")

if not settings.configured:
    # One file for the example's sake; in a project the two functions and the views stand in an app of yours.
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["127.0.0.1", "localhost"],
        SECRET_KEY="an example's",  # noqa: S106 - an example's
        USE_TZ=True,
    )


@cache
def the_engine() -> Engine:
    """Give the engine of this process: opened by the first who asks, after the server has forked; threads may share it."""
    return Engine.open(str(LEDGER))


@require_POST
def store(request: HttpRequest, shop: str, name: str) -> JsonResponse:
    """Store a customer's script, and bind it to a rule when one is given."""
    engine = the_engine()
    try:
        engine.tenants.get(shop)
    except NotFound:
        engine.tenants.create(shop, limits={"min_interval_s": 1})
    try:
        rule = request.GET.get("rule")
        text = engine.schedules.preview(rule).text if rule else None
        made = engine.scripts.put(shop, name, request.body.decode())
        if rule:
            engine.schedules.create(shop, name, script=name, rules=rule)
    except InputError as refused:
        # What the engine refuses explains itself: your customers may read it.
        reported = {"code": refused.code, "what": refused.what, "why": refused.why, "fix": refused.fix}
        return JsonResponse(reported, status=422)
    return JsonResponse({"version": made.version, "runs": text})


@require_GET
def runs(_request: HttpRequest, shop: str) -> JsonResponse:
    """Say what ran last."""
    found = the_engine().actions.list(shop, limit=20)
    return JsonResponse({"runs": [{"state": each.state, "result": each.result} for each in found]})


urlpatterns = [path("shops/<shop>/scripts/<name>", store), path("shops/<shop>/runs", runs)]
application = get_wsgi_application()

if __name__ == "__main__":
    from wsgiref.simple_server import make_server

    with make_server("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8001, application) as server:
        server.serve_forever()
