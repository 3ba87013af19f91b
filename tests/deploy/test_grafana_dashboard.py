"""The dashboard for Grafana asks for metrics and labels that exist, and for each metric of the table."""

import json
import re
from pathlib import Path
from typing import Any

from tests.deploy.metric_names import NAMES

from lodger.engine.core.metrics import METRICS, MetricSpec

FILE = Path(__file__).resolve().parents[2] / "deploy" / "grafana-dashboard.json"
#: Labels beside those of the table: bounds of buckets, and the node of figures that the API serves.
MORE = {"le", "node"}


def expressions() -> list[str]:
    panels: list[dict[str, Any]] = json.loads(FILE.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def used(expression: str) -> tuple[set[str], set[str]]:
    """Return the names of the metrics and of the labels in an expression."""
    labels = {each.strip() for listed in re.findall(r"by \(([^)]*)\)", expression) for each in listed.split(",")}
    return set(re.findall(r"lodger_\w+", expression)), labels


def test_every_name_and_label_exists() -> None:
    for expression in expressions():
        names, labels = used(expression)
        assert names, expression
        assert names <= set(NAMES), expression
        allowed = MORE.union(*(NAMES[name].labels for name in names))
        assert labels <= allowed, expression


def test_counters_are_asked_for_as_rates_and_gauges_as_they_are() -> None:
    for expression in expressions():
        specs: list[MetricSpec] = [NAMES[name] for name in used(expression)[0]]
        rated = re.search(r"\b(rate|increase)\(", expression) is not None
        assert rated == any(spec.kind != "gauge" for spec in specs), expression


def test_every_metric_is_shown() -> None:
    shown = {NAMES[name].name for expression in expressions() for name in used(expression)[0]}
    assert shown == {spec.name for spec in METRICS}
