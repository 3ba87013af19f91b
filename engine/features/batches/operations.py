"""The verb that creates many objects at once."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import InputError
from lodger.engine.features.batches.batch import Batch, Preparation, Storing
from lodger.engine.features.batches.items import (
    MAX_ITEMS,
    Refusals,
    ScheduleToCreate,
    ScriptToCreate,
    TenantToCreate,
    read,
)
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine


class Batches(Noun[M]):
    """Many tenants, scripts and schedules at once."""

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self._engine = engine

    @operation("POST", "/batches", Role.ADMIN, status=201, slow=True, command=None)
    def create(
        self,
        *,
        tenants: Iterable[TenantToCreate] = (),
        scripts: Iterable[ScriptToCreate] = (),
        schedules: Iterable[ScheduleToCreate] = (),
        keep: bool = False,
    ) -> Batch:
        """Create tenants, scripts and schedules in one transaction: all of them, or none with a list of what is wrong.

        Items have the fields of ``tenants.create``, ``scripts.put`` and ``schedules.create``. Scripts are checked as
        each of them alone, equal sources once; they import only what was stored before. At most 2000 objects.

        Args:
            keep: leave objects alone that exist under their name, so that a batch can be repeated; else they are refused.

        Raises:
            InputError: batch_refused, whose ``refused`` lists the items with their errors; batch_too_large.
        """
        given: dict[str, list[Mapping[str, Any]]] = {
            "tenants": list(tenants), "scripts": list(scripts), "schedules": list(schedules)
        }  # fmt: skip
        total = sum(map(len, given.values()))
        if total > MAX_ITEMS:
            raise InputError("batch_too_large", count=total, maximum=MAX_ITEMS)
        refusals = Refusals()
        items = {kind: read(kind, some, refusals) for kind, some in given.items()}
        prepared = Preparation(self._engine, items, refusals)
        with self._changing(Batches.create, None) as change:
            made = Storing(self.context, change, prepared, refusals, keep=keep).run(items)
            refusals.require_none(total)
            return change.made(made, changed=made.tenants + made.scripts + made.schedules > 0)
