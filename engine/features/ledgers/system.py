"""Several ledgers as one engine: each operation goes to the ledger of its tenant, to each ledger, or to the first one.

Which of these is read from the operation's declaration. The platform's tokens, locks, secrets, schedules and the directory are in the
first ledger; a tenant's tokens, sessions and URLs are in the tenant's own, and found by asking one ledger after the other.
"""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from heapq import merge as merge_sorted
from pathlib import Path
from time import monotonic
from typing import Any, Self, TypeVar, cast

from lodger.engine.core import ledger_file
from lodger.engine.core.access.audit_context import current_audit_context, use_audit_context
from lodger.engine.core.clock import Clock
from lodger.engine.core.context_values import holding
from lodger.engine.core.errors import Conflict, Explained, InputError, NotFound, Unavailable
from lodger.engine.core.ids import PLATFORM, is_id
from lodger.engine.core.ledger_file import NamedLedger
from lodger.engine.core.metrics import prometheus_text
from lodger.engine.core.partial_answers import note_unreachable, unreachable_ledgers
from lodger.engine.core.settings import Settings
from lodger.engine.features.ledgers import directory, merging, moving
from lodger.engine.features.ledgers.directory import LedgerUnreachable, TenantPlace
from lodger.engine.features.ledgers.operations import LedgerState
from lodger.engine.service.bulk import BulkResult
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations import proxy, table
from lodger.engine.service.operations.declaration import Sync
from lodger.engine.service.operations.route import Operation
from lodger.engine.store import signing_keys
from lodger.engine.store.connection.database import mask_password
from lodger.engine.store.drivers import patience
from lodger.engine.store.lifecycle import ledger_identity
from lodger.engine.store.records import Page
from lodger.engine.store.tenants import tenants

T = TypeVar("T")
#: Seconds for which a ledger that a second try could not reach is not asked again.
RETRY_S = 1.0
#: Seconds to wait for an answer to a look at a ledger: at its part of a list, at the directory, or whether it can be reached.
LOOK_S = 5.0
#: Seconds to wait for an answer within a call on one ledger that is not slow: longer than for a lock.
CALL_S = 15.0
#: Parts of lists that are read from one ledger at once.
THREADS = 16
#: Seconds for which the numbers of tenants by ledger are reused where new tenants are placed.
COUNTED_S = 30.0
HOUR_US = 3_600_000_000
#: Why a ledger is not asked.
UNLISTED = "tenants live there, and it is not in the file that LODGER_LEDGERS names"
#: Codes of errors that concern a ledger as a whole begin so.
_OF_LEDGER = ("database_", "not_a_", "ledger_", "disk_error")
#: Seconds after which the copies of the operators' tokens are compared with the first ledger's.
COPY_S = 5.0


class Member:
    """One ledger of the system: opened when it is first asked, and not asked for a while when it could not be reached."""

    def __init__(self, named: NamedLedger, open_engine: "Callable[[Member], Engine]") -> None:
        self.named, self.name = named, named.name
        self.engine: Engine | None = None
        self._open = open_engine
        self._opening = threading.Lock()
        #: Until when it is not asked, and why. Not the error, whose traceback would keep the lost connection open.
        self._failed: tuple[float, str] | None = None
        #: For parts of lists. Threads of its own, so that a ledger that does not answer holds none of the others'.
        self.pool = ThreadPoolExecutor(THREADS, "lodger-ledger", partial(patience.adopt, LOOK_S))

    def opened(self) -> Engine:
        """Return the engine; one call at a time asks a ledger that could not be reached, and the others are refused meanwhile.

        Raises:
            Unavailable: ledger_unreachable.
        """
        failed = self._failed
        if not self._opening.acquire(blocking=failed is None):
            raise LedgerUnreachable(self.name, failed[1] if failed else "")
        try:
            failed = self._failed
            if failed is not None and monotonic() < failed[0]:
                raise LedgerUnreachable(self.name, failed[1])
            if self.engine is None or failed is not None:
                self.engine = self._tried()
                self._failed = None
            return self.engine
        finally:
            self._opening.release()

    def _tried(self) -> Engine:
        """Return the engine, opened if need be, of a ledger that answers.

        Raises:
            Unavailable: ledger_unreachable.
        """
        try:
            with patience.waiting(LOOK_S):
                engine = self.engine or self._open(self)
                _answered(engine)
        except (Unavailable, InputError) as error:
            raise self.explained(error, RETRY_S) from error
        return engine

    def run(self, work: Callable[[Engine], T]) -> T:
        """Return what a function of the engine returns.

        Raises:
            Unavailable: ledger_unreachable.
        """
        engine = self.opened()
        try:
            found = work(engine)
        except Unavailable as error:
            raise self.explained(error) from error
        self._failed = None
        return found

    def look(self, work: Callable[[Engine], T]) -> T:
        """Return what a function of the engine returns that waits for each answer for a short time; see :meth:`run`."""
        with patience.waiting(LOOK_S):
            return self.run(work)

    def fails(self, error: Explained) -> bool:
        """Whether an error concerns the ledger as a whole; one that is busy answers the next call."""
        return error.code.startswith(_OF_LEDGER) and error.code != "database_busy"

    def explained(self, error: Explained, wait_s: float = 0.0) -> Explained:
        """Return the error that names this ledger, if it cannot be reached, and note that it could not; else the error itself.

        Args:
            wait_s: time until it is asked again; a call whose answer did not come may have asked too much of it.
        """
        if isinstance(error, LedgerUnreachable) or not self.fails(error):
            return error
        reason = f"{error.what} ({error.code})"
        self._failed = (monotonic() + wait_s, reason)
        return LedgerUnreachable(self.name, reason)


class System(table.Nouns[Sync]):
    """The engines of all ledgers behind the verbs of one. What is no operation is that of the first ledger."""

    def __init__(self, named: tuple[NamedLedger, ...], open_engine: Callable[..., Engine]) -> None:
        self._open_engine = open_engine
        self._prepared: list[Callable[[Engine], object]] = []
        self._members = {each.name: Member(each, self._opened) for each in named}
        self.home, *self._others = self._members.values()
        #: The first ledger's engine, also while that cannot be reached.
        self.engine = open_engine(self.home.named, deferred=True)
        try:
            self._secret = self._first_opened()
        except BaseException:
            self.engine.close()
            raise
        self._copying = ThreadPoolExecutor(1, thread_name_prefix="lodger-copy")
        self._counted = float("-inf"), Counter[str]()
        #: When to compare the copies of the operators' tokens, what was copied in which hour, and the ledgers that lack it.
        self._copy_at_s = 0.0
        self._copied: tuple[int, list[dict[str, Any]]] | None = None
        self._lacking: list[Member] = []
        self._own: dict[str, Callable[..., Any]] = {
            "tenants.place": self.place_of,
            "tenants.move": self._move,
            "tenants.delete": self._delete,
            "tokens.revoke": self._revoke,
            "ledgers.list": self._list,
            "secrets.rotate": self._rotate,
            "metrics.text": lambda: prometheus_text(self.metrics.read(), process=True),
        }
        for noun in self.engine.table.nouns:
            setattr(self, noun, proxy.Proxy(noun, self.engine.table.operations, self._call, awaited=False))

    @classmethod
    def open(cls, kind: type[Engine], settings: Settings, clock: Clock | None) -> Engine:
        """Open the ledgers of the setting ``ledgers``; one that cannot be reached may come later."""
        assert settings.ledgers is not None

        def open_engine(each: NamedLedger, *, deferred: bool = False) -> Engine:
            """Open the engine of one ledger of the system."""
            own = settings.model_copy(update={"database": each.url, "read_database": None})
            return kind.open(each.url, clock=clock, settings=own, deferred=deferred)

        # It has the verbs of an engine, as clients do.
        return cast("Engine", cls(ledger_file.read(settings.ledgers), open_engine))

    def _first_opened(self) -> str:
        """Return the system's secret from the first ledger, else from another one; begin a system where there is none.

        Raises:
            Unavailable: ledger_unreachable, if no ledger of the system can be reached; ledger_other.
        """
        home, system, problem = self.home, None, None
        try:
            system = _look(self.engine, directory.system_of)
        except Unavailable as error:
            if not home.fails(error):
                raise
            problem = error
        if system is None:
            if secret := next(self._secrets_of_others(), None):
                return secret
            if problem is not None and problem.code != "not_a_ledger":
                others = [each.name for each in self._others]
                raise Unavailable("ledger_unreachable.first", ledger=home.name, reason=problem.what, others=others)
            self._open_engine(home.named).close()  # which sets up an empty database
            with self.engine.context.database.write() as connection:
                directory.adopt(connection, tenants.ids(connection), home.name)
                directory.join(connection, home.name)
                system = directory.system_of(connection)
            assert system is not None, "it was stored"
        if system.first != home.name:
            raise Unavailable("ledger_other.first", ledger=home.name, first=system.first)
        home.engine = self.engine
        return str(system.secret)

    def _secrets_of_others(self) -> Iterator[str]:
        """Yield the system's secret from each of the other ledgers that has it."""
        for each in self._others:
            with suppress(Unavailable, InputError):
                if not _is_absent(each.named):
                    with self._open_engine(each.named) as engine:
                        system = _look(engine, directory.system_of)
                    if system is not None and system.first == self.home.name:
                        yield system.secret

    def _opened(self, member: Member) -> Engine:
        """Open a ledger, which joins the system if it belongs to none; a SQLite file with known tenants must exist."""
        if member is self.home:
            made = self.engine
        elif _is_absent(member.named) and self._counts()[member.name]:
            raise Unavailable("not_a_ledger.absent", place=member.named.url)  # opening would create an empty one
        else:
            made = self._open_engine(member.named)
        try:
            self._joined(member, made)
        except BaseException:
            if member is not self.home:
                made.close()
            raise
        for each in self._prepared:
            each(made)
        return made

    def _joined(self, member: Member, engine: Engine) -> None:
        """Let a ledger join the system, with the tenants that it has, if it belongs to none.

        Raises:
            Unavailable: ledger_other, if it belongs to another one, or is a copy of a ledger; ledger_unreachable.
        """
        system = _look(engine, directory.system_of)
        here = _look(engine, tenants.ids) if system is None else ()
        if system is None and (member is self.home or (not here and self._read(directory.counts)[member.name])):
            raise Unavailable("ledger_other.empty", ledger=member.name)
        if system is None:
            if _identity(engine) == self.home.run(_identity):
                raise Unavailable("ledger_other.copy", ledger=member.name, name=self.home.name)
            self._write(directory.adopt, here, member.name)
            _change(engine, directory.join, self.home.name, self._secret)
        elif (system.secret, system.first) != (self._secret, self.home.name):
            raise Unavailable("ledger_other.system", ledger=member.name)

    def _read(self, look: Callable[..., T], *args: Any) -> T:
        """Run a query on the directory in the first ledger."""
        return self.home.look(lambda engine: _look(engine, look, *args))

    def _write(self, change: Callable[..., T], *args: Any) -> T:
        """Run a change of the directory in a transaction of the first ledger."""
        return self.home.run(lambda engine: _change(engine, change, *args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all ledgers; safe to call twice."""
        for pool in (self._copying, *(each.pool for each in self._members.values())):
            pool.shutdown()
        for engine in {self.engine, *(each.engine for each in self._members.values())}:
            if engine is not None:
                engine.close()

    def unready(self) -> list[str]:
        """Return the problems of the first ledger, if no other one can be reached."""
        return [] if any(_problem(each) is None for each in self._others) else self.engine.unready()

    def at(self, tenant_id: str | None) -> Engine:
        """Return the engine of the ledger that a tenant lives in; see :meth:`lodger.engine.sync.Engine.at`."""
        if tenant_id is not None:
            return self.where(tenant_id).opened()
        try:
            return self.home.opened()
        except LedgerUnreachable:
            if (acting := self._acting()) is None:
                raise
            return acting.opened()

    def knows(self, engine: Engine, *, copied: bool) -> bool:
        """Whether a ledger may say who an operator is; see :meth:`lodger.engine.sync.Engine.knows`."""
        if engine is self.engine or not copied:
            return engine is self.engine and not copied
        return _problem(self.home) is not None and (acting := self._acting()) is not None and acting.engine is engine

    def _acting(self) -> Member | None:
        """Return the ledger with the latest copy of the operators' tokens, None without one that counts."""
        now_us, latest, found = self.engine.context.clock.now_us(), 0, None
        for each in self._others:
            with suppress(Unavailable):
                at_us = each.look(lambda engine: _look(engine, directory.copied_us, engine.context, now_us))
                if at_us > latest:
                    latest, found = at_us, each
        return found

    def _copy(self, *, changed: bool = False) -> list[str]:
        """Copy the operators' tokens to the other ledgers; return the names of those that cannot be reached.

        Args:
            changed: only if they have changed since, once an hour, or if one can be reached again.
        """
        now_us = self.engine.context.clock.now_us()
        copied = now_us // HOUR_US, self._read(directory.operators)
        if changed and copied == self._copied and all(_problem(each) is not None for each in self._lacking):
            return []
        at_us, rows = self._write(directory.operators_at, now_us)

        def take(member: Member) -> None:
            """Store the copy in one ledger."""
            if member is not self.home:
                member.run(lambda engine: _change(engine, directory.copy_operators, engine.context, at_us, rows))

        there = self._each(take)
        self._copied, self._lacking = copied, [each for each in self._others if each not in there]
        return [each.name for each in self._lacking]

    def _copy_changed(self) -> None:
        """Copy the operators' tokens if they have changed, in a thread of its own."""
        with suppress(Unavailable), unreachable_ledgers():
            self._copy(changed=True)

    def _revoke(self, token: str, *, tenant_id: str | None = None) -> Any:
        """Revoke a token; an operator's in the first ledger and in every copy.

        Raises:
            Unavailable: ledger_unreachable, also if it is revoked, and still is in the copy of a ledger that cannot be reached.
        """
        of = tenant_id or self.tokens.get(token).tenant_id
        if of is not None:
            return self.where(of).run(lambda engine: engine.tokens.revoke(token, tenant_id=tenant_id))
        # Not remembered under an idempotency key: repeated, it reaches the copies that it has not reached.
        with use_audit_context(replace(current_audit_context(), remember=None)):
            made = self.home.run(lambda engine: engine.tokens.revoke(token))
        if missing := self._copy():
            raise Unavailable("ledger_unreachable.copy", ledgers=missing, details={"ledger": missing[0]})
        return made

    def snapshot(self, tenant_id: str | None) -> AbstractContextManager[None]:
        """Do nothing: each part is read in a thread of its own, and another part may be unreachable."""
        return nullcontext()

    def live(self, tenant_id: str, action_id: str | None = None) -> Any:
        """Yield changes of a tenant's actions; see :meth:`lodger.engine.sync.Engine.live`."""
        return self.at(tenant_id).live(tenant_id, action_id)

    def parts(self) -> list[tuple[str, str | None]]:
        """Return the name and problem of each ledger; see :meth:`lodger.engine.sync.Engine.parts`."""
        return [(each.name, each.problem) for each in self._list()]

    def prepare_each(self, function: Callable[[Engine], object]) -> None:
        """Call a function with the engine of each ledger; see :meth:`lodger.engine.sync.Engine.prepare_each`."""
        self._prepared.append(function)
        for each in self._members.values():
            if each.engine is not None:
                function(each.engine)

    def ask_each(self, look: Callable[[Engine], T | None], *, tenant_id: str | None = None) -> T | None:
        """Return what a function finds in one ledger after the other; see :meth:`lodger.engine.sync.Engine.ask_each`."""
        if tenant_id is not None:
            return self.where(tenant_id).look(look)
        failed = None
        if monotonic() > self._copy_at_s:
            self._copy_at_s = monotonic() + COPY_S
            self._copying.submit(self._copy_changed)
        for each in self._members.values():
            try:
                found = each.look(look)
            except LedgerUnreachable as error:
                failed = failed or error
                continue
            if found is not None:
                return found
        if failed is not None:
            raise failed
        return None

    def member(self, name: str) -> Member:
        """Return a ledger by name.

        Raises:
            NotFound: ledger_unknown.
        """
        if name not in self._members:
            raise NotFound("ledger_unknown", ledger=name, names=list(self._members))
        return self._members[name]

    def where(self, tenant_id: str, *, new: bool = False) -> Member:
        """Return the ledger that a tenant lives in; the first one for a tenant that does not exist.

        The directory is asked each time, because another process may have moved the tenant; while it cannot be asked, the ledgers are.

        Args:
            new: the tenant is to be created: a ledger that was never reached cannot have it.

        Raises:
            Unavailable: ledger_unreachable, also for a tenant that may be in a ledger that was never reached.
        """
        if tenant_id == PLATFORM:
            return self.home
        try:
            place = self._read(directory.find, tenant_id)
        except LedgerUnreachable:
            found = self.ask_each(partial(_lives_in, tenant_id))
            assert found is not None, "the first ledger does not answer"
            return next(each for each in self._members.values() if each.engine is found)
        if place is None:
            place = self._found(tenant_id, new=new)
        if place is None:
            return self.home
        if place.ledger not in self._members:
            raise LedgerUnreachable(place.ledger, UNLISTED)
        return self._members[place.ledger]

    def _found(self, tenant_id: str, *, new: bool) -> TenantPlace | None:
        """Return the place of a tenant that the directory does not know: found in the ledgers themselves, and entered; None if none
        has it."""
        try:
            engine = self.ask_each(partial(_lives_in, tenant_id))
        except LedgerUnreachable:
            if not new:
                raise
            engine = None
        # A ledger that was opened just now has noted its tenants.
        place = self._read(directory.find, tenant_id)
        if place is not None or engine is None:
            return place
        name = next(each.name for each in self._members.values() if each.engine is engine)
        self._write(directory.add, [tenant_id], name)
        return TenantPlace(tenant_id, name)

    def place_of(self, tenant_id: str) -> TenantPlace:
        """Return the place of a tenant.

        Raises:
            NotFound: tenant_unknown.
        """
        member = self.where(tenant_id)
        found = self._read(directory.find, tenant_id) or TenantPlace(tenant_id, member.name)
        if found.target is None and found.source is None:
            member.run(lambda engine: engine.tenants.get(tenant_id))
        return found

    def _call(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Carry out an operation for a proxy in the ledgers that it concerns, and return the merged answer."""
        if operation.name in self._own:
            return self._own[operation.name](*args, **kwargs)
        with nullcontext() if operation.is_slow else patience.waiting(CALL_S):
            return self._route(operation, args, kwargs)

    def _route(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Carry out an operation that has no function of its own here."""
        given = proxy.signature(operation.function).bind(*args, **kwargs)
        given.apply_defaults()
        tenant_id = given.arguments.get("tenant_id")

        def run_in(member: Member, **more: Any) -> Any:
            """Carry out the operation in one ledger."""
            own = kwargs | more
            return member.run(lambda engine: operation.function(getattr(engine, operation.noun), *args, **own))

        if operation.declared.streams:
            return self._stream(operation, tenant_id, args, kwargs)
        if operation.noun == "tenants" and any(each.status == 201 for each in operation.declared.endpoints):
            return self._create(operation, str(tenant_id), args, kwargs)
        offered = tenant_id == PLATFORM and operation.noun == "scripts" and operation.declared.changes
        if offered or operation.declared.in_all:
            return self._in_all(run_in)
        if tenant_id is not None:
            return run_in(self.where(tenant_id))
        if operation.noun == "batches":
            return self._batch(given.arguments, run_in)
        found = self._of_platform(operation, given.arguments, run_in)
        if operation.name in ("tokens.create", "tokens.first"):
            self._copy()
        return found

    def _of_platform(self, operation: Operation, given: dict[str, Any], run: Callable[..., Any]) -> Any:
        """Carry out an operation that concerns no single tenant, in the ledgers that it concerns."""
        of_all = [each for each in operation.declared.endpoints if "{tenant_id}" not in each.path]
        if operation.declared.home or not of_all:
            return run(self.home)
        if any("{" in each.path for each in of_all):
            return self._find(operation, given, run)
        if operation.verb == "bulk":
            return self._bulk(operation, given, run)
        if operation.declared.changes or not any(each.twin or each.method == "GET" for each in of_all):
            return run(self.home)
        if "cursor" in given:
            return self._page(given, run)
        answers = self._each(run)
        return merging.merged(operation.name, {each.name: found for each, found in answers.items()}, given.get("limit"))

    def _each(self, work: Callable[[Member], T]) -> dict[Member, T]:
        """Return the answers of all ledgers that can be reached; the others are noted.

        Raises:
            Unavailable: ledger_unreachable, if none can. NotFound: as all of them.
        """
        asked = {each: each.pool.submit(copy_context().run, work, each) for each in self._members.values()}
        answers: dict[Member, T] = {}
        failed: list[Exception] = []
        note_unreachable(*self._unlisted())
        for each, future in asked.items():
            try:
                answers[each] = future.result()
            except NotFound as error:
                failed.append(error)
            except LedgerUnreachable as error:
                failed.append(error)
                note_unreachable(each.name)
        if not answers:
            raise failed[-1]
        return answers

    def _page(self, given: dict[str, Any], run: Callable[..., Any]) -> Page[Any]:
        """Merge one page of each ledger; the cursor has the place in each that still has entries."""
        places: dict[str, Any] = dict.fromkeys(self._members)
        of = None
        if given["cursor"]:
            of, known = signing_keys.open_cursor(self._secret.encode(), given["cursor"])
            if of is None or not isinstance(known, dict):
                raise InputError("cursor_invalid")
            places = {name: place for name, place in known.items() if name in self._members}

        def page_of(member: Member) -> Page[Any]:
            """Return the next page of one ledger, empty if it has shown all."""
            if member.name not in places:
                return Page()
            if places[member.name] is None:
                return cast("Page[Any]", run(member, cursor=None))
            with holding(signing_keys.PLACE, (str(of), places[member.name])):
                return cast("Page[Any]", run(member, cursor=given["cursor"]))

        answers = {each.name: page for each, page in self._each(page_of).items()}
        moved: list[TenantPlace] = []
        with suppress(Unavailable):
            moved = self._read(directory.moving)
        found, left = merging.pages(answers, places, given.get("limit"), moved, self.home.name)
        if left and found.order is not None:
            found.next = signing_keys.seal_cursor(self._secret.encode(), found.order.of, left)
        return found

    def _find(self, operation: Operation, given: dict[str, Any], run: Callable[..., Any]) -> Any:
        """Carry out an operation on an object by its id, in the ledger that has it."""
        if operation.declared.changes:
            name = str(next(value for key, value in given.items() if key != "tenant_id"))
            if not is_id(name) and len(found := self._having(operation.noun, name)) > 1:
                raise InputError("ledger_ambiguous", given=name, ledgers=found)
        absent: NotFound | None = None
        failed: Unavailable | None = next((LedgerUnreachable(each, UNLISTED) for each in self._unlisted()), None)
        for each in self._members.values():
            try:
                return run(each)
            except NotFound as error:
                absent = absent or error
            except LedgerUnreachable as error:
                failed = failed or error
        raise failed or absent or AssertionError("there is a ledger")

    def _having(self, noun: str, name: str) -> list[str]:
        """Return the ledgers with an object of this name, or with an id of which it is a part."""

        def has_object(member: Member) -> bool:
            """Whether a ledger has the named object; raises NotFound in place of False where its verb does."""
            engine: Any = member.opened()
            if noun == "nodes":
                return any(name in (each.name, each.id) for each in engine.nodes.list())
            of = (None, name) if noun == "actions" else (name,)
            return getattr(engine, noun).get(*of) is not None

        try:
            return [each.name for each, there in self._each(has_object).items() if there]
        except NotFound:
            return []

    def _in_all(self, run: Callable[..., Any]) -> Any:
        """Carry out a change of the platform's scripts or plans in every ledger, since tenants of each refer to them."""
        self._require_all()
        made = run(self.home)
        # The caller's ETag and idempotency key are of the first ledger.
        with use_audit_context(replace(current_audit_context(), expect=None, remember=None)):
            for each in self._others:
                run(each)
        return made

    def _require_all(self) -> None:
        """Raise Unavailable if a ledger cannot be reached."""
        for name in self._unlisted():
            raise LedgerUnreachable(name, UNLISTED)
        for each in self._members.values():
            each.look(_answered)

    def _rotate(self, *, new_key: bool = False, drop: bool = False) -> Any:
        """Encrypt the secrets of all ledgers anew; keys are dropped when none of them uses them."""
        self._require_all()
        made = self.engine.secrets.rotate(new_key=new_key)
        others = [each.opened().secrets.rotate() for each in self._others]
        renewed = made.renewed + sum(each.renewed for each in others)
        return replace(self.engine.secrets.rotate(drop=True) if drop else made, renewed=renewed)

    def _bulk(self, operation: Operation, given: dict[str, Any], run: Callable[..., Any]) -> BulkResult:
        """Change a part of the objects of one ledger; the cursor leads through all of them."""
        of, names = f"{operation.name}:{given['do']}:{given['filter']}", list(self._members)
        at, inner, done, refused = names[0], None, 0, {}
        if given["cursor"]:
            owner, place = signing_keys.open_cursor(self._secret.encode(), given["cursor"])
            if owner != of or place[0] not in names:
                raise InputError("cursor_invalid")
            at, inner, matched, done, refused = place
        else:
            self._require_all()
            matched = getattr(self, operation.noun).count(filter=given["filter"]).count
        part = run(self._members[at], cursor=inner)
        total = done + part.done
        codes = {code: refused.get(code, 0) + part.refused.get(code, 0) for code in {*refused, *part.refused}}
        # A part's own numbers grow with its cursor.
        left = [at, part.next, matched, done, refused] if part.next is not None else None
        if left is None and (rest := names[names.index(at) + 1 :]):
            left = [rest[0], None, matched, total, codes]
        following = None if left is None else signing_keys.seal_cursor(self._secret.encode(), of, left)
        return BulkResult(matched, total, codes, following)

    def _stream(
        self, operation: Operation, tenant_id: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Generator[Any]:
        """Yield the entries of a stream of all ledgers, or of the tenant's, merged by their ids."""
        if tenant_id is None:
            self._require_all()
        members = list(self._members.values()) if tenant_id is None else [self.where(tenant_id)]
        parts = [operation.function(getattr(each.opened(), operation.noun), *args, **kwargs) for each in members]
        try:
            yield from merge_sorted(*parts, key=lambda each: each.id)
        finally:
            for each in parts:
                each.close()

    def _create(self, operation: Operation, tenant_id: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Create a tenant where the caller says, or in the ledger with most room."""
        wanted = kwargs.pop("ledger", None)
        if wanted is not None:
            self.member(wanted)
        there = self.where(tenant_id, new=True)
        place = self._read(directory.find, tenant_id)
        if place is not None and wanted not in (None, place.ledger):
            if there.run(partial(_lives_in, tenant_id)) is not None:
                raise Conflict("tenant_exists", tenant=tenant_id)
            self._write(partial(directory.change, ledger=wanted), place)
        with nullcontext() if place is not None else self._entered([tenant_id], wanted or self._roomiest()):
            return self.where(tenant_id).run(
                lambda engine: operation.function(getattr(engine, operation.noun), *args, **kwargs)
            )

    @contextmanager
    def _entered(self, tenant_ids: Sequence[str], name: str) -> Iterator[None]:
        """Enter new tenants in the directory, and forget those that were not created when the block is refused."""
        added = self._write(directory.add, tenant_ids, name)
        self._counted[1][name] += len(added)
        try:
            yield
        except InputError:
            for each in added:
                if self.where(each).run(partial(_lives_in, each)) is None:
                    self._write(directory.drop, each)
            raise

    def _batch(self, given: dict[str, Any], run: Callable[..., Any]) -> Any:
        """Create a batch in the ledger of its tenants; if none of them exists, in the one with most room."""
        items = {kind: list(given[kind]) for kind in ("tenants", "scripts", "schedules")}
        named = {
            str(each["tenant_id"])
            for some in items.values()
            for each in some
            if isinstance(each, dict) and "tenant_id" in each
        }
        ledgers = set(self._members) if PLATFORM in named else set()
        new = []
        for tenant_id in sorted(named - {PLATFORM}):
            self.where(tenant_id, new=True)
            place = self._read(directory.find, tenant_id)
            if place is None:
                new.append(tenant_id)
            else:
                ledgers.add(place.ledger)
        if len(ledgers) > 1:
            raise InputError("ledger_ambiguous.batch", ledgers=sorted(ledgers))
        name = next(iter(ledgers), None) or self._roomiest()
        with self._entered(new, name):
            # Another process may have entered some of them meanwhile.
            ledgers = self._read(directory.ledgers_of, new) | {name}
            if len(ledgers) > 1:
                raise InputError("ledger_ambiguous.batch", ledgers=sorted(ledgers))
            return run(self._members[name], **items)

    def _roomiest(self) -> str:
        """Return the name of the ledger with most room for tenants; raises Conflict (ledgers_full)."""
        counts = self._counts()
        left = {
            each.name: (
                float("inf") if each.named.room is None else each.named.room - counts[each.name],
                -counts[each.name],
            )
            for each in self._members.values()
        }
        for name in sorted(left, key=lambda each: left[each], reverse=True):
            if left[name][0] > 0 and _problem(self._members[name]) is None:
                return name
        raise Conflict("ledgers_full")

    def _counts(self) -> Any:
        """Return the number of tenants by ledger, read again after COUNTED_S."""
        if monotonic() > self._counted[0] + COUNTED_S:
            self._counted = monotonic(), self._read(directory.counts)
        return self._counted[1]

    def _unlisted(self) -> list[str]:
        """Return the ledgers with tenants that are not in the file; none while the directory cannot be read."""
        with suppress(Unavailable):
            return sorted(name for name, number in self._counts().items() if number and name not in self._members)
        return []

    def _delete(self, tenant_id: str) -> None:
        """Delete a tenant in its ledger and in the directory, which must be within reach."""
        self._read(directory.find, tenant_id)
        self.where(tenant_id).run(lambda engine: engine.tenants.delete(tenant_id))
        self._write(directory.drop, tenant_id)

    def _move(self, tenant_id: str, ledger: str) -> TenantPlace:
        """Move a tenant to another ledger, see :func:`~lodger.engine.features.ledgers.moving.move`."""
        self._counted = float("-inf"), self._counted[1]
        return moving.move(self, tenant_id, ledger)

    def _list(self) -> list[LedgerState]:
        """Return the state of each ledger."""
        counts: Counter[str] | None = None
        unfinished: list[TenantPlace] = []
        with suppress(Unavailable):
            counts, unfinished = self._read(directory.counts), self._read(directory.moving)
        return [
            LedgerState(
                each.name, mask_password(each.named.url), str(getattr(_problem(each), "why", "")) or None,
                None if counts is None else counts[each.name], each.named.room, _nodes(each),
                tuple(place.tenant for place in unfinished if each.name in (place.ledger, place.target, place.source)),
            )
            for each in self._members.values()
        ] + [LedgerState(name, "", UNLISTED, None, None, (), ()) for name in self._unlisted()]  # fmt: skip


def _look(engine: Engine, look: Callable[..., T], *args: Any) -> T:
    """Run a query in a ledger."""
    with engine.context.database.read() as connection:
        return look(connection, *args)


def _is_absent(named: NamedLedger) -> bool:
    """Whether a ledger is a file of SQLite that does not exist."""
    file = named.url.removeprefix("sqlite:///")
    return "://" not in file and not Path(file).exists()


def _identity(engine: Engine) -> str:
    """Return the identity of a ledger, which a copy of its database shares."""
    return _look(engine, partial(ledger_identity.read, engine.context)).ledger


def _change(engine: Engine, change: Callable[..., T], *args: Any) -> T:
    """Run a change in a transaction of a ledger."""
    with engine.context.database.write() as connection:
        return change(connection, *args)


def _answered(engine: Engine) -> None:
    """Return when the ledger has answered the question for its own tenant.

    Raises:
        Unavailable: errors of its database.
    """
    _look(engine, tenants.get, PLATFORM)


def _lives_in(tenant_id: str, engine: Engine) -> Engine | None:
    """Return the engine if a tenant lives in its ledger; a copy of one that moves does not."""
    with suppress(NotFound):
        if _look(engine, tenants.get, tenant_id).state != tenants.MOVING:
            return engine
    return None


def _problem(member: Member) -> Unavailable | None:
    """Return the error of a ledger that cannot be reached, or None."""
    try:
        member.look(_answered)
    except Unavailable as error:
        return error
    return None


def _nodes(member: Member) -> tuple[str, ...]:
    """Return the names of a ledger's living nodes; none if it cannot be reached."""
    try:
        return tuple(each.name for each in member.look(lambda engine: engine.nodes.list()) if each.state == "alive")
    except Unavailable:
        return ()
