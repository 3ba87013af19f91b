"""The sandbox: runs one untrusted script in an isolated worker process. It must never know SQL, a tenant's data or HTTP.

Names are imported on first use (PEP 562): a worker imports this package and must not load the modules of the parent process.
"""

TYPE_CHECKING = False  # the same as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from lodger.sandbox.job import Bundle, CallHandler, Job, Report, ScriptError, Usage
    from lodger.sandbox.limits import Limits
    from lodger.sandbox.outcome import Outcome
    from lodger.sandbox.pool import Pool

__all__ = ["Bundle", "CallHandler", "Job", "Limits", "Outcome", "Pool", "Report", "ScriptError", "Usage"]

_HOMES = {
    "Bundle": "job",
    "CallHandler": "job",
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
