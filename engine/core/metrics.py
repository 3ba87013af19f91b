"""The table of metrics, the process's own counters, and their text for Prometheus, by ``prometheus_client``."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast, get_args
from uuid import uuid4
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
    make_wsgi_app,
    start_wsgi_server,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from lodger.engine.core.errors import Unavailable

Kind = Literal["counter", "gauge", "histogram"]
#: Upper bounds of the buckets of durations, seconds: the library's, and shorter and longer ones.
BUCKETS = (0.001, 0.0025, *Histogram.DEFAULT_BUCKETS[:-1], 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric: its unit is in its name.

    Attributes:
        labels: names of the labels that tell its values apart.
        of: ``process``, counted by the nodes of this process; ``ledger``, read from the ledger when asked.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    of: Literal["process", "ledger"] = "process"


def _spec(kind: Kind, of: Literal["process", "ledger"], name: str, help_: str, *labels: str) -> MetricSpec:
    """Make a row of the table of metrics, labels last."""
    return MetricSpec(name, kind, help_, labels, of)


_counter, _gauge, _histogram = (partial(_spec, kind, "process") for kind in get_args(Kind))
_ledger_gauge = partial(_spec, "gauge", "ledger")

METRICS: tuple[MetricSpec, ...] = (
    _counter("lodger_slots_total", "slots that ticks of this process turned into rows; a gap counts once", "became"),
    _counter("lodger_attempts_total", "attempts that ended on nodes of this process", "outcome"),
    _histogram("lodger_lateness_seconds", "time from due to start of attempts of slots"),
    _histogram("lodger_attempt_seconds", "wall time of attempts"),
    _gauge("lodger_build_info", "1, with the version of Lodger and of Python", "version", "python"),
    _counter("lodger_http_requests_total", "answered requests of the HTTP API", "route", "status"),
    _counter("lodger_http_limited_total", "requests of the HTTP API that were answered with 429"),
    _histogram("lodger_http_request_seconds", "time until the answer of the HTTP API begins", "route"),
    _gauge("lodger_http_streams", "open live streams"),
    _gauge("lodger_database_connections", "connections to the ledger's database", "state"),
    _counter("lodger_database_transactions_total", "transactions on the ledger's database"),
    _counter("lodger_lost_commits_total", "attempts that ended after another node had taken their action"),
    _counter("lodger_leases_lost_total", "times a node of this process lost its lease"),
    _counter("lodger_rescued_total", "actions that this process took back from lost nodes"),
    _counter("lodger_expired_total", "actions that this process marked as expired"),
    _counter("lodger_slowdowns_total", "schedules with runs that have become slower", "onset"),
    _counter("lodger_alerts_total", "alerts that nodes of this process raised", "kind"),
    _counter("lodger_faults_total", "rounds of a node's services that failed and were retried", "service"),
    _counter(
        "lodger_retention_overruns_total",
        "transactions of retention that reached their time limit and were cancelled, or ended late nevertheless",
        "end",
    ),
    _gauge(
        "lodger_retention_too_slow",
        "old actions and expired values that one transaction of retention cannot delete within its time limit",
    ),
    _counter("lodger_hooks_dropped_total", "events dropped because a hook was too slow", "hook"),
    _gauge("lodger_running", "running attempts on nodes of this process"),
    _gauge("lodger_waiting", "those of them that wait for an answer, and hold no slot"),
    _gauge(
        "lodger_node_saturation",
        "fraction of the last minute, 0 to 1, in which a node of this process had no free slot or too little CPU time",
    ),
    _gauge(
        "lodger_wall_active", "1 if the wall is active around the workers of a node of this process, else 0", "wall"
    ),
    _gauge("lodger_loop_lag_seconds", "delay of a node's event loop when last measured"),
    _gauge("lodger_feed_held_seconds", "age of the oldest committed change that is not yet readable", "database"),
    _gauge(
        "lodger_feed_held", "committed changes that are not yet readable because of an older transaction", "database"
    ),
    _ledger_gauge("lodger_actions", "actions that are ready, running or sealed", "state"),
    _ledger_gauge(
        "lodger_overdue", "schedules with a slot, and tenants with an action, that are more than ten seconds overdue"
    ),
    _ledger_gauge("lodger_overdue_seconds", "time since the most overdue of them was due"),
    _ledger_gauge("lodger_nodes", "nodes by state", "state"),
    _ledger_gauge("lodger_outbox", "mails and webhooks that wait or have failed permanently", "state"),
    _ledger_gauge("lodger_blocked_sessions", "database sessions that have waited for a lock for more than a second"),
    _ledger_gauge("lodger_blocked_seconds", "longest wait of these sessions"),
    _ledger_gauge(
        "lodger_tenant_cpu_seconds",
        "CPU time of today (UTC) of the tenants that used most, as many as LODGER_METRICS_TENANTS says",
        "tenant",
    ),
)
_BY_NAME = {spec.name: spec for spec in METRICS}
_OF_PROCESS = [spec for spec in METRICS if spec.of == "process"]
_CLASSES: dict[Kind, Callable[..., Any]] = {
    "counter": Counter, "gauge": Gauge, "histogram": partial(Histogram, buckets=BUCKETS),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. ``labels`` are pairs of name and value; a histogram's buckets carry ``le``, and their names a suffix."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its values."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


class ProcessMetrics(Collector):
    """The counters of one process, in a registry of their own; may be used from several threads."""

    def __init__(self) -> None:
        #: Names this process among those that share a ledger.
        self.process = str(uuid4())
        self._registry = CollectorRegistry(auto_describe=False)
        self._collectors: dict[str, Any] = {
            spec.name: _CLASSES[spec.kind](spec.name, spec.help, spec.labels, registry=self._registry)
            for spec in _OF_PROCESS
        }
        #: Called before the metrics are read: set gauges that change all the time.
        self.before_read: list[Callable[[], None]] = []

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        self._of(name, labels).inc(by)

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:
        """Return the collector of a metric with these labels."""
        collector = self._collectors[name]
        return collector.labels(*labels) if labels else collector

    def begin(self, name: str, labels: Iterable[str]) -> None:
        """Let a counter begin at 0 with each of these labels: a rate sees the first event."""
        for label in labels:
            self.count(name, label, by=0)

    def put(self, name: str, value: float, *labels: str) -> None:
        """Set the value of a gauge."""
        self._of(name, labels).set(value)

    def observe(
        self, name: str, seconds: Iterable[float], *labels: str, exemplar: dict[str, str] | None = None
    ) -> None:
        """Add durations to a histogram, with the labels of their exemplar, if there is one."""
        histogram = self._of(name, labels)
        for each in seconds:
            histogram.observe(each, exemplar)

    def collect(self) -> Iterator[Family]:
        """Yield the metrics of this process, in the order of the table, with its exemplars."""
        for prepare in self.before_read:
            prepare()
        for family in self._registry.collect():
            # When a counter began is of no use to the readers, and would double the text.
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family

    def read(self) -> list[Metric]:
        """Return the metrics of this process, in the order of the table."""
        return [
            metric(spec.name, (Sample(each.name, tuple(each.labels.items()), each.value) for each in family.samples))
            for spec, family in zip(_OF_PROCESS, self.collect(), strict=True)
        ]


def metric(name: str, samples: Iterable[Sample]) -> Metric:
    """Return a metric of the table with these values."""
    spec = _BY_NAME[name]
    return Metric(spec.name, spec.kind, spec.help, tuple(samples))


class _Collected(Collector):
    """A collector of metrics that were read."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def _family(metric: Metric) -> Family:
    """Return a metric as the library has it."""
    name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
    family = Family(name, metric.help, metric.kind)
    for sample in metric.samples:
        family.add_sample(sample.name, dict(sample.labels), sample.value)
    return family


def prometheus_text(metrics: Iterable[Metric], *, process: bool = False) -> str:
    """Write metrics in Prometheus' text format, with ``process`` also CPU time, memory and open files of this process."""
    of_process = ProcessCollector(registry=None).collect() if process else ()
    return generate_latest(_Collected([*map(_family, metrics), *of_process])).decode()


#: Returns the reasons why a process cannot do its work; none if it can.
Readiness = Callable[[], list[str]]


def serve(metrics: ProcessMetrics, readiness: Readiness, host: str, port: int) -> tuple[int, Callable[[], None]]:
    """Answer ``/metrics``, ``/health/live`` and ``/health/ready`` in a thread of its own; return the port and the function that ends it.

    Raises:
        Unavailable: address_taken.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    ProcessCollector(registry=registry)
    prometheus = make_wsgi_app(registry)

    def answer_request(environ: Any, start_response: Any) -> Iterable[bytes]:
        """Answer a request for metrics or for the health of the process."""
        path = environ["PATH_INFO"]
        if path not in {"/health/live", "/health/ready"}:
            return cast("Iterable[bytes]", prometheus(environ, start_response))
        ok, body = health(readiness() if path == "/health/ready" else [])
        start_response("200 OK" if ok else "503 Service Unavailable", [("Content-Type", "application/json")])
        return [json.dumps(body).encode()]

    try:
        server, thread = start_wsgi_server(port, host, registry)
    except OSError as error:
        raise Unavailable("address_taken.metrics", host=host, port=port, reason=error.strerror or str(error)) from None
    server.set_app(answer_request)
    server.RequestHandlerClass = _QuietHandler

    def stop_server() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop_server


def health(problems: list[str]) -> tuple[bool, dict[str, Any]]:
    """Return whether there are no problems, and the body of the answer that says so."""
    return not problems, {"ok": not problems} | ({"problems": problems} if problems else {})


class _QuietHandler(WSGIRequestHandler):
    timeout = 10

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
        """Log nothing."""


def labelled(text: str, label: str, value: str) -> Iterator[Metric]:
    """Read the metrics of another process from its text, with a label added to each sample; unknown names are left out.

    Raises:
        ValueError: the text is malformed.
    """
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if name in _BY_NAME:
            yield metric(
                name,
                (Sample(each.name, (*each.labels.items(), (label, value)), each.value) for each in family.samples),
            )


def joined(metrics: Iterable[Metric]) -> list[Metric]:
    """Join the samples of metrics of one name, in the order of the table."""
    samples: dict[str, list[Sample]] = {spec.name: [] for spec in METRICS}
    for each in metrics:
        samples[each.name] += each.samples
    return [metric(name, found) for name, found in samples.items()]
