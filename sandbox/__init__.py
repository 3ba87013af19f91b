"""Runs one stranger's script inside walls. It must never know SQL, a tenant's data or HTTP.

Names load on first use (PEP 562): a worker imports this package and may not drag the parent side along.
"""

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without the price of importing typing
if TYPE_CHECKING:
    from lodger.sandbox.job import Bundle, Host, Job, Report, ScriptError, Usage
    from lodger.sandbox.limits import Limits
    from lodger.sandbox.outcome import Outcome
    from lodger.sandbox.pool import Pool

__all__ = ["Bundle", "Host", "Job", "Limits", "Outcome", "Pool", "Report", "ScriptError", "Usage"]

_HOMES = {
    "Bundle": "job",
    "Host": "job",
    "Job": "job",
    "Report": "job",
    "ScriptError": "job",
    "Usage": "job",
    "Limits": "limits",
    "Outcome": "outcome",
    "Pool": "pool",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"lodger.sandbox.{_HOMES[name]}"), name)
