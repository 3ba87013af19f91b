"""Scripts played by calls to an attempt's host side, drawing on budgets of a day in a real ledger; only the network is left out."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.store.bench import Bench

from lodger.engine.capabilities.attempt_budgets import BudgetReservations
from lodger.engine.capabilities.fetch_state import FetchState
from lodger.engine.core.execution import Answer, Claim
from lodger.engine.data.sets.guard import inspect_databases
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.egress.request import Request
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.node.executors.sandbox_executor import finished
from lodger.sandbox.job import Report, ScriptError
from lodger.sandbox.outcome import Outcome

Play = Callable[[Attempt], Awaitable[Any]]


async def try_call(attempt: Attempt, call: str, /, **arguments: Any) -> Any:
    """Make a call; return its value, or code and details of the refusal."""
    reply = await attempt.call(call, json.dumps(arguments))
    body = json.loads(reply.json)
    return body if reply.ok else (body["code"], body.get("details"))


async def fetch(attempt: Attempt, number: int) -> Any:
    """Make one request."""
    url = f"https://api.example/{number}"
    reported = await try_call(attempt, "http.fetch", id=number, method="GET", url=url, headers=[])
    return reported["status"] if isinstance(reported, dict) else reported


async def mail(attempt: Attempt, *to: str) -> Any:
    """Send one mail."""
    return await try_call(attempt, "mail.send", to=list(to or ["a@x.example"]), subject="s", text="t", line="main.js:3")


class Spender:
    """Runs claims of a bench; ``sent`` counts the requests that left."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sent = 0
        self.body = b"hello"

    async def _send(self, request: Request) -> Answer:
        self.sent += 1
        return Answer(200, "OK", request.url, (), self.body[: request.max_body], False, 10, 10)

    async def play(self, claim: Claim, play: Play, outcome: Outcome = Outcome.OK) -> Finished:
        """Play one script to its end."""
        engine, now_us = self.bench.engine, self.bench.clock.us
        reads, reservations = (
            ThreadReads(engine.context.database),
            BudgetReservations(engine.context),
        )
        fetch_state = FetchState.of(claim, self._send)

        try:
            await inspect_databases(engine.datasets, reads)
            attempt = Attempt(claim, reads, engine.datasets, now_us=now_us, fetch_state=fetch_state, draws=reservations)
            await play(attempt)
        finally:
            await reservations.close()
            reads.close()
        error = None if outcome is Outcome.OK else ScriptError("Error", "no")
        return finished(claim, attempt, Report(outcome, result="1" if outcome is Outcome.OK else None, error=error))

    def run(self, claim: Claim, play: Play, outcome: Outcome = Outcome.OK) -> Finished:
        """Play one script to its end."""
        return asyncio.run(self.play(claim, play, outcome))

    def end(self, *ends: tuple[Claim, Finished], node: str = "n1") -> Committed:
        """Commit what has ended, in one batch."""
        from lodger.engine.effects import outcome_commit

        bench = self.bench
        with bench.engine.context.database.write() as connection:
            lease = bench.lease(node)
            return outcome_commit.commit(bench.engine.context, connection, lease, list(ends), bench.clock.us)

    def through(self, claim: Claim, play: Play, outcome: Outcome = Outcome.OK) -> Committed:
        """Play one script and commit it."""
        return self.end((claim, self.run(claim, play, outcome)))

    def asked(self, number: int = 1, tenant: str = "acme") -> list[Claim]:
        """Ask for so many runs and claim them."""
        for _ in range(number):
            self.bench.engine.run_in(tenant, "job", 0)
        return self.bench.claim(number)

    def used(self, tenant: str = "acme") -> dict[str, int]:
        """Return what a tenant used, of its last day."""
        return {
            name: amount for name, amount in self.bench.engine.tenants.usage(tenant).days[-1].counts.items() if amount
        }

    def tenant(self, tenant: str = "acme", **limits: int) -> None:
        """Make a tenant that may do everything."""
        grants = ["mail:*", "fetch:*", "sets:write", "events"]
        self.bench.engine.tenants.create(tenant, limits=limits, grants=grants)
        self.bench.engine.scripts.put(tenant, "job", "export default () => 1")
