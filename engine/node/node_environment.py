"""The environment that an engine gives its nodes: the store, exposed tables, registered handlers, and receivers of events and figures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodger.engine.core.events import EventBus
from lodger.engine.core.handlers import Handlers
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.store.context import StoreContext
from lodger.engine.vault.vault import Vault

if TYPE_CHECKING:
    from lodger.engine.node.tracing import Tracer


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """Everything around a node.

    Attributes:
        store: the open ledger.
        datasets: the datasets that ``db.NAME`` refers to.
        vault: opens secrets.
        handlers: functions that actions of kind host call.
        events: the engine's bus: events for people are published there, :class:`~lodger.engine.core.events.LedgerWritten` is heard.
        process_metrics: metrics of this process.
        is_own: whether an address belongs to a tenant, as the platform says; None: as the ledger knows it.
        tracer: makes spans; None while tracing is off.
    """

    store: StoreContext
    datasets: Datasets
    vault: Vault
    handlers: Handlers
    events: EventBus
    process_metrics: ProcessMetrics
    is_own: Callable[[str, str], bool] | None = None
    tracer: "Tracer | None" = None
