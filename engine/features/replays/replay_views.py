"""Output of replays and rehearsals: how a recorded attempt and its replay differ."""

from collections.abc import Sequence
from typing import Any

from lodger.engine.core.plain_text import code_frame
from lodger.engine.features.replays.agreement import ShadowRun
from lodger.engine.features.replays.local_replays import summary
from lodger.engine.features.replays.recorded_host import MadeCall
from lodger.engine.features.replays.replay import DEPARTS, SAME, Replayed
from lodger.engine.output.result_output import say
from lodger.engine.output.views import compared_runs

#: Maximum length of one value in the comparison, in characters.
_MAX_SHOWN = 300


def show(replayed: Replayed, modules: dict[str, str]) -> None:
    """Write the comparison for people."""
    same = {SAME: "same: it ended as recorded", DEPARTS: "departs from the record"}
    say(same.get(replayed.verdict, "undecided: the record does not tell"))
    now = replayed.now
    say(f"  outcome  {now.outcome.value}, {len(replayed.calls)} calls, {len(now.logs)} log lines")
    if now.error is not None:
        place = f"{now.error.file}:{now.error.line}: " if now.error.file and now.error.line else ""
        say(f"  error    {place}{now.error.name}: {now.error.message}")
        for line in code_frame(modules.get(now.error.file or "", ""), now.error.line, now.error.column):
            say(f"    {line}")
    departure = replayed.departure
    if departure is not None:
        say(f"  first call that differs: number {departure.number + 1}")
        say(f"    recorded  {_call(departure.recorded)}")
        say(f"    now       {_call(departure.now)}")
    for each in replayed.differences:
        if each.part == "calls":
            continue
        recorded, said = (_shown(each.part, value) for value in (each.recorded, each.now))
        if each.part == "logs":
            recorded, said = _first_different(each.recorded, each.now)
        say(f"  {each.part} differs")
        say(f"    recorded  {recorded}")
        say(f"    now       {said}")
    for note in replayed.notes:
        say(f"  note: {note}")


def _call(call: MadeCall | None) -> str:
    """Return a host call as text; a sentence for None."""
    return "no further call" if call is None else _cut(f"{call.name}({call.arguments})")


def _shown(part: str, value: Any) -> str:
    """Return one part of an end, such as the logs, as text."""
    if value is None:
        return "none"
    if part == "error":
        name, message, file, line, _column = value
        return _cut(f"{name}: {message}" + (f" ({file}:{line})" if file and line else ""))
    return _cut(str(value))


def _first_different(recorded: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the first log line that differs between two runs, as text of the recorded and of the present one."""
    at = next(
        (n for n, (one, two) in enumerate(zip(recorded, now, strict=False)) if one != two), min(len(recorded), len(now))
    )
    return tuple(  # type: ignore[return-value]  # two
        _cut(f"line {at + 1}: {each[at][0]} {each[at][1]}") if at < len(each) else "no further line"
        for each in (recorded, now)
    )


def _cut(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def show_rehearsal(found: list[ShadowRun]) -> None:
    """Write the comparison for people."""
    compared_runs(found)
    counted = summary(found)
    say(", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in counted.items()))
