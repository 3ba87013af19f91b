"""Base of the nouns: the open ledger, transactions with audit rows, and the conversion of common arguments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import Connection, Select

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import AuditContext, current_audit_context
from lodger.engine.core.errors import Conflict, InputError
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.recurrence.rrule import from_dateutil, is_dateutil
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.service.bulk import Matched, counted
from lodger.engine.service.operations.declaration import Declared, M, Operations, declared
from lodger.engine.store import audit
from lodger.engine.store.connection.joined import joined
from lodger.engine.store.context import StoreContext
from lodger.engine.store.platform.idempotency import naming_repeated
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.records import Json
from lodger.engine.store.tenants import tenants
from lodger.engine.store.usage import storage_usage

if TYPE_CHECKING:
    from dateutil.rrule import rrule, rruleset

    from lodger.engine.service.engine import Engine

    #: Input form of rules: a text, a RuleSpec, an object of python-dateutil, or several of them.
    RulesArgument: TypeAlias = str | RuleSpec | rrule | rruleset | Sequence[str | RuleSpec | rrule | rruleset]
else:
    # Of JSON: it has no objects of python-dateutil.
    RulesArgument = str | RuleSpec | Sequence[str | RuleSpec]

#: Input form of steps: a script's name, or steps in order: names, or objects with ``script``, ``version`` and
#: ``limits``.
StepsArgument = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]

P = ParamSpec("P")
R = TypeVar("R")


_UNSET: Any = object()


class Change:
    """A change in progress."""

    def __init__(
        self,
        context: StoreContext,
        connection: Connection,
        audit_context: AuditContext,
        doing: audit.AuditSubject,
        declaration: Declared,
    ) -> None:
        self.connection = connection
        self._context = context
        self.audit_context = audit_context
        self._doing = doing
        self._declared = declaration
        self._before: Json = None
        self._after: Json = _UNSET
        self._answer: Any = None
        self._seen = False
        self._excess = (
            None if doing.tenant_id is None else storage_usage.ask_excess(context, connection, doing.tenant_id)
        )

    def with_reason(self, why: str | None) -> AuditContext:
        """Return the audit context with a reason, if one is given; the audit log shows it too.

        Raises:
            InputError: why_invalid.
        """
        if why is not None:
            self.audit_context = replace(self.audit_context, why=names.reason(why))
        return self.audit_context

    def before(self, record: R, *, of: object = None) -> R:
        """Record the state before the change; return the record.

        Args:
            of: the record that the caller's ETag refers to, if the log shows only a part of it.

        Raises:
            Conflict: precondition_failed, if the caller's ETag is of another state.
        """
        if self.audit_context.expect is not None:
            self.audit_context.expect(record if of is None else of)
        self._seen = True
        self._before = to_audit_json(record)
        self._name(record)
        return record

    def made(self, answer: R, after: object = _UNSET, *, changed: bool = True) -> R:
        """Record the result of the change; return it.

        Args:
            after: state after the change for the log, if it is not the result itself; None if the object is gone.
            changed: False if the change had been made before.
        """
        self._answer = answer
        if changed:
            record = answer if after is _UNSET else after
            self._after = to_audit_json(record)
            self._name(record)
        return answer

    def _name(self, record: object) -> None:
        """Note id and name of the changed record for the audit log."""
        identity, name = getattr(record, "id", None), getattr(record, "name", None)
        if isinstance(identity, str):
            self._doing = replace(self._doing, target=identity, named=name or self._doing.named)

    def settle(self, now_us: int) -> None:
        """Write the audit row and the idempotent response; the last statements of the transaction.

        Raises:
            Conflict: storage_full, tenant_moving.
        """
        if self.audit_context.expect is not None and not self._seen:
            self.audit_context.expect(None)
        asked = None
        if self._after is not _UNSET and (self._before is None or self._before != self._after):
            tenant, over = self._doing.tenant_id, None if self._excess is None else self._excess()
            if over is not None and over.moves:
                raise Conflict("tenant_moving", tenant=tenant)
            # Asked again after a change that stores, and answered together with its row.
            if tenant and over and over.is_near and (self._declared.stores or self._declared.requests):
                asked = storage_usage.ask_excess(self._context, self.connection, tenant)
            brief = over is not None and (over.kept or over.audit)
            row = audit.row(
                self._context, self.audit_context, self._doing, self._before, self._after, now_us, brief=brief
            )
            audit.write(self.connection, [row])
        if self.audit_context.remember is not None:
            self.audit_context.remember(self.connection, self._answer)
        if asked is not None:
            self._require_storage(asked())

    def _require_storage(self, over: storage_usage.Excess) -> None:
        """Refuse a change after which its tenant has too many bytes."""
        params = getattr(self._answer, "params", None) is not None
        if (over.kept and self._declared.stores) or (params and over.total and self._declared.requests):
            tenant = self._doing.tenant_id
            raise Conflict("storage_full", tenant=tenant, limit=over.limit, details={"limit": over.limit})


def to_audit_json(record: object) -> Json:
    """Return a record in the form of the audit log: without what follows from other fields, with the lengths of sources only."""
    body = to_jsonable(record)
    if isinstance(body, dict):
        body.pop("limits_in_effect", None)
    if isinstance(body, dict) and isinstance(body.get("modules"), dict):
        body["modules"] = {file: len(text) for file, text in body["modules"].items()}
    return body


class Noun(Operations[M]):
    """Base of the nouns. ``changed`` is called after every write, so that nodes in this process look for work.

    A writing verb uses :meth:`_changing`, which opens the transaction, writes the audit row, and handles If-Match and
    idempotency keys.
    """

    def __init__(self, engine: "Engine") -> None:
        self.context = engine.context
        self.changed = engine.changed
        self.vault = engine.vault
        self.process_metrics = engine.process_metrics

    @property
    def _now_us(self) -> int:
        """Microseconds since 1970 by the engine's clock."""
        return self.context.clock.now_us()

    def _read(self, look: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of a function of the store, in one transaction."""
        with self.context.database.read() as connection:
            return look(connection, *args, **kwargs)

    def _count(self, statement: Select[Any], tenant_id: str | None) -> Matched:
        """Count the rows of a statement, of a tenant that must exist; None for all tenants."""
        with self._reading(tenant_id) as connection:
            return counted(connection, statement)

    @contextmanager
    def _reading(self, tenant_id: str | None) -> Iterator[Connection]:
        """Open a transaction that reads what a tenant has; None for all tenants.

        Raises:
            NotFound: tenant_unknown.
        """
        with self.context.database.read() as connection:
            if tenant_id is not None:
                tenants.get(connection, tenant_id)
            yield connection

    @contextmanager
    def _changing(
        self, verb: Callable[..., Any], tenant_id: str | None, target: str = "", named: str | None = None
    ) -> Iterator[Change]:
        """Open a transaction for one change; it is stored with its row in the audit log, or not at all.

        Args:
            verb: the declared verb, such as ``Schedules.pause``.
            tenant_id: tenant of the change; None for the platform's own.
            target: id or name of the changed object; :meth:`Change.before` and :meth:`Change.made` find the id.
        """
        mine = joined(self.context.database, self.changed)
        opened = self.context.database.write() if mine is None else nullcontext(mine)
        with naming_repeated(), opened as connection:
            if tenant_id is not None:
                # The state before is read under the lock under which it is changed.
                ready_queue.lock(connection, [tenant_id])
            of = audit.AuditSubject(f"{type(self).__name__.lower()}.{verb.__name__}", tenant_id, target, named)
            change = Change(self.context, connection, current_audit_context(), of, declared(verb) or Declared())
            yield change
            change.settle(self._now_us)
            self.context.database.hints.send(connection, self.context.clock.elapsed_s())
        if mine is None:
            self.changed()


def specs(rules: RulesArgument) -> tuple[RuleSpec, ...]:
    """Return rules as RuleSpecs.

    Raises:
        RuleInvalid: dateutil_unreadable.
    """
    # An object of python-dateutil iterates over its slots.
    if isinstance(rules, str | bytes | Mapping | RuleSpec) or is_dateutil(rules) or not isinstance(rules, Iterable):
        rules = (rules,)
    return tuple(_spec(rule) for rule in rules)


def _spec(rule: object) -> RuleSpec:
    """Return a rule from its text, or from an object of dateutil."""
    if isinstance(rule, str):
        return RuleSpec(rule)
    return rule if isinstance(rule, RuleSpec) else from_dateutil(rule)


def aware(instant: datetime | None) -> datetime | None:
    """Return an instant with a zone, or None for None.

    Raises:
        InputError: instant_invalid, instant_naive, time_invalid.
    """
    if instant is None:
        return None
    if not isinstance(instant, datetime):
        raise InputError("instant_invalid", instant=instant)
    if instant.tzinfo is None:
        raise InputError("instant_naive", instant=instant.isoformat())
    try:
        instant.astimezone(UTC)
    except OverflowError:
        raise InputError("time_invalid.years", when=instant.isoformat(), tz="UTC") from None
    return instant


def instant(given: datetime) -> datetime:
    """Return an instant with a zone.

    Raises:
        InputError: as :func:`aware`.
    """
    return aware(given) or given
