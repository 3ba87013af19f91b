"""The neighbour: a benign run of another tenant after every attack, which must have its usual result and time."""

import statistics

from lodger.escape import modules
from lodger.escape.evidence import within
from lodger.sandbox.job import Bundle, Job, Report
from lodger.sandbox.outcome import Outcome

SCRIPT = """
export default async function ({ action }) {
  const rows = [3, 1, 2].map((n) => ({ n, text: String(n) })).sort((a, b) => a.n - b.n);
  const back = JSON.parse(JSON.stringify(rows));
  let caught = "";
  try { null.x; } catch (error) { caught = error.name; }
  await Promise.all(back.map(async (row) => { row.done = true; }));
  const odd = [Object, Array, String, Function, Promise, Error, Map, RegExp].map((c) => Reflect.ownKeys(c.prototype).length).join();
  let own = "";
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const value = globalThis[name];
    for (const holder of [value, value?.prototype]) {
      if (holder === null || (typeof holder !== "object" && typeof holder !== "function") || holder === globalThis) continue;
      if (Object.isFrozen(holder)) own += `${name} frozen `;
      for (const key of Reflect.ownKeys(holder)) {
        const found = Reflect.getOwnPropertyDescriptor(holder, key).value;
        const text = typeof found === "function" ? String(found) : "[native code]";
        if (!text.includes("[native code]")) own += `${name}.${String(key)}(${text.length}) `;
      }
    }
  }
  return { id: action.id, own, rows: back, caught, odd, names: Object.getOwnPropertyNames(globalThis).sort().join() };
}
"""
ID = "neighbour"
_CONTEXT = f'{{"action":{{"id":"{ID}"}}}}'

_FIRST = 5
_TIMES, _FLOOR_MS = 20, 500.0


class Neighbour:
    """The benign run on one runtime, with its result and usual time."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._answer: str | None = None
        self._usual: list[float] = []

    def job(self) -> Job | None:
        """Return the job of the benign run; None for ``engine``."""
        if self._runtime == "engine":
            return None
        if self._runtime == "wasm":
            return Job(Bundle({}, _CONTEXT, wasm=modules.neighbour()), tag=ID, tenant=ID)
        return Job(Bundle({"main.js": SCRIPT}, _CONTEXT), tag=ID, tenant=ID)

    def judge(self, report: Report, ms: float) -> str:
        """Return what is wrong with a report, in words; "" if nothing. Raises Slow or Escaped if it took too long."""
        if report.outcome is not Outcome.OK or report.result is None:
            return f"the next run of another tenant ended as {report.outcome}"
        if self._answer is None:
            self._answer = report.result
        if report.result != self._answer:
            return "the next run of another tenant returned another result"
        if len(self._usual) < _FIRST:
            self._usual.append(ms)
        else:
            within("ms for the next run of another tenant", ms, _TIMES * statistics.median(self._usual) + _FLOOR_MS)
        return ""
