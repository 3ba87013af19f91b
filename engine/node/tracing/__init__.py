"""Spans by OpenTelemetry: slot, attempt, host call, fetch. It must not be imported by anything while tracing is off."""
