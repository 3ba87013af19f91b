"""Metrics in Prometheus' text format. Imported only where the extra ``metrics`` is there."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from lodger.engine.core.metrics import Metric


class _Read(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Family]:
        """Return the families."""
        for each in self._metrics:
            name = each.name.removesuffix("_total") if each.kind == "counter" else each.name
            family = Family(name, each.help, each.kind)
            for sample in each.samples:
                family.add_sample(sample.name, dict(sample.labels), sample.value)
            yield family


def exposed(metrics: Iterable[Metric]) -> str:
    """Write metrics as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Read(list(metrics)))
    return generate_latest(registry).decode()
