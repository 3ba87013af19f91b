"""The wings: features with few ties, each in a folder of its own. This is the one list of them.

The main line knows no wing. A wing declares its tables on the store's metadata, gives its verbs as mixins to the nouns below, and appends
to the hooks of lower layers in its ``__init__``; surfaces load its routes and commands with :func:`load`. To remove a wing,
delete its folder here and in ``tests/features``, and the lines of this module that name it.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import lodger.engine.features.alerts as alerts
import lodger.engine.features.archive as archive
import lodger.engine.features.backfills as backfills
import lodger.engine.features.batches as batches
import lodger.engine.features.branding as branding
import lodger.engine.features.connections as connections
import lodger.engine.features.documents as documents
import lodger.engine.features.ledgers as ledgers
import lodger.engine.features.locks as locks
import lodger.engine.features.openid as openid
import lodger.engine.features.pings as pings
import lodger.engine.features.plans as plans
import lodger.engine.features.replays as replays
import lodger.engine.features.script_urls as script_urls
import lodger.engine.features.shadows as shadows
import lodger.engine.features.slow_runs as slow_runs
import lodger.engine.features.tracing as tracing
import lodger.engine.features.webhooks as webhooks
from lodger.engine.service.nouns import actions, schedules, scripts, tenants
from lodger.engine.service.operations import table
from lodger.engine.service.operations.declaration import M


class Actions(
    backfills.ActionVerbs[M],
    replays.ActionVerbs[M],
    actions.Actions[M],
):
    """Past, running and coming runs."""

    __slots__ = ()


class Scripts(
    pings.ScriptVerbs[M],
    replays.ScriptVerbs[M],
    shadows.ScriptVerbs[M],
    scripts.Scripts[M],
):
    """Scripts and their versions."""

    __slots__ = ()


class Schedules(
    slow_runs.ScheduleVerbs[M],
    schedules.Schedules[M],
):
    """Schedules: scripts bound to rules."""

    __slots__ = ()


class Tenants(
    archive.TenantVerbs[M],
    ledgers.TenantVerbs[M],
    tenants.Tenants[M],
):
    """Customers of the platform."""

    __slots__ = ()


class Nouns(
    locks.LockNouns[M],
    table.Nouns[M],
):
    """The nouns of every engine and client, with those of the wings."""

    actions: Actions[M]
    scripts: Scripts[M]
    schedules: Schedules[M]
    tenants: Tenants[M]
    webhooks: webhooks.Webhooks[M]
    urls: script_urls.Urls[M]
    plans: plans.Plans[M]
    connections: connections.Connections[M]
    batches: batches.Batches[M]
    ledgers: ledgers.Ledgers[M]
    documents: documents.Documents[M]
    alerts: alerts.Alerts[M]


def load(part: str) -> None:
    """Import the module of this name of each wing that has one: ``routes``, ``pages`` or ``commands``, which need what a surface needs."""
    for wing in list(globals().values()):
        if isinstance(wing, ModuleType) and wing.__name__.startswith(__name__) and find_spec(f"{wing.__name__}.{part}"):
            import_module(f"{wing.__name__}.{part}")


#: The operations of all nouns.
TABLE = table.table_of(Nouns)
