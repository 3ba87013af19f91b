"""Whether a run may make a call at all: the call's grant in the table of calls against what the run holds."""

from typing import Any

from lodger.engine.core.access.grants import Grants
from lodger.engine.core.refusal import CallRefused, denied
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.stdlib.calls import HostCall


def require(grants: Grants, call: HostCall, given: dict[str, Any], datasets: Datasets) -> None:
    """Let a call pass, or refuse it by the name of the grant that it lacks.

    Grants that depend on more than a set's name (whom a mail goes to, which host) are looked at where that is known.

    Raises:
        CallRefused: ``denied``; ``bad_request`` when the call names what can be no set.
    """
    kind, _, verb = call.grant.partition(":")
    write = verb != "read"
    if kind == "db":
        if "set" in given:
            require_rows(grants, given["set"], datasets, write=write)
        elif not (grants.any_of("sets") or grants.any_of("collections")):
            raise lacking("sets:read")
    elif kind == "kv":
        if not grants.of_kv(write=write):
            raise lacking("kv" if write else "kv:read")
    elif kind and not grants.any_of(kind):
        raise lacking(kind)


def require_rows(grants: Grants, name: str, datasets: Datasets, *, write: bool) -> None:
    """Let rows of a set be read, or also written, or refuse it."""
    exposed = isinstance(datasets.named(name), TableDataset)
    if not grants.of_rows(name, exposed=exposed, write=write):
        raise lacking(f"{'sets' if exposed else 'collections'}:{'write' if write else 'read'}:{name}")


def lacking(grant: str) -> CallRefused:
    """Give the refusal that names what the run would have to hold."""
    return denied(f"this run does not hold the grant {grant}")
