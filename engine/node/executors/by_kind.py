"""Chooses the executor of a claim: a script in a locked worker, a handler of the platform in this process, or that of a wing's kind."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Claim
from lodger.engine.core.params import validate_params
from lodger.engine.effects.finished import Executor, Finished
from lodger.engine.node.executors.host_side import HostSide
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

#: Makes the executors of further kinds of scripts from a host side, which they close at their end if it is theirs.
KINDS: dict[str, Callable[[HostSide, bool], Executor]] = {}


class ByKind:
    """Satisfies :class:`lodger.engine.effects.finished.Executor` by one of each kind."""

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        self._executors = dict(executors)

    async def start(self) -> None:
        """Start all executors; when one cannot start, the others are stopped again."""
        started: list[Executor] = []
        try:
            for executor in self._executors.values():
                started.append(executor)
                await executor.start()
        except BaseException:
            for executor in reversed(started):
                await executor.stop()
            raise

    async def stop(self) -> None:
        """Stop the executors of all kinds."""
        for executor in reversed(self._executors.values()):
            await executor.stop()

    async def execute(self, claim: Claim) -> Finished:
        """Run a claim by its kind, once its params satisfy the declaration of this version of its script."""
        try:
            claim = with_checked_params(claim)
        except InputError as refused:
            return Finished(Outcome.BAD_REQUEST, error=ScriptError("BadRequest", refused.what))
        executor = self._executors.get(claim.kind)
        if executor is None:
            said = f"this node cannot execute scripts of kind {claim.kind}"
            return Finished(Outcome.ENGINE_FAULT, error=ScriptError("NoExecutor", said))
        return await executor.execute(claim)


def with_checked_params(claim: Claim) -> Claim:
    """Return a claim with the typed params that this version of its script declares, defaults included.

    Raises:
        InputError: they are not as declared.
    """
    if claim.fields is None:
        return claim
    return replace(claim, params=validate_params(claim.fields, claim.params))
