"""Names of the time series that the metrics of the table have in Prometheus."""

from lodger.engine.core.metrics import METRICS

SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
NAMES = {spec.name + suffix: spec for spec in METRICS for suffix in SUFFIXES[spec.kind]}
