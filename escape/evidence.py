"""What a case looks at after its attack. A check gives its observation in words, or raises Escaped with what got through."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lodger.sandbox import prescan
from lodger.sandbox.job import Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome

#: A gross bound for a quiet host: ``lodger bench walls`` measures the fine one.
CPU_SLACK_MS = 200.0
WALL_SLACK_MS = 1500.0
#: So many times the bound of a time is an escape; between the bound and that the host is slow, which says nothing of the wall.
MARGIN = 4
MEMORY_SLACK_BYTES = 40 * MIB
PARENT_SLACK_BYTES = 8 * MIB

#: What no text that a script or its author reads may hold: our language, our paths, our addresses.
LEAKS = re.compile(
    r'Traceback|File "|\.py\b|site-packages|/home/|/usr/|/root/|/proc/\d|\b0x[0-9a-f]{6,}\b|[Ww]asmtime|libwasm|<class |errno'
)


_FAULT = re.compile(r"\(SIG(SEGV|BUS|ABRT|ILL|TRAP|FPE)\)")


class Escaped(Exception):
    """The attack got what it wanted; the text says what."""


class Slow(Exception):
    """The host is too slow for a verdict; the text says what took too long."""


class Unseen(Exception):
    """This host does not show what the evidence needs; the text says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What was observed of one attack.

    Attributes:
        reports: one for each try, in order.
        limits: what was promised, whatever the matrix raised.
        asked: host calls as the parent saw them: name and arguments.
        facts: what an inspection found.
        page_table_bytes: the most page tables of a worker that were seen while it ran: kernel memory that no resident size counts.
        parent_bytes: by how much this process grew.
        took_ms: from the asking to the report of the last try, compilation included.
    """

    reports: tuple[Report, ...]
    limits: Limits
    asked: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    page_table_bytes: int = 0
    parent_bytes: int = 0
    took_ms: float = 0.0

    @property
    def report(self) -> Report:
        """The last try's report."""
        return self.reports[-1]


Check = Callable[[Trial], str]


def by_outcome(trial: Trial) -> str:
    """Measure what the outcome speaks of; every bound holds for every case."""
    said = [within_limits(trial)]
    error = trial.report.error
    if error is not None:
        said.append(f"{error.name}: {error.message[:120]}")
    elif trial.report.result is not None:
        said.append(f"answered {trial.report.result[:120]}")
    return "; ".join(said)


def within_limits(trial: Trial) -> str:
    """CPU, time, memory, result, logs, calls and this process's growth against what was promised."""
    limits = trial.limits
    for report in trial.reports:
        usage = report.usage
        memory = usage.memory_peak_bytes + trial.page_table_bytes
        _maximum("bytes of memory and page tables", memory, limits.memory_bytes + MEMORY_SLACK_BYTES)
        _maximum("bytes of result", len((report.result or "").encode()), limits.result_bytes)
        _maximum("log lines", len(report.logs), limits.log_lines + 1)
        for line in report.logs:
            _maximum("bytes in a log line", len(line.text.encode()), limits.log_line_bytes + 128)
        _maximum("bytes of log", sum(len(line.text.encode()) for line in report.logs), limits.log_bytes + 256)
        _maximum("host calls", usage.host_calls, limits.host_calls)
    _maximum(
        "bytes grown in the parent",
        trial.parent_bytes,
        PARENT_SLACK_BYTES + 4 * limits.result_bytes + 2 * limits.log_bytes,
    )
    for report in trial.reports:
        within("ms of CPU time beyond the limit", report.usage.cpu_ms - limits.cpu_ms, CPU_SLACK_MS)
        within("ms of time beyond the limit", report.usage.wall_ms - limits.wall_ms, WALL_SLACK_MS)
    usage = trial.report.usage
    return f"{usage.cpu_ms:.0f} ms CPU, {usage.wall_ms:.0f} ms, peak {usage.memory_peak_bytes / MIB:.1f} MiB"


def value_of(report: Report) -> Any:  # noqa: ANN401 - any JSON value
    """Give the result. Raises Escaped when what came back as one is no JSON that every parser reads alike."""
    try:
        return prescan.parse((report.result or "null").encode("utf-8", "replace"), max_bytes=1 << 30, max_depth=1 << 20)
    except prescan.JsonRefused as refused:
        raise Escaped(f"what came back is not one JSON value: {refused}; {(report.result or '')[:80]!r}") from None


def _maximum(what: str, found: float, bound: float) -> None:
    if found > bound:
        raise Escaped(f"{found:.0f} {what}, at most {bound:.0f} allowed")


def within(what: str, found: float, bound: float) -> None:
    """Compare a time with its bound. Raises Slow beyond it, Escaped beyond :data:`MARGIN` times it."""
    if found > MARGIN * bound:
        raise Escaped(f"{found:.0f} {what}, at most {bound:.0f} allowed")
    if found > bound:
        raise Slow(f"{found:.0f} {what}, at most {bound:.0f} on a quiet host")


def answers(*wanted: Any) -> Check:
    """The script answers exactly one of these values: anything else is what it stole."""

    def check(trial: Trial) -> str:
        measured = within_limits(trial)
        for report in trial.reports:
            if report.outcome is Outcome.OK:
                value = value_of(report)
                if not any(_same(value, one) for one in wanted):
                    raise Escaped(f"answered {(report.result or '')[:200]}")
        return f"answered {(trial.report.result or '')[:120]}; {measured}"

    return check


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON value
    return type(one) is type(other) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def where(what: str, holds: Callable[[Any], bool]) -> Check:
    """The script's answer has this property."""

    def check(trial: Trial) -> str:
        measured = within_limits(trial)
        for report in trial.reports:
            if report.outcome is Outcome.OK and not holds(value_of(report)):
                raise Escaped(f"not {what}: {(report.result or '')[:200]}")
        return f"{what}; {measured}"

    return check


def in_time(trial: Trial) -> str:
    """It held its worker no longer than the time it was given, and a second for a busy host."""
    within("ms for which it held its worker beyond its time", trial.report.usage.wall_ms - trial.limits.wall_ms, 1000)
    return within_limits(trial)


def survives(trial: Trial) -> str:
    """No memory of the worker itself was hit: it ended by an answer, a limit or its own decision, not by a fault."""
    for report in trial.reports:
        if report.outcome is Outcome.CRASHED and report.error is not None and _FAULT.search(report.error.message):
            raise Escaped(f"the process itself was hit: {report.error.message}")
    return by_outcome(trial)


def both(*checks: Check) -> Check:
    """All of these; told in the words of the last."""

    def check(trial: Trial) -> str:
        said = ""
        for one in checks:
            said = one(trial)
        return said

    return check


def ends_as(*wanted: Outcome, says: str = "") -> Check:
    """It ended by this wall's own verdict, in our words; any other end is what the attacker wanted."""

    def check(trial: Trial) -> str:
        measured = by_outcome(trial)
        for report in trial.reports:
            text = "" if report.error is None else f"{report.error.name}: {report.error.message}"
            if report.outcome not in wanted or says not in text:
                raise Escaped(f"ended as {report.outcome}: {(text or report.result or '')[:200]}")
        return f"ended as {trial.report.outcome}; {measured}"

    return check


def all_different(trial: Trial) -> str:
    """No two tries answer the same."""
    results = [report.result for report in trial.reports]
    if len(set(results)) != len(results):
        raise Escaped(f"{len(results)} workers gave {len(set(results))} different answers")
    return f"{len(results)} workers, {len(results)} different answers"


def host_saw(*wanted: tuple[str, str]) -> Check:
    """The parent's table of calls saw exactly these."""

    def check(trial: Trial) -> str:
        measured = within_limits(trial)
        if trial.asked != wanted:
            raise Escaped(f"the host was asked {str(trial.asked)[:200]}")
        return f"the host was asked {len(wanted)} times as expected; {measured}"

    return check


def tells_nothing(trial: Trial) -> str:
    """The error holds no path, no address, no word of the languages that we are written in."""
    measured = within_limits(trial)
    error = trial.report.error
    text = "" if error is None else f"{error.name}: {error.message} {error.stack} {error.file}"
    leak = LEAKS.search(text)
    if leak is not None:
        raise Escaped(f"the error says {leak.group()!r}: {text[:200]!r}")
    return f"clean: {text[:100]}; {measured}"


def marked(trial: Trial) -> str:
    """What was left out of the log is said in it."""
    measured = within_limits(trial)
    report, limits = trial.report, trial.limits
    marks = ("[cut]", "[the run was stopped with its log full")
    cut = any(line.text.endswith("…") or any(mark in line.text for mark in marks) for line in report.logs)
    if not report.dropped_logs and not cut:
        kept = sum(len(line.text.encode()) for line in report.logs)
        ended = report.outcome in (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT)
        if ended and len(report.logs) < limits.log_lines and kept < limits.log_bytes:
            raise Slow(
                f"ended as {report.outcome} with {len(report.logs)} lines and {kept} bytes of log: no limit was met"
            )
        raise Escaped(f"{len(report.logs)} lines kept and nothing said about the others")
    return f"{len(report.logs)} lines kept, {report.dropped_logs} dropped and said so; {measured}"


def leaves_nothing(*wanted: Any) -> Check:
    """The next tenant's script answers as ever; this one's answer is one of the wanted, when any are named."""
    own = answers(*wanted) if wanted else within_limits

    def check(trial: Trial) -> str:
        if trial.facts.get("victim", "") != trial.facts.get("victim alone", ""):
            raise Escaped(f"the next tenant's script answered {trial.facts['victim'][:200]}")
        return own(trial) if "victim" not in trial.facts else "the next tenant's script answered as ever"

    return check


def fact(name: str, *wanted: str) -> Check:
    """An inspection from outside found one of these."""

    def check(trial: Trial) -> str:
        if not trial.facts.get(name):
            raise Unseen(f"this host does not show {name} of a worker to this user")
        found = trial.facts[name]
        if found not in wanted:
            raise Escaped(f"{name} is {found}, wanted {' or '.join(wanted)}")
        return f"{name} is {found}, seen from outside"

    return check
