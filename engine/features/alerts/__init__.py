"""Wing: alerts, messages to people about failing, late or silent schedules."""

from lodger.engine.features.alerts import evaluation
from lodger.engine.features.alerts.operations import Alerts
from lodger.engine.features.alerts.service import AlertEvaluation
from lodger.engine.node import wings
from lodger.engine.store.queue import events

events.RECEIVERS.append(events.Receivers(evaluation.hear))
wings.SERVICES.append(lambda node: AlertEvaluation(node.context, node.host.process_metrics) if node.delivers else None)

__all__ = ["Alerts"]
