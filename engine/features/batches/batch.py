"""Creates the objects of a batch: checked before the transaction, stored with a fixed number of statements however many they are."""

import inspect
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select, update

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.errors import Conflict, Explained, NotFound
from lodger.engine.core.params import dump_fields, read_fields
from lodger.engine.features.batches.items import Refusals
from lodger.engine.recurrence.on_changes import named
from lodger.engine.recurrence.rule import ScheduleRules
from lodger.engine.service.nouns.base import aware
from lodger.engine.service.nouns.schedules import Schedules, wish_of
from lodger.engine.store import audit
from lodger.engine.store.bulk import QueryMany, insert_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.queue import followers, ready_queue
from lodger.engine.store.records import AnyRow
from lodger.engine.store.revision_cache import PreparedRules
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schedules.revisions import ScheduleFields
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.schema.access import audit as audit_rows
from lodger.engine.store.scripts import bindings, scripts
from lodger.engine.store.scripts.bindings import BoundScript
from lodger.engine.store.scripts.content import Content
from lodger.engine.store.scripts.content import read as read_content
from lodger.engine.store.scripts.linking import link
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import encode, encode_people
from lodger.engine.store.usage import storage_usage

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

#: Number of scripts that are checked at once, as many as there are workers for it.
_AT_ONCE = 2
_SCHEDULE = {name: each.default for name, each in inspect.signature(Schedules.create).parameters.items()}
_t, _s, _k = tables.tenants.c, tables.schedules.c, tables.scripts.c

_tenants = Prepared(
    lambda driver: select(
        _t.id, _t.state, _t.generation, _t.tz, tables.limits_in_effect.label("in_effect")
    ).where(driver.among(_t.id, "tenants"))
)  # fmt: skip
_script_counts = Prepared(
    lambda driver: (
        select(_k.tenant_id, func.count().label("number"))
        .where(driver.among(_k.tenant_id, "tenants"))
        .group_by(_k.tenant_id)
    )
)
_schedule_counts = Prepared(
    lambda driver: (
        select(_s.tenant_id, func.count().label("number"))
        .where(driver.among(_s.tenant_id, "tenants"), _s.deleted_us.is_(None))
        .group_by(_s.tenant_id)
    )
)
_schedule_names = QueryMany(
    {"tenant": _s.tenant_id, "called": _s.name},
    lambda given, driver: driver.look_up(
        given, select(_s.id), _s.tenant_id == given.c.tenant, _s.name == given.c.called, _s.deleted_us.is_(None)
    ),
)


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


@dataclass(frozen=True, slots=True)
class _Script:
    index: int
    item: Mapping[str, Any]
    content: Content
    grants: str | None
    fields: str | None


@dataclass(frozen=True, slots=True)
class _Schedule:
    index: int
    item: Mapping[str, Any]
    wish: ScheduleFields
    owed: datetime | None


class Preparation:
    """Items of a batch, with the scripts checked and the rules compiled; refused items are in ``refusals``.

    Args:
        items: by kind, each with its position.
        keep: leave existing objects alone.
    """

    def __init__(
        self, engine: "Engine", items: dict[str, list[tuple[int, Any]]], refusals: Refusals, now_us: int, *, keep: bool
    ) -> None:
        self.context, self.refusals, self.keep, self.now_us = engine.context, refusals, keep, now_us
        self.tenants = items["tenants"]
        every = {item["tenant_id"] for some in items.values() for _index, item in some}
        self.ids = sorted(every)
        self.unchecked = 0
        with self.context.database.read() as connection:
            known = _known(connection, self.ids)
            new = {
                tenant: values
                for _index, tenant, values, _turn in self.tenant_rows(connection, lock=False)
                if tenant not in known
            }
            #: Limits and zone of each tenant, as JSON text and as a name.
            self.terms = {tenant: (row.in_effect, row.tz) for tenant, row in known.items()} | {
                tenant: (values["in_effect"], values["tz"]) for tenant, values in new.items()
            }
            contents = self._contents(connection, items["scripts"])
        self.scripts = self._checked(engine, contents)
        self.now_us = self.context.clock.now_us()
        self._prepared: dict[tuple[ScheduleRules, datetime | None], PreparedRules] = {}
        self.schedules = list(self._schedules(items["schedules"]))

    def tenant_rows(
        self, connection: Connection, *, lock: bool = True
    ) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any]]]:
        """Yield position, id, row and turn of each tenant; the row has its limits in effect beside its columns."""
        plans: dict[str, tuple[str, str]] = {}
        for index, item in self.tenants:
            with self.refusing("tenants", index, item):
                plan = item.get("plan")
                if plan is not None and plan not in plans:
                    plans[plan] = tenants.plan_limits(connection, plan, lock=lock)
                more = list(item.get("grants") or ())
                held = encode([*self.context.content_cache.grants(None).shown(), *more]) if more else None
                values, turn = tenants.new_rows(
                    self.context,
                    item["tenant_id"],
                    item.get("name"),
                    item.get("limits"),
                    self.now_us,
                    grants=held,
                    people=encode_people(item.get("people") or ()),
                    labels=item.get("labels"),
                    plan=plans.get(plan) if plan else None,
                    tz=item.get("tz"),
                )
                own = values["limits"]
                in_effect = own if plan is None else f"[{plans[plan][1]},{own}]"
                yield index, item["tenant_id"], values | {"in_effect": in_effect}, turn

    @contextmanager
    def refusing(self, kind: str, index: int, item: Mapping[str, Any]) -> Iterator[None]:
        """Record an item's error instead of raising it."""
        try:
            yield
        except Explained as error:
            self.refusals.add(kind, index, item, error)

    def depends_on_refused(self, kind: str, item: Mapping[str, Any]) -> bool:
        """Whether an item's tenant or script was refused: its own errors would only be those of that one."""
        tenant, script = item["tenant_id"], item.get("script")
        refused = self.refusals.objects
        return ("tenants", tenant, None) in refused or (
            kind == "schedules" and isinstance(script, str) and ("scripts", tenant, script) in refused
        )

    def require_tenant(self, tenant_id: str) -> tuple[str, str | None]:
        """Return the limits and the zone of a tenant.

        Raises:
            NotFound: tenant_unknown.
        """
        found = self.terms.get(tenant_id)
        if found is None:
            raise NotFound("tenant_unknown", tenant=tenant_id)
        return found

    def _contents(self, connection: Connection, given: list[tuple[int, Any]]) -> Iterator[_Script]:
        """Return the scripts of a batch with their sources read and linked; wrong ones are refused."""
        found = []
        for index, item in given:
            if self.depends_on_refused("scripts", item):
                continue
            with self.refusing("scripts", index, item):
                tenant, name = item["tenant_id"], item["name"]
                scripts.check_name(tenant, name, offered=item.get("offered", False))
                limits = self.context.content_cache.limits(self.require_tenant(tenant)[0], None)
                fields = read_fields(item.get("params"))
                content = link(connection, tenant, name, read_content(item["source"], limits, name), limits)
                typed = None if fields is None else json.dumps(dump_fields(fields))
                found.append(_Script(index, item, content, encode(item.get("grants")), typed))
        return iter(found)

    def _checked(self, engine: "Engine", given: Iterator[_Script]) -> list[_Script]:
        """Check the scripts, equal ones of equal limits once."""
        source_check = engine.scripts.source_check.uncharged()
        groups: dict[tuple[str, str, bool], list[_Script]] = {}
        for each in given:
            key = each.content.digest, self.terms[each.item["tenant_id"]][0], each.item.get("force", False)
            groups.setdefault(key, []).append(each)

        def check_once(some: list[_Script]) -> tuple[Content, str | None] | Explained:
            """Check scripts with the same content once; return the content or the refusal of them all."""
            item = some[0].item
            limits = self.context.content_cache.limits(self.terms[item["tenant_id"]][0], None)
            try:
                return source_check.checked(
                    item["tenant_id"], item["name"], some[0].content, limits, force=item.get("force", False)
                )
            except Explained as error:
                return error

        found = []
        with ThreadPoolExecutor(_AT_ONCE, "lodger-batch") as threads:
            for some, answer in zip(groups.values(), threads.map(check_once, groups.values()), strict=True):
                for each in some:
                    if isinstance(answer, Explained):
                        self.refusals.add("scripts", each.index, each.item, answer)
                        continue
                    self.unchecked += answer[1] is not None
                    found.append(replace(each, content=answer[0]))
        return sorted(found, key=lambda each: each.index)

    def _schedules(self, given: list[tuple[int, Any]]) -> Iterator[_Schedule]:
        """Yield the schedules of a batch with their rules compiled; wrong ones are refused."""
        for index, item in given:
            if self.depends_on_refused("schedules", item):
                continue
            with self.refusing("schedules", index, item):
                names.check(item["name"], "schedule_name_invalid")
                _limits, tz = self.require_tenant(item["tenant_id"])
                owed = aware(item.get("first_after"))

                def prepare_rules(
                    wished: ScheduleRules, owed: datetime | None = owed, tz: str | None = tz
                ) -> PreparedRules:
                    """Compile the rules of a schedule, in the tenant's zone if they name none."""
                    return self._prepare(wished if wished.names_zone else replace(wished, tz=tz), owed)

                yield _Schedule(index, item, wish_of(_SCHEDULE | item, prepare_rules)[1], owed)

    def _prepare(self, wished: ScheduleRules, owed: datetime | None) -> PreparedRules:
        """Compile rules; many schedules of a batch have the same ones."""
        known = self._prepared.get((wished, owed))
        if known is None:
            known = self.context.revision_cache.prepare(wished, from_us(self.now_us), owed)
            self._prepared[wished, owed] = known
        return known


def _known(connection: Connection, ids: list[str]) -> dict[str, AnyRow]:
    """Return the rows of those of these tenants that exist, by id."""
    return {row.id: row for row in _tenants.rows(connection, {"tenants": ids}) if row.state != "deleted"}


class Storing:
    """Stores what was prepared, in one transaction. Objects that cannot be stored beside those that exist are in the batch's refusals."""

    def __init__(
        self, context: StoreContext, connection: Connection, batch: Preparation, audit_context: AuditContext
    ) -> None:
        self._context, self._connection, self._batch, self._audit_context = context, connection, batch, audit_context
        ready_queue.lock(connection, batch.ids)
        self._before = {row.id: row for row in _tenants.rows(connection, {"tenants": batch.ids})}
        self._audit: list[dict[str, Any]] = []
        self._kept = 0
        #: Limits as JSON text, of the tenants that may get scripts and schedules.
        self._limits: dict[str, str] = {
            row.id: row.in_effect for row in self._before.values() if row.state != "deleted"
        }

    def run(self) -> Batch:
        """Store tenants, scripts and schedules with their audit rows; return how many of each."""
        made = self._tenants(), self._scripts(), self._schedules()
        insert_many(self._connection, audit_rows, self._audit)
        return Batch(*made, self._kept, self._batch.unchecked)

    def _note(self, verb: str, tenant_id: str, target: str, named: str | None, after: dict[str, Any]) -> None:
        """Queue a row of the audit log about a created object."""
        subject = audit.AuditSubject(verb, tenant_id, target, named)
        self._audit.append(
            audit.row(self._context, self._audit_context, subject, None, after, self._batch.now_us)
        )  # fmt: skip

    def _exists(self, error: Explained) -> None:
        """Count an object that exists already as kept, or raise its error."""
        if not self._batch.keep:
            raise error
        self._kept += 1

    def _tenants(self) -> int:
        """Insert the tenants of the batch; return their number."""
        rows, turns, again = [], [], 0
        for index, tenant, values, turn in self._batch.tenant_rows(self._connection):
            with self._batch.refusing("tenants", index, {"tenant_id": tenant}):
                before = self._before.get(tenant)
                if before is not None and before.state != "deleted":
                    self._exists(Conflict("tenant_exists", tenant=tenant))
                    continue
                self._limits[tenant] = values.pop("in_effect")
                if before is None:
                    rows.append(values)
                else:
                    changed = update(tables.tenants).where(_t.id == tenant)
                    self._connection.execute(changed.values(values | {"generation": before.generation + 1}))
                    again += 1
                turns.append(turn)
                after = {"name": values["name"], "limits": json.loads(values["limits"]), "plan": values["plan"]}
                self._note("tenants.create", tenant, tenant, values["name"], {"id": tenant} | after)
        insert_many(self._connection, tables.tenants, rows)
        insert_many(self._connection, tables.turns, turns)
        return len(rows) + again

    def _require_room(self, tenant_id: str, kept: Mapping[str, int]) -> str:
        """Return a tenant's limits, if its storage is not used up by what it keeps.

        Raises:
            NotFound: tenant_unknown.
            Conflict: storage_full.
        """
        limits = self._limits.get(tenant_id)
        if limits is None:
            raise NotFound("tenant_unknown", tenant=tenant_id)
        maximum = self._context.content_cache.allowance(limits).storage_bytes
        if kept.get(tenant_id, 0) > maximum:
            raise Conflict("storage_full", tenant=tenant_id, limit=maximum, details={"limit": maximum})
        return limits

    def _counts(self, query: Prepared, ids: set[str]) -> Counter[str]:
        """Return how many objects each of these tenants has, by a query."""
        rows = query.rows(self._connection, {"tenants": sorted(ids)}) if ids else []
        return Counter({row.tenant_id: row.number for row in rows})

    def _scripts(self) -> int:
        """Insert the scripts of the batch with their first versions; return their number."""
        given = self._batch.scripts
        ids = {each.item["tenant_id"] for each in given}
        wanted = {(each.item["tenant_id"], each.item["name"]) for each in given}
        called = ((each.item["tenant_id"], each.item["script"]) for each in self._batch.schedules)
        wanted |= {(tenant, script) for tenant, script in called if isinstance(script, str)}
        self._bound = bindings.find_newest(self._connection, wanted) if wanted else {}
        numbers = self._counts(_script_counts, ids)
        kept = storage_usage.kept_bytes(self._connection, ids) if ids else {}
        rows, versions = [], []
        for each in given:
            tenant, name = each.item["tenant_id"], each.item["name"]
            if self._batch.depends_on_refused("scripts", each.item):
                continue
            with self._batch.refusing("scripts", each.index, each.item):
                allowed = self._context.content_cache.allowance(self._require_room(tenant, kept))
                if (tenant, name) in self._bound:
                    self._exists(Conflict("script_exists", tenant=tenant, name=name))
                    continue
                if numbers[tenant] >= allowed.scripts:
                    raise Conflict("scripts_full", tenant=tenant, maximum=allowed.scripts)
                numbers[tenant] += 1
                content, script_id, now_us = each.content, self._context.ids.new(), self._batch.now_us
                offered = each.item.get("offered", False)
                rows.append(scripts.new_row(tenant, script_id, name, content.kind, now_us, offered=offered))
                versions.append(
                    scripts.version_row(
                        tenant, script_id, 1, content, now_us, self._audit_context, each.grants, each.fields
                    )
                )
                fields = read_fields(json.loads(each.fields)) if each.fields else None
                self._bound[tenant, name] = BoundScript(script_id, 1, content.kind, name, fields)
                self._note("scripts.put", tenant, name, name, {"name": name, "version": 1, "digest": content.digest})
        insert_many(self._connection, tables.scripts, rows)
        insert_many(self._connection, tables.script_versions, versions)
        return len(rows)

    def _schedules(self) -> int:
        """Insert the schedules of the batch with their revisions and clocks; return their number."""
        given = self._batch.schedules
        ids = {each.item["tenant_id"] for each in given}
        numbers = self._counts(_schedule_counts, ids)
        kept = storage_usage.kept_bytes(self._connection, ids) if ids else {}
        named_so = [{"tenant": each.item["tenant_id"], "called": each.item["name"]} for each in given]
        found = _schedule_names.rows(self._connection, named_so) if named_so else []
        taken = {(row.tenant, row.called) for row in found}
        made = []
        for each in given:
            tenant, name = each.item["tenant_id"], each.item["name"]
            if self._batch.depends_on_refused("schedules", each.item):
                continue
            with self._batch.refusing("schedules", each.index, each.item):
                limits = self._require_room(tenant, kept)
                before = self._before.get(tenant)
                if before is not None and before.state not in ("active", "deleted"):
                    raise Conflict("tenant_suspended", tenant=tenant)
                if (tenant, name) in taken:
                    self._exists(Conflict("schedule_exists", tenant=tenant, name=name))
                    continue
                made.append((self._schedule(each, limits, numbers[tenant]), named(each.wish.rules.rules)))
                numbers[tenant] += 1
        for number, table in enumerate(schedules.NEW_ROWS):
            insert_many(self._connection, table, [rows[number] for rows, _sets in made])
        for (row, *_others), sets in made:
            if sets:
                followers.bind(self._connection, row["tenant_id"], row["id"], sets, self._batch.now_us)
        return len(made)

    def _schedule(
        self, each: _Schedule, limits: str, number: int
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return the rows of a schedule: its own, that of its revision and that of its clock."""
        now_us = self._batch.now_us
        tenant, name = each.item["tenant_id"], each.item["name"]

        def bind_script(script: str, version: int | None) -> BoundScript:
            """Return the script that a schedule names, from this batch or from the ledger."""
            known = self._bound.get((tenant, script)) if version is None else None
            if known is not None and known.kind != "library":
                return known
            return bindings.bind(self._connection, tenant, script, version)

        owed_us = now_us + 1 if each.owed is None else to_us(each.owed)
        rows = schedules.new_rows(
            self._context, tenant, name, limits, each.wish, bind_script, number, now_us, owed_us, self._audit_context
        )
        after = {"name": name, "text": rows[1]["sentence"], "revision": 1}
        self._note("schedules.create", tenant, rows[0]["id"], name, after)
        return rows
