"""The closed words of records: states, origins and policies, as the checks of the ledger have them."""

from typing import Literal

TenantState = Literal["active", "suspended", "moving", "deleted"]
ScheduleState = Literal["armed", "paused", "suspended", "ended", "deleted"]
ActionState = Literal[
    "ready", "running", "sealed", "waiting_retry", "done", "failed", "cancelled", "skipped", "expired"
]  # fmt: skip
Origin = Literal["slot", "backfill", "run_now", "replay", "once", "change"]
OverlapPolicy = Literal["skip", "queue_one", "queue_all", "cancel_other", "cancel_running", "allow"]
PlacementName = Literal["any", "every_node"]
PriorityName = Literal["high", "normal", "low"]
NodeState = Literal["alive", "paused", "held", "silent", "stopped", "lost"]
RoleName = Literal["admin", "operator", "auditor", "tenant_admin", "editor", "runner", "viewer"]
