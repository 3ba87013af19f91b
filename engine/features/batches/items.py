"""The items of a batch: the arguments of the verbs that create one tenant, script or schedule."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NotRequired, TypeAlias, get_type_hints

from pydantic import ConfigDict, ValidationError, with_config
from typing_extensions import TypedDict

from lodger.engine.core.errors import Explained, InputError
from lodger.engine.core.serialization import from_jsonable
from lodger.engine.recurrence.rrule import is_dateutil
from lodger.engine.service.nouns.base import specs
from lodger.engine.service.nouns.schedules import Schedules
from lodger.engine.service.nouns.scripts import Scripts
from lodger.engine.service.nouns.tenants import Tenants
from lodger.engine.service.operations.route import wire

#: Most objects of one batch, and most refused ones that an error lists.
MAX_ITEMS, MAX_SHOWN = 2000, 100


def _arguments(name: str, verb: Callable[..., Any], *left_out: str) -> Any:
    """Return the type of the items that have the arguments of a verb, as in JSON, but for some."""
    hints, fields = get_type_hints(verb), {}
    for each in list(inspect.signature(verb).parameters.values())[1:]:
        if each.name not in left_out:
            form = wire(hints[each.name])
            fields[each.name] = form if each.default is inspect.Parameter.empty else NotRequired[form]
    made = TypedDict(name, fields)  # type: ignore[misc]  # made at run time
    made.__doc__ = f"Arguments of ``{verb.__qualname__.lower()}``."
    return with_config(ConfigDict(extra="forbid"))(made)


if TYPE_CHECKING:
    TenantToCreate: TypeAlias = Mapping[str, Any]
    ScriptToCreate: TypeAlias = Mapping[str, Any]
    ScheduleToCreate: TypeAlias = Mapping[str, Any]
else:
    TenantToCreate = _arguments("TenantToCreate", Tenants.create, "ledger", "connection")
    ScriptToCreate = _arguments("ScriptToCreate", Scripts.put, "why", "after_version", "shadow", "promote_when_agreed")
    ScheduleToCreate = _arguments("ScheduleToCreate", Schedules.create, "why", "connection")
_KINDS: dict[str, Any] = {"tenants": TenantToCreate, "scripts": ScriptToCreate, "schedules": ScheduleToCreate}


@dataclass
class Refusals:
    """The refused items of a batch.

    Attributes:
        shown: the first of them, each with its kind, its position, its tenant, its name, and the error.
        objects: (kind, tenant, name) of all; the name of a tenant is None.
    """

    count: int = 0
    shown: list[dict[str, Any]] = field(default_factory=list)
    objects: set[tuple[str, str, str | None]] = field(default_factory=set)

    def add(self, kind: str, index: int, item: Mapping[str, Any], error: Explained) -> None:
        """Record a refused item."""
        tenant, name = str(item.get("tenant_id")), item.get("name")
        self.count += 1
        self.objects.add((kind, tenant, None if kind == "tenants" else str(name)))
        if len(self.shown) < MAX_SHOWN:
            self.shown.append({"kind": kind, "position": index, "tenant": tenant, "name": name, **error.as_dict()})

    @contextmanager
    def noting(self, kind: str, index: int, item: Mapping[str, Any]) -> Iterator[None]:
        """Record an item's error instead of raising it."""
        try:
            yield
        except Explained as error:
            self.add(kind, index, item, error)

    def concern(self, kind: str, item: Mapping[str, Any]) -> bool:
        """Whether an item was refused, or its tenant or script, so that its own errors would only be those of that one."""
        tenant, name, script = item["tenant_id"], item.get("name"), item.get("script")
        own = {("tenants", tenant, None), *([] if kind == "tenants" else [(kind, tenant, str(name))])}
        return not self.objects.isdisjoint(own | ({("scripts", tenant, script)} if isinstance(script, str) else set()))

    def require_none(self, total: int) -> None:
        """Refuse the batch if one of its items is refused.

        Raises:
            InputError: batch_refused.
        """
        if self.count:
            first = self.shown[0]
            raise InputError(
                "batch_refused",
                count=self.count,
                total=total,
                first=f"{first['kind']}[{first['position']}]: {first['message']}",
                details={"refused": self.shown, "count": self.count},
            )


def read(kind: str, given: Iterable[Mapping[str, Any]], refusals: Refusals) -> list[tuple[int, Any]]:
    """Return the items of a kind with their positions, without those that have other fields or types, or occur twice."""
    found, seen = [], set()
    for index, item in enumerate(given):
        try:
            if not isinstance(item, Mapping):
                raise InputError("batch_item_invalid", kind=kind, position=index, reason="it is not an object")
            item = {
                name: specs(value) if name in ("rules", "exclusions") and _has_dateutil(value) else value
                for name, value in item.items()
            }
            try:
                made = from_jsonable(_KINDS[kind], item)
            except ValidationError as error:
                raise InputError(
                    "batch_item_invalid",
                    kind=kind,
                    position=index,
                    reason=_first_mistake(error, _KINDS[kind].__annotations__),
                ) from None
            identity = (made["tenant_id"], None if kind == "tenants" else made["name"])
            if identity in seen:
                raise InputError("batch_item_invalid.twice", kind=kind, position=index)
            seen.add(identity)
            found.append((index, made))
        except Explained as refused:
            refusals.add(kind, index, item if isinstance(item, Mapping) else {}, refused)
    return found


def _first_mistake(error: ValidationError, known: Iterable[str]) -> str:
    """Return the most telling error of an item: a misspelt field is also a missing one."""
    first = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    place = ".".join(map(str, first["loc"][:2]))
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        near = difflib.get_close_matches(place[:100], known, 1)
        return f"there is no field {place[:100]!r}" + (f"; did you mean {near[0]}?" if near else "")
    return f"{place}: {first['msg']}"


def _has_dateutil(rules: object) -> bool:
    """Whether rules are an object of python-dateutil, or hold one."""
    return any(map(is_dateutil, rules if isinstance(rules, list | tuple) else (rules,)))
