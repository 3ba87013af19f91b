"""Checks of a trial. A check returns its observation in words, or raises Escaped if the attack succeeded."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lodger.sandbox import prescan
from lodger.sandbox.job import Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome

#: Coarse bounds for an idle host; ``lodger bench walls`` measures precisely.
CPU_SLACK_MS = 200.0
WALL_SLACK_MS = 1500.0
#: A time above this multiple of its bound is an escape; a time between the bound and that means a slow host.
MARGIN = 4
MEMORY_SLACK_BYTES = 40 * MIB
PARENT_SLACK_BYTES = 8 * MIB

#: Texts of the host that no script and no author may see: Python, paths, addresses.
LEAKS = re.compile(
    r'Traceback|File "|\.py\b|site-packages|/home/|/usr/|/root/|/proc/\d|\b0x[0-9a-f]{6,}\b|[Ww]asmtime|libwasm|<class |errno'
)


_FAULT = re.compile(r"\(SIG(SEGV|BUS|ABRT|ILL|TRAP|FPE)\)")


class Escaped(Exception):
    """The attack succeeded; the text says how."""


class Slow(Exception):
    """The host is too slow for a verdict; the text says which time was exceeded."""


class Unseen(Exception):
    """This host does not provide the facts for the evidence; the text says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Observations of one attack.

    Attributes:
        reports: one per try, in order.
        limits: limits that must be kept, even if the matrix raised the real ones.
        asked: host calls received by the parent: name and arguments.
        facts: results of an inspection.
        page_table_bytes: peak size of a worker's page tables, which its resident size does not include.
        parent_bytes: growth of this process.
        took_ms: time until the report of the last try, compilation included.
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
        """Report of the last try."""
        return self.reports[-1]


Check = Callable[[Trial], str]


def by_outcome(trial: Trial) -> str:
    """Check all limits and describe the error or the result."""
    said = [within_limits(trial)]
    error = trial.report.error
    if error is not None:
        said.append(f"{error.name}: {error.message[:120]}")
    elif trial.report.result is not None:
        said.append(f"answered {trial.report.result[:120]}")
    return "; ".join(said)


def within_limits(trial: Trial) -> str:
    """Check CPU time, wall time, memory, result, logs, calls and this process's growth against the limits."""
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


def value_of(report: Report) -> Any:
    """Return the parsed result. Raises Escaped if it is not strict JSON."""
    try:
        return prescan.parse((report.result or "null").encode("utf-8", "replace"), max_bytes=1 << 30, max_depth=1 << 20)
    except prescan.JsonRefused as refused:
        raise Escaped(f"the result is not one JSON value: {refused}; {(report.result or '')[:80]!r}") from None


def _maximum(what: str, found: float, bound: float) -> None:
    """Raise Escaped if a number is above a bound."""
    if found > bound:
        raise Escaped(f"{found:.0f} {what}, at most {bound:.0f} allowed")


def within(what: str, found: float, bound: float) -> None:
    """Check a time. Raises Slow above the bound, Escaped above :data:`MARGIN` times the bound."""
    if found > MARGIN * bound:
        raise Escaped(f"{found:.0f} {what}, at most {bound:.0f} allowed")
    if found > bound:
        raise Slow(f"{found:.0f} {what}, at most {bound:.0f} on a quiet host")


def answers(*wanted: Any) -> Check:
    """Return a check that the script's result is one of these values."""

    def check_result(trial: Trial) -> str:
        """Raise Escaped if a run returned a value that is not wanted."""
        measured = within_limits(trial)
        for report in trial.reports:
            if report.outcome is Outcome.OK:
                value = value_of(report)
                if not any(_same(value, one) for one in wanted):
                    raise Escaped(f"answered {(report.result or '')[:200]}")
        return f"answered {(trial.report.result or '')[:120]}; {measured}"

    return check_result


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal and of the same type."""
    return type(one) is type(other) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def where(what: str, holds: Callable[[Any], bool]) -> Check:
    """Return a check that the script's result has a property."""

    def check_property(trial: Trial) -> str:
        """Raise Escaped if a run returned a value without the property."""
        measured = within_limits(trial)
        for report in trial.reports:
            if report.outcome is Outcome.OK and not holds(value_of(report)):
                raise Escaped(f"not {what}: {(report.result or '')[:200]}")
        return f"{what}; {measured}"

    return check_property


def in_time(trial: Trial) -> str:
    """Check that the attempt exceeded its wall time by at most a second."""
    within("ms beyond the wall time", trial.report.usage.wall_ms - trial.limits.wall_ms, 1000)
    return within_limits(trial)


def survives(trial: Trial) -> str:
    """Check that the worker did not end by a memory fault."""
    for report in trial.reports:
        if report.outcome is Outcome.CRASHED and report.error is not None and _FAULT.search(report.error.message):
            raise Escaped(f"memory of the worker was corrupted: {report.error.message}")
    return by_outcome(trial)


def both(*checks: Check) -> Check:
    """Return a check that runs all given checks and returns the observation of the last."""

    def check_all(trial: Trial) -> str:
        """Make all checks; return the evidence of the last."""
        said = ""
        for one in checks:
            said = one(trial)
        return said

    return check_all


def ends_as(*wanted: Outcome, says: str = "") -> Check:
    """Return a check that the attempt ended with one of these outcomes, and with this text in its error."""

    def check_outcome(trial: Trial) -> str:
        """Raise Escaped if a run ended otherwise than wanted."""
        measured = by_outcome(trial)
        for report in trial.reports:
            text = "" if report.error is None else f"{report.error.name}: {report.error.message}"
            if report.outcome not in wanted or says not in text:
                raise Escaped(f"ended as {report.outcome}: {(text or report.result or '')[:200]}")
        return f"ended as {trial.report.outcome}; {measured}"

    return check_outcome


def all_different(trial: Trial) -> str:
    """Check that all tries have different results."""
    results = [report.result for report in trial.reports]
    if len(set(results)) != len(results):
        raise Escaped(f"{len(results)} workers returned only {len(set(results))} different results")
    return f"{len(results)} workers, {len(results)} different results"


def host_saw(*wanted: tuple[str, str]) -> Check:
    """Return a check that the host received exactly these calls."""

    def check_calls(trial: Trial) -> str:
        """Raise Escaped if the host received other calls than wanted."""
        measured = within_limits(trial)
        if [*map(list, trial.asked)] != [*map(list, wanted)]:
            raise Escaped(f"the host received {str(trial.asked)[:200]}")
        return f"the host received {len(wanted)} calls as expected; {measured}"

    return check_calls


def tells_nothing(trial: Trial) -> str:
    """Check that the error contains no text of the host: see :data:`LEAKS`."""
    measured = within_limits(trial)
    error = trial.report.error
    text = "" if error is None else f"{error.name}: {error.message} {error.stack} {error.file}"
    leak = LEAKS.search(text)
    if leak is not None:
        raise Escaped(f"the error contains {leak.group()!r}: {text[:200]!r}")
    return f"clean: {text[:100]}; {measured}"


def marked(trial: Trial) -> str:
    """Check that the log says if something was dropped or cut."""
    measured = within_limits(trial)
    report, limits = trial.report, trial.limits
    marks = ("[cut]", "[the run was stopped while its log was full")
    cut = any(line.text.endswith("…") or any(mark in line.text for mark in marks) for line in report.logs)
    if not report.dropped_logs and not cut:
        kept = sum(len(line.text.encode()) for line in report.logs)
        ended = report.outcome in (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT)
        if ended and len(report.logs) < limits.log_lines and kept < limits.log_bytes:
            raise Slow(
                f"ended as {report.outcome} with {len(report.logs)} lines and {kept} bytes of log: no limit was met"
            )
        raise Escaped(f"{len(report.logs)} lines kept, and the others are not mentioned")
    return f"{len(report.logs)} lines kept, {report.dropped_logs} reported as dropped; {measured}"


def leaves_nothing(*wanted: Any) -> Check:
    """Return a check that the next tenant's result is unchanged, and that this one is among the wanted if any are given."""
    own = answers(*wanted) if wanted else within_limits

    def check_next_tenant(trial: Trial) -> str:
        """Raise Escaped if the next tenant's script returned something else than it does alone."""
        if trial.facts.get("victim", "") != trial.facts.get("victim alone", ""):
            raise Escaped(f"the next tenant's script returned {trial.facts['victim'][:200]}")
        return own(trial) if "victim" not in trial.facts else "the next tenant's script returned its usual result"

    return check_next_tenant


def fact(name: str, *wanted: str) -> Check:
    """Return a check that an inspection found one of these values."""

    def check_fact(trial: Trial) -> str:
        """Raise Escaped if a fact seen from outside is not a wanted one; Unseen if the host does not show it."""
        if not trial.facts.get(name):
            raise Unseen(f"this host does not show {name} of a worker to this user")
        found = trial.facts[name]
        if found not in wanted:
            raise Escaped(f"{name} is {found}, wanted {' or '.join(wanted)}")
        return f"{name} is {found}, seen from outside"

    return check_fact
