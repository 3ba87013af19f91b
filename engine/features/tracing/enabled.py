"""Whether spans are exported, by the standard ``OTEL_`` variables; without them OpenTelemetry is not imported."""

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.engine.features.tracing.tracer import Tracer

_log = logging.getLogger("lodger.node")
#: Endpoints that switch the exporter ``otlp`` on by themselves.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def exporter_name(environment: Mapping[str, str]) -> str | None:
    """Return the name of the exporter's entry point, None if spans are not exported."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    default = "otlp" if any(environment.get(each) for each in _ENDPOINTS) else "none"
    name = environment.get("OTEL_TRACES_EXPORTER") or default
    if name != "otlp":
        return None if name == "none" else name
    protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"


def open_tracer(node: str) -> "Tracer | None":
    """Return the tracer of a node, None if spans are not exported or the extra is missing, which is logged."""
    name = exporter_name(os.environ)
    if name is None:
        return None
    try:
        from lodger.engine.features.tracing.tracer import Tracer

        return Tracer.open(name, node)
    except ImportError as missing:
        _log.warning("no spans are exported (%s): pip install 'lodger[otel]'", missing)
        return None
