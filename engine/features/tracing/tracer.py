"""The spans of a node, by OpenTelemetry's SDK: slot, attempt, host call, fetch.

The ids of an action's trace are made from its id, so that its attempts on any node are in one trace, and a sampler that
decides by the trace's id decides alike on each of them.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, Self
from urllib.parse import urlsplit

from opentelemetry import context, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lodger.engine.capabilities.fetch_state import Send
from lodger.engine.core.events import EventBus
from lodger.engine.core.execution import Answer, Claim
from lodger.engine.core.telemetry import json_logs
from lodger.engine.core.version import VERSION
from lodger.engine.effects.finished import Execute, Finished
from lodger.engine.egress.request import Request
from lodger.engine.node.node_events import BatchCommitted, CancelledWritten, SealedSettled
from lodger.engine.store.lifecycle.endings import Settled
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import CALLS

_FINAL = {"done", "failed", "cancelled"}
_CONTEXT = TraceContextTextMapPropagator()


class Tracer:
    """Makes and exports the spans of one node; :meth:`close` flushes them."""

    def __init__(self, exporter: SpanExporter, node: str) -> None:
        name = {} if _names_service() else {"service.name": "lodger"}
        self._resource = Resource.create(name | {"service.version": VERSION, "service.instance.id": node})
        self._processor = BatchSpanProcessor(exporter)
        self._provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer("lodger", VERSION)

    @classmethod
    def open(cls, exporter: str, node: str) -> Self:
        """Return a tracer with an exporter by the name of its entry point.

        Raises:
            ImportError: no installed package has it.
        """
        for found in entry_points(group="opentelemetry_traces_exporter", name=exporter):
            return cls(found.load()(), node)
        raise ImportError(f"there is no exporter {exporter}")

    async def close(self) -> None:
        """Export the remaining spans, and end the thread."""
        await asyncio.to_thread(self._provider.shutdown)

    def traced(self, execute: Execute) -> Execute:
        """Return a function that executes an attempt in its span."""

        async def execute_traced(claim: Claim) -> Finished:
            """Run one attempt in its span."""
            with self.attempt(claim) as span:
                try:
                    finished = await execute(claim)
                except asyncio.CancelledError:
                    span.set_attribute("lodger.outcome", Outcome.CANCELLED.value)
                    raise
                span.set_attribute("lodger.outcome", finished.outcome.value)
                if finished.outcome is not Outcome.OK:
                    span.set_status(StatusCode.ERROR, finished.outcome.value)
                return finished

        return execute_traced

    def subscribe(self, bus: EventBus) -> None:
        """Export a slot's span when its action is over."""
        bus.subscribe(BatchCommitted, self._committed)
        bus.subscribe(SealedSettled, self._sealed_settled)
        bus.subscribe(CancelledWritten, self._cancelled)

    def exemplar(self, claim: Claim) -> dict[str, str] | None:
        """Return the labels of an exemplar that leads to a claim's trace, None if the trace is not sampled."""
        slot = self._slot(claim.action_id)
        return {"trace_id": trace.format_trace_id(slot.trace_id)} if slot.trace_flags.sampled else None

    @contextmanager
    def attempt(self, claim: Claim) -> Iterator[Span]:
        """Record the span of an attempt around a block; it is the present span there."""
        slot = self._slot(claim.action_id)
        json_logs.bind(trace_id=trace.format_trace_id(slot.trace_id))
        attributes = _attributes(claim) | {
            "lodger.attempt": claim.attempt, "lodger.step": claim.step, "lodger.script": claim.script_name, "lodger.origin": claim.origin,
            "lodger.lateness_ms": (claim.started_us - claim.due_us) / 1000,
        }  # fmt: skip
        parent = trace.set_span_in_context(NonRecordingSpan(slot))
        with self._tracer.start_as_current_span(
            "attempt", parent, attributes=attributes, start_time=claim.started_us * 1000
        ) as span:
            yield span

    def calls(self) -> Callable[[str], AbstractContextManager[object]]:
        """Return a function that records the span of a host call, by the call's name, below the present span."""
        parent = context.get_current()

        def call_span(name: str) -> AbstractContextManager[object]:
            """Begin the span of a host call; only known names become part of it."""
            return self._tracer.start_as_current_span(name if name in CALLS else "unknown call", parent)

        return call_span

    def sending(self, send: Send) -> Send:
        """Return a way out that records the span of each request, and sends its context along (``traceparent``)."""

        async def send_traced(request: Request) -> Answer:
            """Send a request in a span of its own, with the headers of the trace."""
            # Path and query may be confidential.
            about = {"http.request.method": request.method, "server.address": urlsplit(request.url).hostname or ""}
            with self._tracer.start_as_current_span("fetch", kind=SpanKind.CLIENT, attributes=about) as span:
                carrier: dict[str, str] = {}
                _CONTEXT.inject(carrier)
                there = {name for name, _value in request.headers}
                headers = (*request.headers, *((name, value) for name, value in carrier.items() if name not in there))
                answer = await send(replace(request, headers=headers))
                span.set_attribute("http.response.status_code", answer.status)
                return answer

        return send_traced

    def _slot(self, action_id: str) -> SpanContext:
        """Return the context of a slot's span, made from the action's id."""
        digest = hashlib.blake2b(action_id.encode(), digest_size=24).digest()
        trace_id, span_id = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big")
        decision = self._provider.sampler.should_sample(None, trace_id, "slot").decision
        sampled = decision is Decision.RECORD_AND_SAMPLE
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(sampled))

    def _committed(self, event: BatchCommitted) -> None:
        """End the spans of committed attempts."""
        settled = {(each.action_id, each.attempt): each for each in event.committed.settled}
        for claim, _finished in event.batch:
            found = settled.get((claim.action_id, claim.attempt))
            if found is not None and found.state in _FINAL:
                start_us = claim.slot_us if claim.slot_us is not None else claim.due_us
                self._export(claim.action_id, start_us, _attributes(claim), found.state, found.outcome)

    def _sealed_settled(self, event: SealedSettled) -> None:
        """End the spans of attempts whose sealed commits have ended."""
        found = event.finish.settled
        if found.state in _FINAL and event.finish.slot_us is not None:
            self._export(found.action_id, event.finish.slot_us, _attributes(found), found.state, found.outcome)

    def _cancelled(self, event: CancelledWritten) -> None:
        """End the spans of cancelled attempts."""
        for claim, _finished in event.attempts:
            start_us = claim.slot_us if claim.slot_us is not None else claim.due_us
            self._export(claim.action_id, start_us, _attributes(claim), "cancelled", Outcome.CANCELLED)

    def _export(self, action_id: str, start_us: int, about: dict[str, Any], state: str, outcome: Outcome) -> None:
        """Export the span of a slot; its attempts may have run on several nodes."""
        ok = state == "done"
        self._processor.on_end(
            ReadableSpan(
                "slot", self._slot(action_id), resource=self._resource,
                attributes=about | {"lodger.state": state, "lodger.outcome": outcome.value},
                status=Status(StatusCode.UNSET if ok else StatusCode.ERROR), start_time=start_us * 1000,
                end_time=max(start_us * 1000, time.time_ns()),
            )
        )  # fmt: skip


def _attributes(of: Claim | Settled) -> dict[str, Any]:
    """Return the attributes of a span: its action with tenant and schedule."""
    schedule = {} if of.schedule_id is None else {"lodger.schedule": of.schedule_id}
    return {"lodger.tenant": of.tenant_id, "lodger.action": of.action_id} | schedule


def _names_service() -> bool:
    """Whether the environment names the service for OpenTelemetry."""
    return "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
