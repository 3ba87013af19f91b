"""Host side of ``limits``: the budgets of an attempt, with used and remaining amounts."""

from dataclasses import asdict
from typing import Any

from lodger.engine.capabilities.session import Session
from lodger.engine.policy.budget_table import STORAGE


async def limits(session: Session, _given: dict[str, Any]) -> dict[str, Any]:
    """Handle limits.get."""
    tables: dict[str, Any] = dict(session.budgets.rows())
    if session.storage is not None:
        maximum, used = session.storage
        tables["tenant"] = {STORAGE: {"limit": maximum, "used": used, "left": max(0, maximum - used)}}
    return tables | {"process": asdict(session.limits)}


HANDLERS = {"limits.get": limits}
