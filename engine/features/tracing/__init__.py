"""Wing: spans by OpenTelemetry of slot, attempt, host call and fetch. The SDK is not imported while tracing is off."""

from lodger.engine.features.tracing.enabled import open_tracer
from lodger.engine.node import tracing

tracing.TRACERS.append(open_tracer)
