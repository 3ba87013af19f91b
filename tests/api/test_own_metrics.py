"""Metrics of the API and of the database: requests by route and status, refusals, connections, statements, versions, tenants."""

from tests.api.running_api import running_api
from tests.databases.fixtures import kind, url

from lodger.engine.core.access.roles import Role

__all__ = ["kind", "url"]


def test_requests_connections_versions_and_tenants_are_measured(url: str) -> None:
    with running_api(url, metrics_tenants=1) as lodge:
        lodge.engine.tenants.create("acme")
        token = lodge.engine.tokens.create("all", Role.ADMIN).text
        bearer = {"Authorization": f"Bearer {token}"}
        lodge.http.get(f"{lodge.url}/api/v1/tenants/acme", headers=bearer)
        lodge.http.get(f"{lodge.url}/api/v1/tenants/nobody", headers=bearer)
        lodge.http.get(f"{lodge.url}/api/v1/no/such/route/of/a/client", headers=bearer)
        for number in range(3):
            assert (
                lodge.http.request(f"M{number}", f"{lodge.url}/api/v1/tenants/acme", headers=bearer).status_code == 405
            )
        text = lodge.http.get(f"{lodge.url}/api/v1/metrics/text", headers=bearer).text
    found = {
        name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    }
    route = 'route="GET /api/v1/tenants/{tenant_id}"'
    assert found[f'lodger_http_requests_total{{{route},status="200"}}'] == 1
    assert found[f'lodger_http_requests_total{{{route},status="404"}}'] == 1
    assert found['lodger_http_requests_total{route="other",status="404"}'] == 1
    assert found[f"lodger_http_request_seconds_count{{{route}}}"] == 2
    assert found["lodger_http_limited_total"] == 0
    assert found["lodger_database_transactions_total"] > 5
    assert found['lodger_database_connections{state="in_use"}'] >= 0
    assert any(name.startswith("lodger_build_info{") for name in found)
    assert 'le="14400.0"' in text
    assert found['lodger_http_requests_total{route="other",status="405"}'] >= 3
    assert not any(word in text for word in ("no/such/route", "M0", "M1", "M2"))
