"""A storm and a neighbour: so many slots of so many tenants due at one instant, and a quiet tenant with a slot each second beside them.

In one run of one node with an executor that does nothing: the time that as many no-op actions take that are stored before the clock
starts; the quiet tenant's lateness while nothing else is due; and from the instant of the storm, when every slot has its row, when every
action has ended, and the quiet tenant's lateness meanwhile.
"""

import asyncio
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import func, select, update

from lodger.bench import crowd
from lodger.bench.budget import Budget
from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.settings import Settings
from lodger.engine.effects.finished import Finished
from lodger.engine.store.schema.scheduling import actions, scripts, turns
from lodger.sandbox.outcome import Outcome

#: Promised: all slots have their rows within the time of as many no-op actions, and the quiet tenant's median lateness in the storm.
MAX_ACCOUNTED_RATIO, MAX_QUIET_S = 1.0, 1.0
QUIET = "quiet"
SOURCE = "export default () => null"
#: Slots of the quiet tenant before the storm, and longest wait for any phase, seconds.
ALONE, PATIENCE_S = 6, 240.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured.

    Attributes:
        rows: actions with a slot of the storm's instant; ``done``: those among them that succeeded.
        noop_s: time of as many no-op actions, from their commit to the last one's end.
        accounted_s, done_s: from the storm's instant until the last row, and until the last end.
        quiet_alone_ms, quiet_beside_ms: lateness of the quiet tenant's starts, median and highest.
        quiet_missed: slots of the quiet tenant without a row of their own.
    """

    slots: int
    tenants: int
    rows: int
    done: int
    noop_s: float
    accounted_s: float
    done_s: float
    quiet_alone_ms: tuple[float, float]
    quiet_beside_ms: tuple[float, float]
    quiet_missed: int

    @property
    def budgets(self) -> list[Budget]:
        """The promises, judged by these figures."""
        accounted, late_s = self.accounted_s / self.noop_s, self.quiet_beside_ms[0] / 1000
        return [
            Budget("slots of the storm that have a row", "", self.slots, at_least=True, ratio=self.rows),
            Budget("slots of the storm that ran", "", self.slots, at_least=True, ratio=self.done),
            Budget(
                "slots of the quiet tenant without a row of their own", "", 0, at_least=False, ratio=self.quiet_missed
            ),
            Budget("time until all slots have a row", "no-op actions", MAX_ACCOUNTED_RATIO, False, accounted),
            Budget("the quiet tenant's lateness (median), s", "", MAX_QUIET_S, at_least=False, ratio=late_s),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return asdict(self)


class Nothing:
    """Answers every claim at once."""

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""

    async def execute(self, claim: Claim) -> Finished:
        """Return null."""
        return Finished(Outcome.OK, result="null")


@dataclass
class Heard:
    """Counts events of a node, and wakes who waits for a number of them."""

    at_us: int = 0
    last_s: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    late_ms: list[float] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, event: Event) -> None:
        """Note one event."""
        now_us = time.time_ns() // 1000
        slot_us = event.details.get("slot_us")
        if event.tenant_id == QUIET:
            if event.kind == "started" and slot_us is not None:
                self.late_ms.append((now_us - slot_us) / 1000)
        elif event.kind != "ticked" or slot_us == self.at_us:
            self.counts[event.kind] += 1
            self.last_s[event.kind] = now_us / 1_000_000
        self.changed.set()

    async def until(self, number: int, kind: str) -> float:
        """Wait for so many events of a kind; return when the last one came."""
        async with asyncio.timeout(PATIENCE_S):
            while (len(self.late_ms) if kind == QUIET else self.counts[kind]) < number:
                self.changed.clear()
                await self.changed.wait()
        return self.last_s.get(kind, 0.0)

    def quiet_ms(self) -> tuple[float, float]:
        """Return the quiet tenant's lateness since the last call, median and highest."""
        found, self.late_ms = self.late_ms, []
        return median(found), max(found)


def measure(slots: int, tenants: int, url: str | None = None) -> Figures:
    """Measure on an empty database, or a new SQLite file."""
    with ExitStack() as stack:
        if url is None:
            url = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "storm.db")
        return asyncio.run(_measure(url, slots, tenants))


async def _measure(url: str, slots: int, tenants: int) -> Figures:
    settings = Settings(slots=100, min_interval_s=1, check_scripts=False)
    async with Engine.open(url, settings=settings) as engine:
        crowd.fill(engine.inner, slots, tenants, SOURCE)
        heard = Heard()
        loop = asyncio.get_running_loop()

        def hear(event: Event) -> None:
            loop.call_soon_threadsafe(heard.hear, event)

        engine.on_event(hear)
        async with engine.node(Nothing()):
            begun = time.time()
            await asyncio.to_thread(_store, engine, slots, tenants)
            engine.inner.changed()
            noop_s = await heard.until(slots, "finished") - begun
            heard.counts.clear()
            await engine.tenants.create(QUIET)
            await engine.scripts.put(QUIET, "job", SOURCE)
            await engine.schedules.create(QUIET, "second", script="job", rules="every 1s")
            await heard.until(ALONE, QUIET)
            heard.quiet_ms()  # its first slot was late: it was created between two
            await heard.until(ALONE, QUIET)
            alone = heard.quiet_ms()
        heard.at_us = (time.time_ns() // 1_000_000_000 + 5 + slots // 2000) * 1_000_000
        await asyncio.to_thread(crowd.storm, engine.inner, slots, tenants, heard.at_us)
        heard.late_ms.clear()
        async with engine.node(Nothing()):
            await asyncio.sleep(max(0.0, heard.at_us / 1_000_000 - time.time()))
            heard.late_ms.clear()
            accounted = await heard.until(slots, "ticked")
            done = await heard.until(slots, "finished")
            if not heard.late_ms:
                await heard.until(1, QUIET)
            beside = heard.quiet_ms()
        rows, ended, missed = await asyncio.to_thread(_counted, engine, heard.at_us)
    at_s = heard.at_us / 1_000_000
    return Figures(slots, tenants, rows, ended, noop_s, accounted - at_s, done - at_s, alone, beside, missed)


def _store(engine: Engine, number: int, tenants: int) -> None:
    """Store actions that are ready now."""
    context = engine.context
    now = context.clock.now_us()
    with context.database.write() as connection:
        found = connection.execute(select(scripts.c.tenant_id, scripts.c.id))
        ids = {row.tenant_id: row.id for row in found}
        rows = [
            {"tenant_id": tenant, "id": identity, "origin": "once", "slot": now, "due_at": now, "state": "ready",
             "script_id": ids[tenant], "script_version": 1}
            for tenant, identity in (
                (f"t{each % tenants:06}", identity) for each, identity in enumerate(context.ids.new_batch(number))
            )
        ]  # fmt: skip
        connection.execute(actions.insert(), rows)
        connection.execute(update(turns).where(turns.c.tenant_id.startswith("t0")).values(startable_at=0))


def _counted(engine: Engine, at_us: int) -> tuple[int, int, int]:
    """Return the storm's rows, those of them that succeeded, and slots of the quiet tenant that are in gaps."""
    c = actions.c
    with engine.context.database.read() as connection:

        def count(*where: Any) -> int:
            return connection.scalar(select(func.count()).select_from(actions).where(*where)) or 0

        storm = (c.slot == at_us, c.tenant_id != QUIET)
        gaps = (c.tenant_id == QUIET, c.slot_to.is_not(None), c.slot >= at_us)
        return count(*storm), count(*storm, c.state == "done"), count(*gaps)
