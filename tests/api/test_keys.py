"""What an Idempotency-Key stands for: another method, path, query, precondition or body under it is another request, and a mistake."""

from tests.api.request_keys import idempotency_key
from tests.api.running_api import RunningApi
from tests.escape.commands import HELLO


def test_a_key_stands_for_method_path_query_precondition_and_body(lodge: RunningApi) -> None:
    index, module = "/tenants/acme/collections/carts/indexes/city", "/tenants/acme/scripts/tool/module"
    wasm = {"content": HELLO, "headers": idempotency_key("q") | {"content-type": "application/wasm"}}
    seen = {"if-match": "*"}
    pairs = (
        (
            lambda: lodge.ask("PUT", index, headers=idempotency_key("m")),
            lambda: lodge.ask("DELETE", index, headers=idempotency_key("m")),
        ),
        (
            lambda: lodge.ask("POST", "/tenants/acme/suspend", headers=idempotency_key("p")),
            lambda: lodge.ask("POST", "/tenants/acme/resume", headers=idempotency_key("p")),
        ),
        (lambda: lodge.ask("PUT", module + "?why=a", **wasm), lambda: lodge.ask("PUT", module + "?why=b", **wasm)),
        (
            lambda: lodge.ask("POST", "/tenants/acme/resume", headers=idempotency_key("i") | seen),
            lambda: lodge.ask("POST", "/tenants/acme/resume", headers=idempotency_key("i")),
        ),
    )
    for first, other in pairs:
        answered, refused = first(), other()
        assert answered.status_code == 200, answered.text
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
        assert first().headers["idempotent-replayed"] == "true"
