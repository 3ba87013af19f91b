"""A node without background services: it does due work when the stage asks for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import sqlalchemy as sa

from lodger.engine.core.clock import SystemClock
from lodger.engine.core.events import Fault, LedgerChanged
from lodger.engine.core.execution import Claim
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.effects.finished import Finished
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.engine.node.node import Node
from lodger.engine.node.node_environment import NodeEnvironment
from lodger.engine.node.running_attempts import key_of
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.schema.scheduling import turns
from lodger.engine.testing.clock import FakeClock
from lodger.sandbox.job import LogLine, ScriptError
from lodger.sandbox.outcome import Outcome

#: What stands in for scripts: given the params and the claim's action as scripts see them, gives the result.
Pretend = Mapping[str, Callable[[Any], Any]]
#: Seconds between two looks at running attempts, and the time that they have beyond the longest of their wall limits.
LOOK_S, PATIENCE_S = 0.01, 60.0


class Pretender:
    """Executor that runs Python functions in place of scripts, by the script's name. Needs no sandbox."""

    def __init__(self, functions: Pretend) -> None:
        self._functions = functions

    async def start(self) -> None:
        """Do nothing: no worker is needed."""

    async def stop(self) -> None:
        """Release nothing: functions hold no resources."""

    async def execute(self, claim: Claim) -> Finished:
        """Call the function; its exception is the script's error."""
        function = self._functions.get(claim.script_name)
        if function is None:
            said = f"there is no substitute for the script {claim.script_name!r}; give one with Stage(pretend=…)"
            return Finished(Outcome.ENGINE_FAULT, error=ScriptError("NotPretended", said))
        try:
            result = function(claim.params)
        except Exception as error:  # noqa: BLE001 - whatever a stand-in raises is how its script ended
            return Finished(Outcome.SCRIPT_ERROR, error=ScriptError(type(error).__name__, str(error)))
        import json

        return Finished(Outcome.OK, result=None if result is None else json.dumps(to_jsonable(result)))


class InlineNode(Node):
    """Ticks, claims, runs, commits when :meth:`settle` is called. A fault of the engine is raised."""

    def __init__(
        self,
        host: NodeEnvironment,
        clock: FakeClock,
        pretend: Pretend | None,
        way_out: WayOut | None,
        on_log: Callable[[Claim, LogLine], None] | None,
    ) -> None:
        executor = SandboxExecutor.of(host, way_out=way_out) if pretend is None else Pretender(pretend)
        if on_log is not None and isinstance(executor, SandboxExecutor):
            executor.side.hear(on_log)
        super().__init__(host, executor, "stage", deliver=False)
        self._fake = clock
        self._faults: list[Exception] = []

    async def start(self) -> None:
        """Register; nothing runs by itself."""
        await self.prepare()
        self.context.bus.subscribe(Fault, self._keep)

    def _keep(self, event: Fault) -> None:
        """Keep a fault of a service; :meth:`settle` raises it."""
        self._faults.append(event.error)

    async def settle(self) -> None:
        """Do all work that is due now or follows from it, until none is left at this instant."""
        await self.lease_keeper.round()
        await self._still()

    async def _still(self) -> None:
        """Run all services until none has anything to do at this instant; then raise the first fault, if there was one."""
        while True:
            self.context.bus.publish(LedgerChanged())
            await self.recovery.round()
            await self.change_feed.round()
            if not await self._run():
                break
        if self._faults:
            fault, self._faults = self._faults[0], []
            raise fault

    async def advance(self, until_us: int) -> None:
        """Let time pass from one due instant to the next, and settle at each."""
        await self.settle()
        while (due := await self.next_due(until_us)) is not None:
            self._fake.move_to(due)
            await self._still()
        self._fake.move_to(until_us)
        await self._still()

    async def next_due(self, until_us: int) -> int | None:
        """Return the next instant after now at which something comes due, None if there is none up to an instant."""
        return await self.db.read(partial(_next, now_us=self._fake.now_us(), until_us=until_us))

    async def _run(self) -> bool:
        """Tick and claim; run the claimed attempts to their end, and return whether there were any.

        Raises:
            TimeoutError: an attempt has not ended, or its end could not be written.
        """
        while await self.loop.round() <= 0:
            pass
        if not self.attempts:
            return False
        # Attempts are real processes and take real time, however the clock stands.
        real = SystemClock()
        patience_s = PATIENCE_S + max(claim.limits.wall_ms for claim in self.attempts.claims) / 1000
        end_s = real.elapsed_s() + patience_s
        while True:
            await self.loop.round()
            await self.sealed_commits.round()
            if not self.attempts:
                break
            if real.elapsed_s() >= end_s:
                raise TimeoutError(f"the stage waited {patience_s:.0f} s for {self._awaited()}")
            await real.sleep(LOOK_S)
        for service in self.services:
            while service.waiting:
                await service.round()
        return True

    def _awaited(self) -> str:
        """Describe the attempts that have not ended."""
        ended = self.attempts.ended
        return "; ".join(
            f"attempt {claim.attempt} of {claim.tenant_id}'s {claim.script_name}, which "
            + ("has ended and waits for rows that another transaction holds" if key_of(claim) in ended else "runs")
            for claim in self.attempts.claims
        )


def _next(connection: sa.Connection, now_us: int, until_us: int) -> int | None:
    """Return the next instant after now, up to the last of interest, at which a clock comes due or something may start."""
    startable = sa.select(sa.func.min(turns.c.startable_at)).where(turns.c.startable_at > now_us)
    found = [each for each in tick.lookahead(connection, until_us, search_further=False)[0] if each > now_us]
    start = connection.scalar(startable)
    if start is not None and start <= until_us:
        found.append(start)
    return min(found, default=None)
