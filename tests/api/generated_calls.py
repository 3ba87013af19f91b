"""Calls of every kind by the client that openapi-python-client makes, the package ``out``: ``python calls.py URL TOKEN``."""

import io
import sys
from datetime import UTC, datetime
from importlib import import_module

from out import models
from out.client import AuthenticatedClient
from out.types import File

client = AuthenticatedClient(sys.argv[1], sys.argv[2])
made = 0


def call(operation, /, *path, **given):
    """Call ``group.operation``; return the parsed answer, which is no problem."""
    global made
    found = import_module(f"out.api.{operation}").sync_detailed(*path, client=client, **given)
    assert found.status_code < 300, (operation, found.status_code, repr(found.content[:300]))
    assert not isinstance(found.parsed, models.Problem), operation
    made += 1
    return found.parsed if found.parsed is not None else found.content


def body(kind, /, **fields):
    """Return a request body of the generated client, of the model ``kind``."""
    return getattr(models, kind).from_dict(fields)


call("service.me")
call("tenants.tenants_create", body=body("TenantsCreateBody", tenant_id="newcomer", limits={"min_interval_s": 1}))
assert call("tenants.tenants_get", "newcomer").id == "newcomer"
assert "newcomer" in [each.id for each in call("tenants.tenants_list").items]
call("tenants.tenants_edit", "newcomer", body=body("TenantsEditBody", name="New"))
call("tenants.tenants_usage", "newcomer")
call("grants.grants_give", "newcomer", body=body("GrantsGiveBody", given=["fetch:api.example.com"]))
call("grants.grants_list", "newcomer")
assert (
    call("scripts.scripts_put", "newcomer", "job", body=body("ScriptsPutBody", source="export default () => 1")).version
    == 1
)
call("scripts.scripts_put", "newcomer", "job", body=body("ScriptsPutBody", source="export default () => 2"))
assert len(call("scripts.scripts_versions", "newcomer", "job").items) == 2
call("scripts.scripts_get", "newcomer", "job")
module = File(io.BytesIO(bytes.fromhex(sys.argv[3])))
fields = '{"who": {"type": "text"}}'
assert call("scripts.scripts_put_module", "newcomer", "wasm", body=module, fields=fields, why="compiled").wasm_bytes
call("scripts.scripts_list", "newcomer")
call("scripts.scripts_diff", "newcomer", "job", older=1, newer=2)
schedule = call(
    "schedules.schedules_create", "newcomer",
    body=body("SchedulesCreateBody", name="nightly", script="job", rules="every weekday at 09:00", tz="Europe/Berlin"),
)  # fmt: skip
assert isinstance(schedule.next_at, datetime)
assert call("schedules.schedules_get", "newcomer", "nightly").text == schedule.text
call("schedules.schedules_list", "newcomer", limit=10)
call("schedules.schedules_count", "newcomer")
call("schedules.schedules_edit", "newcomer", "nightly", body=body("SchedulesEditBody", rules="0 9 * * *"))
call("schedules.schedules_revisions", "newcomer", "nightly")
call("schedules.schedules_pause", "newcomer", "nightly", body=body("SchedulesPauseBody", note="tests"))
call("schedules.schedules_resume", "newcomer", "nightly")
slots = call(
    "schedules.schedules_preview", "newcomer", body=body("SchedulesPreviewBody", rules="0 9 * * *", exclusions=[], n=3)
).slots
assert len(slots) == 3
action = call("actions.actions_run_now", "newcomer", "nightly", body=body("ActionsRunNowBody"))
assert call("actions.actions_get", "newcomer", action.id).state == "ready"
call("actions.actions_list", "newcomer", state="ready", since=datetime(2020, 1, 1, tzinfo=UTC))
call("actions.actions_attempts", "newcomer", action.id)
call("actions.actions_cancel", "newcomer", action.id)
call("audit.audit_list", "newcomer")
call("tokens.tokens_create", "newcomer", body=body("TokensCreateBody", name="reader", role="viewer"))
call("tokens.tokens_list", "newcomer")
call("webhooks.webhooks_list", "newcomer")
call("nodes.nodes_list")
call("metrics.metrics_read")
call("tenants.tenants_suspend", "newcomer")
archive = call("tenants.tenants_export", "newcomer")
call("tenants.tenants_delete", "newcomer")
call("tenants.tenants_restore", "newcomer", body=File(io.BytesIO(archive)))
call("tenants.tenants_resume", "newcomer")
unknown = import_module("out.api.tenants.tenants_get").sync_detailed("nobody", client=client)
assert isinstance(unknown.parsed, models.Problem)
assert (unknown.status_code, unknown.parsed.code) == (404, "tenant_unknown")
assert made >= 30
sys.stdout.write("every call was answered\n")
