"""Runs claims of kind ``ping``: one HTTP request, by the way out, the grants, secrets and budgets that ``fetch`` of scripts goes by.

No worker is needed: no foreign code is executed, and the answer is only stored.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from lodger.engine.capabilities.fetch_state import no_responses
from lodger.engine.core import strict_json
from lodger.engine.core.clock import from_us, zulu
from lodger.engine.core.execution import Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.effects.finished import Finished, Stopped
from lodger.engine.features.pings.ping import Ping, decode
from lodger.engine.node.executors.attempt import UNANSWERED, Attempt
from lodger.engine.node.executors.host_side import HostSide
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.prescan import parse

#: Letters of an answer's body that are kept in the result, or in the log when the answer is not the one expected.
KEPT = 4096


class PingExecutor:
    """Satisfies :class:`lodger.engine.effects.finished.Executor`.

    Args:
        side: answers the call ``http.fetch``.
        owned: whether :meth:`stop` closes ``side``.
    """

    def __init__(self, side: HostSide, owned: bool) -> None:
        self._side = side
        self._owned = owned

    async def start(self) -> None:
        """Do nothing: a ping needs no worker."""

    async def stop(self) -> None:
        """Close the host side if it is owned."""
        if self._owned:
            await self._side.close()

    async def execute(self, claim: Claim) -> Finished:
        """Make the request; cancelled, it raises :class:`lodger.engine.effects.finished.Stopped`."""
        attempt = await self._side.attempt(claim)
        # A ping asks anew each time: that it was answered with 503 before is why it is tried again.
        attempt.fetch_state.earlier = no_responses
        # No script waits to catch a time-out of its own: the wall limit is the only one.
        attempt.fetch_state.end_s = None
        run = _Run(claim, attempt, self._side)
        try:
            return await run.run()
        finally:
            attempt.close()


class _Run:
    """One request."""

    def __init__(self, claim: Claim, attempt: Attempt, side: HostSide) -> None:
        self._claim, self._attempt, self._clock = claim, attempt, side.clock
        self._begun = side.clock.elapsed_s()
        self._lines: list[LogLine] = []

    async def run(self) -> Finished:
        """Send the request of a ping and judge its response."""
        ping = decode(self._claim.modules)
        limit_ms = self._claim.limits.wall_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                reply = await self._attempt.call("http.fetch", strict_json.dump(asked(ping, self._claim)))
        except TimeoutError:
            ended = self._attempt.verdict(Outcome.WALL_LIMIT, None)
            said = f"no complete answer arrived within {limit_ms} ms"
            return self._end(
                ended, error=UNANSWERED if ended is Outcome.ENGINE_FAULT else ScriptError("LimitExceeded", said)
            )
        except asyncio.CancelledError:
            raise Stopped(self._end(Outcome.CANCELLED)) from None
        answer = json.loads(reply.json)
        if not reply.ok:
            refused: CallRefused | None = self._attempt.refused
            outcome = None if refused is None else refused.outcome
            return self._end(outcome or Outcome.SCRIPT_ERROR, error=ScriptError("CallRefused", answer["message"]))
        return self._judged(ping, answer)

    def _judged(self, ping: Ping, answer: dict[str, Any]) -> Finished:
        """Return the end of a ping from the response: ok if the status is one of those that it expects."""
        status, text = answer["status"], answer.get("text")
        kept = text if text is None else text[:KEPT]
        if not ping.expects(status):
            if kept:
                self._lines.append(LogLine("warn", kept, self._clock.now_us()))
            said = f"{ping.method} {ping.url} answered {status} {answer['reason']}".rstrip()
            return self._end(Outcome.SCRIPT_ERROR, error=ScriptError("PingFailed", f"{said}; expected {ping.expect}"))
        result: dict[str, Any] = {"status": status, "url": answer["url"], "bytes": answer["size"]}
        if kept:
            result["body"] = kept
            if len(kept) == answer["size"]:
                with suppress(ValueError):
                    result["body"] = self._read(kept)
        return self._end(Outcome.OK, strict_json.dump(result))

    def _read(self, text: str) -> Any:
        """Read an answer as strictly as what a script returns: results of all kinds of scripts have the same limits.

        Raises:
            ValueError: it stays text.
        """
        limits = self._claim.limits
        found = parse(text.encode(), max_bytes=limits.result_bytes, max_depth=limits.json_depth - 1)
        strict_json.dump(found).encode()  # half of a letter, written as an escape, is none that a ledger keeps
        return found

    def _end(self, outcome: Outcome, result: str | None = None, error: ScriptError | None = None) -> Finished:
        """Return the end of the attempt with its log and usage."""
        size = 0 if result is None else len(result.encode())
        if size > self._claim.limits.result_bytes:
            said = f"the result has {size} bytes of JSON, the maximum is {self._claim.limits.result_bytes}"
            outcome, result, error = Outcome.OUTPUT_LIMIT, None, ScriptError("LimitExceeded", said)
        counters, wall_ms = self._attempt.counters, (self._clock.elapsed_s() - self._begun) * 1000
        lines = sorted((*self._lines, *self._attempt.warnings), key=lambda line: line.us)
        return Finished(
            outcome, result, error, tuple(lines), Usage(wall_ms=round(wall_ms, 3), host_calls=1),
            effects=tuple(self._attempt.fetch_state.shown), spent=counters.spent(), has_reservation=self._attempt.has_reservation,
            nearly=tuple(self._attempt.nearly),
        )  # fmt: skip


def asked(ping: Ping, claim: Claim) -> dict[str, Any]:
    """Return the arguments of the call ``http.fetch``.

    POST, PUT and PATCH without a body of their own send tenant, action, schedule, slot and params. The request is the
    same in every attempt, so all attempts have one idempotency key.
    """
    headers, body = [*ping.headers.items()], ping.body
    if body is None and ping.method in ("POST", "PUT", "PATCH"):
        body = {
            "tenant": claim.tenant_id,
            "action": claim.action_id,
            "schedule": claim.schedule_id,
            "slot": None if claim.slot_us is None else zulu(from_us(claim.slot_us)),
            "params": claim.params,
        }
    if body is not None and not isinstance(body, str):
        body = strict_json.dump(body)
        if not any(name.lower() == "content-type" for name, _value in headers):
            headers.append(("content-type", "application/json"))
    return {
        "id": 1,
        "method": ping.method,
        "url": ping.url,
        "headers": [[name, value] for name, value in headers],
        "body": body,
        "redirect": None,
        "line": None,
    }
