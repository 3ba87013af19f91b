"""The end of a run: flaky tests, which fail the run past ``MAX_FLAKES``, and the groups of tests that this machine could not run."""

import re
from collections import Counter

import pytest

#: Tests that may pass only the second time (``--reruns 1``), in a run that is still green.
MAX_FLAKES = 3
#: Reason of a test that was skipped because the machine lacks something: ``NOT TESTED <group>: <what is missing> (<how to get it>)``.
NOT_TESTED = re.compile(r"NOT TESTED (?P<group>[^:(]+)(?::[^(]*)?(?:\((?P<how>[^)]*)\))?")


def flaky(reporter: pytest.TerminalReporter) -> dict[str, str]:
    """Tests that failed and passed when they were run again, with the error of the first run."""
    failed = {each.nodeid for kind in ("failed", "error") for each in reporter.stats.get(kind, [])}
    return {each.nodeid: each.longreprtext for each in reporter.stats.get("rerun", []) if each.nodeid not in failed}


def skipped_groups(reasons: list[str]) -> str:
    """One line with the groups of tests that were not run, how many tests each has, and how to get it; "" for none."""
    found: Counter[tuple[str, str]] = Counter()
    for reason in reasons:
        if match := NOT_TESTED.search(reason):
            found[match["group"].strip(), match["how"] or ""] += 1
    shown = [f"{group} {count}{f' ({how})' if how else ''}" for (group, how), count in sorted(found.items())]
    return f"NOT TESTED here: {', '.join(shown)}" if shown else ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with too many flaky tests."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.exitstatus == 0 and len(flaky(reporter)) > MAX_FLAKES:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the flaky tests with their errors, and the groups that were skipped."""
    if found := flaky(terminalreporter):
        terminalreporter.section(f"flaky: failed, then passed (more than {MAX_FLAKES} fail the run)")
        for name, error in found.items():
            terminalreporter.write_line(f"FLAKY {name}\n{error}")
        terminalreporter.write_line("".join(f"FLAKY {name}\n" for name in found).rstrip())
    reasons = [
        each.longrepr[2] for each in terminalreporter.stats.get("skipped", []) if isinstance(each.longrepr, tuple)
    ]
    if line := skipped_groups(reasons):
        terminalreporter.write_line(line)
