"""Faults of machines and of the database: crashes between any two statements, errors, stalls, clock steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.sim.simulator.loop import Process

from lodger.engine.core.errors import Unavailable

if TYPE_CHECKING:
    from tests.sim.simulator.world import Machine, World


class Crash(BaseException):
    """The process is killed at this statement; only the world catches it."""


@dataclass(slots=True)
class Fault:
    """A fault in the next transaction of a process.

    Attributes:
        what: crash or refuse.
        where: number of statements until it (begin counts as one), ``commit`` for before the commit, ``after`` for after it.
        times: number of affected transactions.
    """

    what: str
    where: int | str
    times: int = 1


class Faults:
    """Injector of faults into the processes of a world; public methods are verbs of plans."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._coming: dict[str, Fault] = {}
        self._slowed: dict[str, tuple[float, float]] = {}
        self._left: int | None = None
        self._present: Fault | None = None

    # ---- verbs

    def crash(self, node: int, statement: int | str | None) -> str:
        """Kill a node: now, or in the middle of its next transaction."""
        return self._plan_fault(node, "crash", statement, 1)

    def refuse(self, node: int, statement: int | str, times: int) -> str:
        """Let the database fail; with ``after`` the commit succeeds but its reply is lost."""
        return self._plan_fault(node, "refuse", statement, times)

    def _plan_fault(self, node: int, what: str, where: int | str | None, times: int) -> str:
        """Let a node's next transaction meet a fault: at a statement, or at once for None."""
        machine = self._machine(node)
        if machine is None or machine.process is None:
            return "not up"
        if where is None:
            machine.end()
        else:
            self._coming[machine.process.name] = Fault(what, where, times)
        return machine.process.name if machine.process else "now"

    def stop(self, node: int) -> str:
        """Stop a node gracefully; it is started again."""
        machine = self._machine(node)
        if machine is None or machine.node is None or machine.process is None or machine.process.frozen:
            return "not up"
        world, process, stopping = self._world, machine.process, machine.node

        async def stopped() -> None:
            await stopping.stop()
            if machine.process is process:
                world.later(0, machine.end)

        world.record_fault()
        world.loop.spawn(process, stopped())
        return process.name

    def freeze(self, node: int, for_s: float) -> str:
        """Suspend a process for a while."""
        machine, loop = self._machine(node), self._world.loop
        if machine is None or machine.process is None or machine.process.frozen:
            return "not up"
        process = machine.process
        process.frozen = True
        self._world.record_fault(warped=True)

        def thaw() -> None:
            self._world.record_fault(warped=True)
            loop.thaw(process)

        self._world.later(for_s, thaw)
        return process.name

    def slow(self, node: int, by_s: float, for_s: float) -> str:
        """Delay a node's transactions for a while."""
        machine = self._machine(node)
        if machine is None or machine.process is None:
            return "not up"
        self._slowed[machine.process.name] = (by_s, self._world.loop.time() + for_s)
        return machine.process.name

    def step_clock(self, by_s: float) -> str:
        """Step the wall clock, which all processes share."""
        self._world.record_fault(warped=True)
        self._world.clock.step(by_s)
        return ""

    def sleep(self, for_s: float) -> str:
        """Suspend the machine: timers stop, the wall clock and CLOCK_BOOTTIME advance."""
        self._world.record_fault(warped=True)
        self._world.clock.suspend(for_s)
        return ""

    def heal(self) -> None:
        """Remove all faults."""
        self._coming.clear()
        self._slowed.clear()
        for machine in self._world.machines:
            if machine.process is not None and machine.process.frozen:
                self._world.loop.thaw(machine.process)
        self._world.record_fault(warped=True)

    def _machine(self, number: int) -> "Machine | None":
        machines = self._world.machines
        return machines[number] if number < len(machines) else None

    # ---- injection

    def carry(self, process: Process | None, work: Callable[[], Any]) -> tuple[Callable[[], Any], float, float]:
        """Plan a thread's job: see :data:`tests.sim.simulator.loop.Carry`."""
        if process is None:
            return work, 0.0, 0.0
        wait = answer = self._world.plan.job_s / 2
        slowed = self._slowed.get(process.name)
        if slowed is None or self._world.loop.time() >= slowed[1]:
            return lambda: self._work_with_fault(process, work), wait, answer
        wait, answer = (self._world.chance.uniform(0, slowed[0]) for _ in range(2))

        def late() -> Any:
            # A thread's jobs wait for each other, so that a delay lasts.
            self._world.record_fault()
            self._world.later(answer, self._world.record_fault)
            return self._work_with_fault(process, work)

        return late, wait, answer

    def _work_with_fault(self, process: Process, work: Callable[[], Any]) -> Any:
        """Do a thread's job with the fault that is planned for its process."""
        trouble = self._coming.get(process.name)
        if trouble is None:
            return work()
        self._arm(trouble)
        try:
            reported = work()
        except Crash:
            self._count_fault(process, trouble)
            self._end(process)
            return None
        except Unavailable:
            self._count_fault(process, trouble)
            raise
        finally:
            self._left = self._present = None
        if trouble.where != "after":
            return reported  # the transaction was shorter: the fault stays for the next one
        self._count_fault(process, trouble)
        if trouble.what == "crash":
            self._end(process)
            return None
        raise _lost()

    def _arm(self, trouble: Fault) -> None:
        """Make a fault the present one; statements count down to it."""
        self._present = trouble
        self._left = trouble.where if isinstance(trouble.where, int) else None

    def _count_fault(self, process: Process, trouble: Fault) -> None:
        """Record that a fault has happened."""
        self._world.record_fault()
        self._world.met(trouble)
        trouble.times -= 1
        if trouble.times <= 0:
            self._coming.pop(process.name, None)

    def _end(self, process: Process) -> None:
        for machine in self._world.machines:
            if machine.process is process:
                machine.end()

    def statement(self) -> None:
        """Inject a fault before a statement is executed.

        Raises:
            Crash, Unavailable: the fault.
        """
        if self._left is None:
            return
        self._left -= 1
        if self._left < 0:
            self._left = None
            self._raise_fault()

    def committing(self) -> None:
        """Inject a fault before a commit.

        Raises:
            Crash, Unavailable: the fault.
        """
        if self._present is not None and self._present.where == "commit":
            self._raise_fault()

    def _raise_fault(self) -> None:
        """Raise the present fault."""
        assert self._present is not None
        if self._present.what == "crash":
            raise Crash
        raise Unavailable("database_busy", place="simulation", reason="it is busy")

    def cut(self, after: int | None, work: Callable[[], Any]) -> Any:
        """Run an operator's work, interrupted after a number of statements if one is given."""
        if after is None:
            return work()
        self._arm(Fault("crash", after))
        try:
            return work()
        finally:
            self._left = self._present = None


def _lost() -> Unavailable:
    return Unavailable("database_unreachable", place="simulation", reason="the answer was lost")
