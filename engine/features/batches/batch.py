"""Creates the objects of a batch: scripts are checked before the transaction, and all objects are stored in it as single ones are."""

import inspect
import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import Conflict, Explained
from lodger.engine.core.params import read_fields
from lodger.engine.features.batches.items import Refusals
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.engine.service.nouns.base import Change, aware, to_audit_json
from lodger.engine.service.nouns.schedules import Schedules, wish_of
from lodger.engine.store import audit
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.revision_cache import PreparedRules
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schedules.revisions import ScheduleFields
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.content import Content, read
from lodger.engine.store.scripts.linking import link
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import encode, encode_people
from lodger.engine.store.usage import storage_usage
from lodger.sandbox.limits import LIMITS, Limits

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

#: Number of scripts that are checked at once, as many as there are workers for it.
_AT_ONCE = 2
#: Limits under which sources are read before the transaction; their tenants' own hold in it.
_WIDEST = Limits(**{spec.name: spec.maximum for spec in LIMITS})
_SCHEDULE = {name: each.default for name, each in inspect.signature(Schedules.create).parameters.items()}
#: Codes of objects that exist already.
_EXIST = {"tenant_exists", "script_exists", "schedule_exists"}


@dataclass(frozen=True, slots=True)
class Batch:
    """Number of created objects of each kind.

    Attributes:
        kept: number of objects that existed and were left alone.
        unchecked: number of scripts that are stored without a check, because they say so or no worker can be started.
    """

    tenants: int
    scripts: int
    schedules: int
    kept: int
    unchecked: int


Items = dict[str, list[tuple[int, Any]]]


class Preparation:
    """The parts of a batch's items that take long: checked sources and compiled rules, by position. Refused items are in ``refusals``.

    Args:
        items: by kind, each with its position.
    """

    def __init__(self, engine: "Engine", items: Items, refusals: Refusals) -> None:
        self._revision_cache = engine.context.revision_cache
        self._rules: dict[tuple[ScheduleRules, datetime | None], PreparedRules] = {}
        self.contents = _checked(engine, items["scripts"], refusals)
        self.now_us = engine.context.clock.now_us()
        self.wishes: dict[int, tuple[ScheduleRules, ScheduleFields, datetime | None]] = {}
        for index, item in items["schedules"]:
            with refusals.noting("schedules", index, item):
                owed = aware(item.get("first_after"))
                prepare = partial(self.prepare, owed=owed)
                self.wishes[index] = *wish_of(_SCHEDULE | item, prepare), owed

    def prepare(self, wished: ScheduleRules, owed: datetime | None) -> PreparedRules:
        """Compile rules; many schedules of a batch have the same ones."""
        known = self._rules.get((wished, owed))
        if known is None:
            known = self._rules[wished, owed] = self._revision_cache.prepare(wished, from_us(self.now_us), owed)
        return known


def _checked(
    engine: "Engine", given: list[tuple[int, Any]], refusals: Refusals
) -> dict[int, tuple[Content, str | None]]:
    """Read and check the sources of scripts, equal ones once; return each content with the reason if it was not checked."""
    source_check = engine.scripts.source_check.uncharged()
    groups: dict[tuple[str, bool], list[tuple[int, Any, Content]]] = {}
    with engine.context.database.read() as connection:
        for index, item in given:
            with refusals.noting("scripts", index, item):
                tenant, name = item["tenant_id"], item["name"]
                content = link(connection, tenant, name, read(item["source"], _WIDEST, name), _WIDEST)
                groups.setdefault((content.digest, item.get("force", False)), []).append((index, item, content))

    def check_once(some: list[tuple[int, Any, Content]]) -> tuple[Content, str | None] | Explained:
        """Check scripts with the same content once; return the content or the refusal of them all."""
        _index, item, content = some[0]
        try:
            return source_check.checked(
                item["tenant_id"], item["name"], content, _WIDEST, force=item.get("force", False)
            )
        except Explained as error:
            return error

    found = {}
    with ThreadPoolExecutor(_AT_ONCE, "lodger-batch") as threads:
        for some, answer in zip(groups.values(), threads.map(check_once, groups.values()), strict=True):
            for index, item, _content in some:
                if isinstance(answer, Explained):
                    refusals.add("scripts", index, item, answer)
                else:
                    found[index] = answer
    return found


class Storing:
    """Stores the items of a batch in one transaction. Items that cannot be stored are in ``refusals``.

    Args:
        keep: leave existing objects alone.
    """

    def __init__(
        self, context: StoreContext, change: Change, prepared: Preparation, refusals: Refusals, *, keep: bool
    ) -> None:
        self._context, self._connection, self._audit_context = context, change.connection, change.audit_context
        self._prepared, self._refusals, self._keep, self._now_us = prepared, refusals, keep, prepared.now_us
        self._audit: list[dict[str, Any]] = []
        self._known: dict[str, str] = {}
        self._existing: set[tuple[str, str]] = set()

    def run(self, items: Items) -> Batch:
        """Store tenants, scripts and schedules with their audit rows; return how many of each."""
        ready_queue.lock(self._connection, {item["tenant_id"] for some in items.values() for _index, item in some})
        self._existing = scripts.names_of(self._connection, {item["tenant_id"] for _index, item in items["scripts"]})
        made: Counter[str] = Counter()
        for kind, create in (("tenants", self._tenant), ("scripts", self._script), ("schedules", self._schedule)):
            for index, item in items[kind]:
                if self._refusals.concern(kind, item):
                    continue
                with self._refusals.noting(kind, index, item):
                    try:
                        create(index, item)
                    except Conflict as error:
                        if not self._keep or error.code not in _EXIST:
                            raise
                        made["kept"] += 1
                    else:
                        made[kind] += 1
        audit.write(self._connection, self._audit)
        unchecked = sum(reason is not None for _content, reason in self._prepared.contents.values())
        return Batch(made["tenants"], made["scripts"], made["schedules"], made["kept"], unchecked)

    def _note(self, verb: str, tenant: str, target: str, made: Any) -> None:
        """Queue a row of the audit log about a created object."""
        subject = audit.AuditSubject(verb, tenant, target, made.name)
        self._audit.append(
            audit.row(self._context, self._audit_context, subject, None, to_audit_json(made), self._now_us)
        )

    def _limits(self, tenant_id: str) -> str:
        """Return the limits of a tenant that has room for more, as JSON text; asked for once.

        Raises:
            NotFound: tenant_unknown.
            Conflict: storage_full.
        """
        if tenant_id not in self._known:
            asked = storage_usage.ask_excess(self._context, self._connection, tenant_id)
            limits, over = json.dumps(tenants.get(self._connection, tenant_id).limits_in_effect), asked()
            if over.kept:
                raise Conflict("storage_full", tenant=tenant_id, limit=over.limit, details={"limit": over.limit})
            self._known[tenant_id] = limits
        return self._known[tenant_id]

    def _tenant(self, _index: int, item: Mapping[str, Any]) -> None:
        """Create a tenant."""
        more = item.get("grants") or ()
        made = tenants.create(
            self._context, self._connection, item["tenant_id"], item.get("name"), item.get("limits"), self._now_us,
            grants=encode([*self._context.content_cache.grants(None).shown(), *more]) if more else None,
            people=encode_people(item.get("people") or ()), labels=item.get("labels"),
            plan=item.get("plan"), tz=item.get("tz"),
        )  # fmt: skip
        self._note("tenants.create", made.id, made.id, made)

    def _script(self, index: int, item: Mapping[str, Any]) -> None:
        """Create a script of its checked content."""
        tenant, name = item["tenant_id"], item["name"]
        limits = self._context.content_cache.limits(self._limits(tenant), None)
        if (tenant, name) in self._existing:
            raise Conflict("script_exists", tenant=tenant, name=name)
        link(self._connection, tenant, name, read(item["source"], limits, name), limits)  # whose maxima hold
        made = scripts.put(
            self._context, self._connection, tenant, name, self._prepared.contents[index][0], self._now_us,
            self._audit_context, needs=lambda _before: encode(item.get("grants")), fields=read_fields(item.get("params")),
            offered=item.get("offered", False),
        )  # fmt: skip
        self._note("scripts.put", tenant, name, made)

    def _schedule(self, index: int, item: Mapping[str, Any]) -> None:
        """Create a schedule of its compiled rules."""
        tenant, name = item["tenant_id"], item["name"]
        self._limits(tenant)
        wished, fields, owed = self._prepared.wishes[index]
        made = schedules.create(
            self._context, self._connection, tenant, name, fields, self._now_us, self._audit_context,
            None if owed is None else to_us(owed),
            None if wished.names_zone else lambda tz: self._prepared.prepare(replace(wished, tz=tz), owed),
        )  # fmt: skip
        self._note("schedules.create", tenant, made.id, made)
