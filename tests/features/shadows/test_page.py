"""The shadow on the page of its script."""

from collections.abc import Callable

import httpx2
from tests.api.running_api import RunningApi
from tests.web.conftest import lodge, signed_in

from lodger.engine.features.replays.agreement import ShadowRun
from lodger.engine.features.shadows import shadows

__all__ = ["lodge", "signed_in"]

HOSTILE = "<img src=x onerror=alert(1)>\"'&"


def test_a_shadow_is_shown_without_markup_of_its_tenant(
    lodge: RunningApi,
    signed_in: Callable[..., httpx2.Client],
) -> None:
    lodge.engine.tenants.create("evil")
    lodge.engine.scripts.put("evil", "job", "export default () => 1")
    lodge.engine.scripts.put("evil", "job", "export default () => 2", force=True, shadow=2)
    with lodge.engine.context.database.write() as connection:
        shadow, _live = shadows.running(connection, ["evil"])["evil", "job"]
        run = ShadowRun(HOSTILE, 0, None, "differs", HOSTILE + "\x00", "ok", "ok", 1.0, 1.0)
        added = shadows.add(lodge.engine.context, connection, "evil", shadow, run, 1.0)
    assert added is not None
    assert added.state == "running"
    browser = signed_in("admin")
    of_script = browser.get("/t/evil/scripts/job").text
    assert "<img" not in of_script
    assert "running, 1 of 2 runs compared" in of_script
    assert browser.get("/api/v1/tenants/evil/scripts/job/shadow").json()["runs"][0]["verdict"] == "differs"
    assert "DELETE /tenants/evil/scripts/job/shadow" in of_script
    assert "runs compared" not in signed_in("viewer", "evil").get("/t/evil/scripts/job").text
