"""The judge of the matrix: runs a case without some layers."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace

from tests.escape.matrix.careless_calls import CarelessSwitchboard
from tests.escape.matrix.careless_host import careless_maker
from tests.escape.matrix.careless_rules import careless_act
from tests.escape.matrix.weakening import Weakening

from lodger.escape.arena import Arena, limits_of
from lodger.escape.case import Case
from lodger.escape.evidence import Trial
from lodger.escape.invariants import Canaries
from lodger.escape.judge import Judge
from lodger.escape.neighbours import SCRIPT, Neighbour
from lodger.escape.switchboard import Switchboard
from lodger.sandbox.job import Bundle, Job
from lodger.sandbox.limits import Limits

#: An attack and the next tenant's script in one realm, which a new process per attempt prevents.
_SHARED = """
import victim from "./victim.js";
export default async function (all) {
  const given = { ...all, action: { id: "neighbour" } };
  try { await (await import("./attack.js")).default(all); } catch {}
  return victim(given);
}
"""
#: The same as one file, for a runtime without modules.
_SHARED_FILE = """
const attack = %s;
const victim = %s;
export default async function (all) {
  const given = { ...all, action: { id: "neighbour" } };
  try { await attack(all); } catch {}
  return victim(given);
}
"""
_EXPORT = re.compile(r"\bexport default\b")


def shared_realm(sources: Mapping[str, str], runtime: str) -> dict[str, str]:
    """Return modules that run an attack, then the benign script, in one realm."""
    if runtime == "quickjs-native":
        functions = (_EXPORT.sub("", text, count=1).strip() for text in (sources["main.js"], SCRIPT))
        return {"main.js": _SHARED_FILE % tuple(functions)}
    others = {name: text for name, text in sources.items() if name != "main.js"}
    return {"main.js": _SHARED, "victim.js": SCRIPT, "attack.js": sources["main.js"], **others}


class WeakJudge(Judge):
    """Judge of cases in a weakened arena, without the neighbour."""

    whole = False

    def __init__(self, runtime: str, arena: Arena, canaries: Canaries, weak: Weakening) -> None:
        super().__init__(runtime, arena, canaries, None)
        self._weak = weak

    async def attack(self, case: Case) -> Trial:
        """Run a case without the removed layers and return the observations."""
        weak, limits = self._weak, limits_of(case)
        if case.act is not None:
            started = time.perf_counter()
            report = careless_act(case.act, weak.engine)
            return Trial((report,), limits, took_ms=(time.perf_counter() - started) * 1000)
        if weak.host == "same_realm":
            return await self._shared(case, limits)
        make_host = CarelessSwitchboard if weak.host == "naive" else Switchboard
        if case.host is not None:
            make_host = careless_maker(case, weak.engine)
        return await self.run(case, limits, replace(limits, **weak.parent), make_host)

    async def _shared(self, case: Case, limits: Limits) -> Trial:
        """Run the attack, then the next tenant's script in the same realm."""
        victim = Neighbour(self._runtime).job()
        assert victim is not None
        alone = await self._arena.run(victim, Switchboard(limits))
        job = Job(Bundle(shared_realm(case.sources(), self._runtime), case.context), limits)
        report = await self._arena.run(job, Switchboard(limits))
        facts = {"victim": report.result or str(report.outcome), "victim alone": alone.result or ""}
        return Trial((report,), limits, facts=facts)
