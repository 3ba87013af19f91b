"""Shadows on the command line."""

from typing import Any

from lodger.engine.output import views
from lodger.engine.output.result_output import say
from lodger.engine.output.views import compared_runs


def _shadow(found: Any) -> None:
    """Show a shadow: how many of its runs agree with the live version, and each of them."""
    say(
        f"{found.name}: version {found.version} in the shadow of version {found.live_version}, {found.state}: "
        f"{len(found.runs)} of {found.wanted} runs compared"
    )
    say(f"  {found.agreed} agree, {found.differed} differ, {found.undecided} undecided, {found.missed} missed")
    compared_runs(found.runs)


views.SHORT_VIEWS["Shadow"] = _shadow
