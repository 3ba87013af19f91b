"""Careless parsers of rules, texts and zones, for the matrix only: each in a process that is killed after 1.5 seconds."""

import subprocess
import sys
import time
from os.path import normpath
from pathlib import Path

from lodger.escape.case import DirectAttack
from lodger.escape.cases.tenants.files_and_lines import NameFile, RunNode, SayText
from lodger.escape.cases.tenants.rules import AskRule, AskZone, ReadText, figures
from lodger.sandbox.job import Report
from lodger.sandbox.nodejs import limited_node

_PATIENCE_S = 1.5
_TRIES_EVERYTHING = r"^(([\x20-\x7e\u0660-\u0669]+)+)+$"
_ZONES_LIE = "/usr/lib"

_THEIRS = """
import sys
from datetime import datetime, timedelta
from dateutil.rrule import rrulestr
text, after = sys.argv[1], datetime(2026, 11, 21, 12, 0, 1)
rule = rrulestr(text if "DTSTART" in text else "DTSTART:19000101T000000\\nRRULE:" + text)
print(rule.after(after))
"""
_PATTERN = """
import re, sys
print(bool(re.match(sys.argv[1], sys.argv[2])))
"""


def _answered_by(program: str, *arguments: str) -> Report:
    """Run a program with a timeout and return a report of its result."""
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return figures(finished=False, why=f"no answer within {_PATIENCE_S} s")
    ms = (time.perf_counter() - started) * 1000
    if done.returncode:
        return figures(finished=False, why=done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200])
    return figures(finished=True, ms=ms, answer=done.stdout.decode()[:100])


def careless_act(act: DirectAttack, without: frozenset[str]) -> Report:
    """Run the careless parser if its layer is removed, otherwise the real one, and return the report."""
    match act:
        case AskRule(text) if "bounded_rules" in without:
            return _answered_by(_THEIRS, text)
        case ReadText(text) if "linear_patterns" in without:
            return _answered_by(_PATTERN, _TRIES_EVERYTHING, text[:60].replace("\n", " ") + "\x01")
        case AskZone(zone) if "known_zones" in without:
            with Path(normpath(Path(_ZONES_LIE) / zone)).open("rb") as file:
                return figures(read=len(file.read(64)), code="")
        case NameFile() if "file_names" in without:
            return figures(refused="")
        case SayText(text) if "marked_lines" in without:
            return figures(said=text)
        case RunNode(program) if "limited_node" in without:
            node = str(limited_node.find_node("it cannot be attacked"))
            unlimited = ["/bin/sh", "-c", 'exec "$0" -e "$1" 3>&1', node, program]
            said = subprocess.run(unlimited, input=b"x", capture_output=True, timeout=60, check=False).stdout
            return figures(said=said.decode().removeprefix("R"))
    return act()
