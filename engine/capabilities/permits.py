"""Checks the grant of a host call against the grants of the attempt."""

from typing import Any

from lodger.engine.core.access.grants import GRANTS, Grants
from lodger.engine.core.refusal import CallRefused, denied
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.stdlib.calls import HostCall


def require(grants: Grants, call: HostCall, given: dict[str, Any], datasets: Datasets) -> None:
    """Refuse a call without its grant, naming the missing grant.

    Grants that depend on more than a dataset's name (recipients, hosts) are checked by the capability.

    Raises:
        CallRefused: ``denied``; ``bad_request`` if the name of the dataset is invalid.
    """
    kind, _, verb = call.grant.partition(":")
    write = verb != "read"
    if kind == "db":
        if "set" in given:
            require_rows(grants, given["set"], datasets, write=write)
        elif not (grants.any_of("sets") or grants.any_of("collections")):
            raise missing_grant("sets:read")
    elif kind == "kv":
        if not grants.of_kv(write=write):
            raise missing_grant("kv" if write else "kv:read")
    elif kind == "functions":
        if not grants.of_function(given["name"]):
            raise missing_grant(f"functions:{given['name'][:61]}")
    elif kind and not grants.any_of(kind):
        raise missing_grant(next(each.form for each in GRANTS if each.form.partition(":")[0] == kind))


def require_rows(grants: Grants, name: str, datasets: Datasets, *, write: bool) -> None:
    """Refuse reads, or with ``write`` writes, of a dataset without the grant."""
    exposed = isinstance(datasets.named(name), TableDataset)
    if not grants.of_rows(name, exposed=exposed, write=write):
        raise missing_grant(f"{'sets' if exposed else 'collections'}:{'write' if write else 'read'}:{name}")


def missing_grant(grant: str) -> CallRefused:
    """Return the refusal that names the missing grant."""
    return denied(f"this run does not have the grant {grant}")
