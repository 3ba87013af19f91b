"""The synchronous engine with the main line's nouns; :mod:`lodger.engine.sync` adds the wings."""

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, overload

from sqlalchemy.exc import DBAPIError

from lodger.engine.core import functions, ledger_file
from lodger.engine.core.clock import Clock, SteadyClock, SystemClock
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.events import AnyEvent, Event, EventBus, LedgerWritten
from lodger.engine.core.handlers import DEADLINE_S, F, Handlers
from lodger.engine.core.ids import Identities
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.core.settings import Settings
from lodger.engine.core.version import VERSION
from lodger.engine.data.changes.external_writes import record_changed, record_sessions
from lodger.engine.data.changes.prepare import prepare
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.expose import ExposeOptions, reflected, table_name
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.data.sets.guard import filtered, is_unused
from lodger.engine.service.hooks import H, Hook, HookName, Hooks
from lodger.engine.service.operations.declaration import Sync
from lodger.engine.service.operations.table import Nouns, OperationTable, table_of
from lodger.engine.store.connection.database import Database
from lodger.engine.store.content_cache import ContentCache
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import patience
from lodger.engine.store.migrations import revision
from lodger.engine.store.platform import node_rows
from lodger.engine.store.platform.node_rows import note_set
from lodger.engine.store.revision_cache import RevisionCache
from lodger.engine.vault.keyring import Keyring
from lodger.engine.vault.vault import Vault

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy import URL, Column, Table

    from lodger.engine.effects.finished import Executor
    from lodger.engine.node.node import Node
    from lodger.engine.node.node_environment import NodeEnvironment
    from lodger.engine.store.records import Action
    from lodger.sandbox.job import LogLine


#: Opens the ledgers of the setting ``ledgers`` as one system; a wing appends it.
SYSTEMS: "list[Callable[[type[Engine], Settings, Clock | None], Engine]]" = []
T = TypeVar("T")


class Engine(Nouns[Sync]):
    """An open ledger and its verbs. Create one with :meth:`open`; it is thread-safe."""

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        self.events = EventBus()
        self.vault = Vault(Keyring(context.settings.secret_keys))
        #: Metrics of the nodes of this process; ``metrics`` returns them with those of the ledger.
        self.process_metrics = ProcessMetrics()
        self.process_metrics.before_read.append(self._measure)
        self._counted = 0
        self.table: OperationTable = table_of(type(self))
        for name, noun in self.table.nouns.items():
            setattr(self, name, noun(self))
        #: Set by :meth:`own_people`.
        self.is_own: Callable[[str, str], bool] | None = None
        #: Set by :meth:`on`.
        self.hooks = Hooks(self.events, self.process_metrics, context.settings.missed_after_s)
        #: Python functions that actions of kind host call; nodes of this process carry a label for each.
        self.handlers = Handlers()
        #: Sets that scripts access as ``db.NAME``, besides collections; passed to a node's executor.
        self.datasets = Datasets()
        #: What the platform's file says about surfaces, by section.
        self.of_surfaces: dict[str, Any] = {}

    @classmethod
    def open(
        cls,
        url_or_path: str,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        ids: Identities | None = None,
        upgrade: bool = False,
        deferred: bool = False,
    ) -> Self:
        """Open a ledger, creating it if it does not exist.

        Args:
            url_or_path: path of a SQLite file, or ``postgresql://user@host/name`` (extra ``postgres``).
            ids: replaces the source of ids, for simulations.
            upgrade: bring a ledger of an earlier Lodger to this version's schema, as `lodger db upgrade` does.
            deferred: return although the ledger may be out of reach: it is checked at its first use, and not created.

        Raises:
            Unavailable: the file is not a database, is not writable, or its schema is of an earlier (database_behind) or
                later Lodger (database_newer).
        """
        injected, settings = clock is not None, settings or Settings()
        clock = clock or SteadyClock(SystemClock(), settings.lease_s)
        database = Database(
            str(url_or_path), synchronous=settings.sqlite_synchronous,
            patience_s=patience.PATIENCE_S, upgrade=upgrade, replica=settings.read_database,
            name=ledger_file.name_of(settings.ledgers, str(url_or_path)), deferred=deferred,
        )  # fmt: skip
        ids = ids or Identities(clock.now_us)
        of_server = database.driver.is_remote and not injected
        return cls(
            StoreContext(
                database,
                clock,
                ids,
                RevisionCache(settings),
                ContentCache(settings),
                settings,
                of_server,
            )
        )

    @classmethod
    def open_all(cls, settings: Settings, *, clock: Clock | None = None) -> Self:
        """Open every ledger of the setting ``ledgers`` as one system; without it, the ledger of the setting ``database``."""
        if settings.ledgers is not None and SYSTEMS:
            return cast("Self", SYSTEMS[0](cls, settings, clock))
        return cls.open(settings.database, clock=clock, settings=settings)

    def at(self, tenant_id: str | None) -> "Engine":
        """Return the engine of the ledger that a tenant lives in; for None, of the first ledger."""
        return self

    def snapshot(self, tenant_id: str | None) -> "AbstractContextManager[None]":
        """Let all reads of this context about a tenant, or about all of them, be of one snapshot."""
        return self.context.database.snapshot()

    def ask_each(self, look: "Callable[[Engine], T | None]", *, tenant_id: str | None = None) -> T | None:
        """Return the result of a function that is asked in one ledger after the other; None if it finds nothing in any.

        Args:
            tenant_id: ask the ledger of this tenant alone.

        Raises:
            Unavailable: ledger_unreachable, if it found nothing in the others.
        """
        return look(self)

    def knows(self, engine: "Engine", *, copied: bool) -> bool:
        """Whether the ledger of an engine may say who an operator is, by a token of its own or by a copy of the first ledger's."""
        return not copied

    def parts(self) -> "list[tuple[str, str | None]]":
        """Return the name of each ledger of a system of several, with the reason why it cannot be reached, or None."""
        return []

    def prepare_each(self, function: "Callable[[Engine], object]") -> None:
        """Call a function with the engine of each ledger, of those that cannot be reached now as soon as they can."""
        function(self)

    def load_wings(self, part: str) -> None:
        """Import the modules that the wings of this engine have for a surface: none on the main line."""

    def close(self) -> None:
        """Call the waiting hooks and release the databases; safe to call twice."""
        self.hooks.close()
        self.scripts.source_check.close()
        self.datasets.close()
        self.context.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def attach(self, source: "str | URL | sqlalchemy.Engine") -> ForeignDatabase:
        """Return a database of the platform other than the ledger's, for :meth:`expose`; its tables may be read.

        After :meth:`prepare` they may be written too.

        Args:
            source: an address, or an engine of the platform, which remains the platform's to close.

        Raises:
            InputError: database_url.
        """
        return self.datasets.attach(source)

    def expose(
        self,
        source: "Table | type[Any] | str",
        *,
        tenant_column: "str | Column[Any]",
        database: "ForeignDatabase | sqlalchemy.Engine | URL | str | None" = None,
        **options: Unpack[ExposeOptions],
    ) -> TableDataset:
        """Let scripts read, and where allowed write, a table of the platform as ``db.NAME``.

        Arguments are those of :func:`lodger.engine.data.sets.expose.expose`: read, write, name, insert, delete,
        database, …

        Args:
            source: also the name of a table, or a model of Django: its columns are read from the database.

        Raises:
            InputError: the table would reveal data of one tenant to another.
            Conflict: the name is taken.
        """
        if (name := table_name(source)) is not None:
            place = database if database is None or isinstance(database, ForeignDatabase) else self.attach(database)
            if place is not None and not place.driver.has_platform(place.engine.url):
                raise InputError("expose_source.file", file=place.engine.url.database)
            with (place or self.context.database).read() as connection:
                source = reflected(connection, self.datasets.metadata_of(place), name)
        made = self.datasets.expose(source, tenant_column=tenant_column, database=database, **options)
        note_set(self.context.database, made.name, self.context.clock.now_us())
        return made

    def function(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        returns: Mapping[str, Any] | None = None,
        trial: bool = False,
        timeout_s: float = functions.TIMEOUT_S,
    ) -> Callable[[functions.F], functions.F]:
        """Register a Python function that scripts can call: ``@engine.function("crm.score", params={"id": {"type": "integer"}})``.

        It gets a :class:`~lodger.engine.core.functions.FunctionCall` and returns JSON; ``FunctionRefused`` tells the script
        something. Runs need the grant ``functions:NAME``. A synchronous function is called in a thread, an asynchronous one on the
        node's event loop, which it must not block.

        Args:
            params: its typed params in the order of a script's arguments, see :mod:`lodger.engine.core.params`.
            returns: the type of its result, as a param; None for any JSON value.
            trial: whether trials call it too, because it changes nothing; others show the call and get null.
            timeout_s: longest time of a call.

        Raises:
            InputError: function_invalid, fields_invalid.
            Conflict: function_taken.
        """

        def register(function: functions.F) -> functions.F:
            """Register a Python function that scripts may call."""
            self.put_function(
                functions.declare(name, function, params=params, returns=returns, trial=trial, timeout_s=timeout_s)
            )
            return function

        return register

    def put_function(self, function: functions.PlatformFunction) -> None:
        """Let scripts call a declared function.

        Raises:
            Conflict: function_taken.
        """
        self.datasets.put_function(function)
        note_set(self.context.database, function.name, self.context.clock.now_us())

    def own_people(self, is_own: Callable[[str, str], bool]) -> None:
        """Let the platform decide which addresses a tenant's scripts may mail without further grants, instead of ``grants.people``.

        Args:
            is_own: called with a tenant's id and an address, returns whether it belongs to the tenant's own people;
                called in threads of the next node that is started.
        """
        self.is_own = is_own

    def record_changed(
        self,
        connection: Any,
        tenant_id: str,
        what: "str | Table | type[Any]",
        keys: Any,
        kind: str = "update",
    ) -> None:
        """Report changes that the platform makes itself, in its own transaction; scripts see them after its commit.

        Args:
            connection: connection with the transaction of the change, to the database of the set: of SQLAlchemy (also a session),
                Django, psycopg or sqlite3. From asyncio: ``await
                connection.run_sync(engine.record_changed, tenant, "orders", id)``.
            tenant_id: tenant of the row, by Lodger's id.
            what: the set, by its name, its table, its mapped class or its model of Django.
            keys: the key of the row, or of several.
            kind: ``insert``, ``update`` or ``delete``.

        Raises:
            InputError: set_unknown, change_kind, feed_off, tenant_unknown, key_missing.
        """
        record_changed(
            self.datasets, self.context.clock, self.context.database.engine, connection, what, tenant_id, keys, kind
        )

    def record_sessions(self, sessions: Any) -> Callable[[], None]:
        """Report the changes of exposed tables that SQLAlchemy sessions flush; call the result to stop.

        Statements without objects (``session.execute(update(…))``) flush nothing: report them, or use triggers.

        Args:
            sessions: a ``Session``, a ``sessionmaker``, the class ``Session`` for all of them, an ``AsyncSession``, or an
                ``async_sessionmaker``, for the sessions that it makes from now on.
        """
        return record_sessions(self.datasets, self.context.clock, sessions)

    def prepare(self) -> None:
        """Create Lodger's objects in the databases with exposed tables, as a privileged user; call it again after changes.

        In a database other than the ledger's, this is a table of receipts: without it the database is read-only for
        scripts. On PostgreSQL it is also role ``lodger_script_USER`` and a view of each exposed table that shows one tenant:
        without them one wall between tenants is missing, and the engine reports it.

        Raises:
            Unavailable: database_refused.
        """
        prepare(self.datasets, self.context.database)

    def handler(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        offered: bool = False,
        deadline_s: float = DEADLINE_S,
    ) -> Callable[[F], F]:
        """Register a Python function that schedules can call: ``@engine.handler("rebuild-index")``.

        It becomes a script of the platform: the platform binds it by its name, a tenant (if it is ``offered``) with @
        before the name. Only nodes in processes that have registered it run it. A synchronous function is called in a
        thread, an asynchronous one on the node's event loop, which it must not block.

        Args:
            params: its typed params, see :mod:`lodger.engine.core.params`; None for any JSON value.
            offered: whether every tenant may bind it, not only the platform.
            deadline_s: maximum duration of a call.

        Raises:
            InputError: handler_invalid, label_invalid, fields_invalid.
            Conflict: handler_taken.
        """

        def register(function: F) -> F:
            """Register a Python function as a handler that schedules can run."""
            made = self.handlers.make(name, function, params, deadline_s, offered=offered)
            self.scripts.put_handler(made)
            self.handlers.add(made)
            self.changed()
            return function

        return register

    def live(self, tenant_id: str, action_id: str | None = None) -> "Iterator[Action | LogLine]":
        """Yield each of a tenant's actions when it is created or changes; or one action with its log lines, until it has ended.

        Log lines of a running attempt are written twice a second by its node. Changes by any process are seen within
        half a second.

        Raises:
            NotFound: tenant_unknown, action_unknown.
        """
        from lodger.engine.service.live_changes import live

        return live(self, tenant_id, action_id)

    def on_event(self, listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Subscribe to the events of nodes in this process; call the result to unsubscribe. The listener must return quickly."""
        return self.events.subscribe(Event, cast("Any", listener))

    @overload
    def on(self, name: HookName, hook: Hook, *, tenant_id: str | None = None) -> Callable[[], None]: ...
    @overload
    def on(self, name: HookName, hook: None = None, *, tenant_id: str | None = None) -> Callable[[H], H]: ...
    def on(self, name: HookName, hook: Hook | None = None, *, tenant_id: str | None = None) -> Any:
        """Set a hook: a function that is called with an :class:`lodger.engine.core.events.Event`, in the hooks' thread.

        ``engine.on("failed", report)`` returns a function that removes the hook; ``@engine.on("failed")`` is a
        decorator.

        Args:
            name: one of :data:`lodger.engine.service.hooks.HOOKS`: started, finished, failed, late, slowed, shadow, budget.
            hook: None to use it as a decorator.
            tenant_id: only events of this tenant.

        Raises:
            InputError: hook_unknown.
        """
        if hook is not None:
            return self.hooks.add(name, hook, tenant_id)

        def decorate(function: Hook) -> Hook:
            """Register a function that is called with events."""
            self.hooks.add(name, function, tenant_id)
            return function

        return decorate

    def problems(self) -> list[str]:
        """Return the codes of problems: reasons why the ledger cannot be used, a wrong time, databases whose row security is in the
        way or unused, or that do not answer.
        """
        return self.unready() or self._row_security_problems()

    def unready(self) -> list[str]:
        """Return the reasons why the ledger can be neither read nor written, or time is wrong; none if all is well."""
        try:
            database = self.context.database
            with database.read() as connection:
                revision.current(connection)
            if database.refused is not None:  # since the last write: reading does not show whether it is over
                with database.write() as connection:
                    node_rows.probe(connection)
        except Unavailable as error:
            return [error.code]  # no more: health checks need no token
        clock = self.context.clock
        return ["clock_wrong"] if isinstance(clock, SteadyClock) and clock.stepped_us else []

    def _row_security_problems(self) -> list[str]:
        """Return the codes of databases whose row security hides rows or is not used, or that do not answer."""
        found: set[str] = set()
        for place in (None, *self.datasets.databases):
            try:
                with self.context.database.read() if place is None else place.read() as connection:
                    if filtered(connection, self.datasets.tables(place)):
                        found.add("row_security_hides")
                    if is_unused(connection):
                        found.add("row_security_unused")
            except (DBAPIError, Unavailable):
                found.add("database_unreachable")
        return sorted(found)

    def _measure(self) -> None:
        """Set the gauges of this process, such as connections, when metrics are read."""
        meters, database = self.process_metrics, self.context.database
        meters.put("lodger_build_info", 1, VERSION, platform.python_version())
        for state, number in database.connections().items():
            meters.put("lodger_database_connections", number, state)
        transactions = database.transactions
        made, self._counted = transactions - self._counted, transactions
        meters.count("lodger_database_transactions_total", by=made)

    def changed(self) -> None:
        """Let the nodes of this process look for work now."""
        self.events.publish(LedgerWritten())

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every write of this process, from any thread; call the result to stop."""
        return self.events.subscribe(LedgerWritten, lambda _event: watcher())

    @property
    def host(self) -> "NodeEnvironment":
        """The host that nodes and trials of this engine run on."""
        from lodger.engine.node.node_environment import NodeEnvironment

        return NodeEnvironment(
            self.context, self.datasets, self.vault, self.handlers, self.events, self.process_metrics, self.is_own,
        )  # fmt: skip

    @contextmanager
    def node(
        self,
        executor: "Executor | None" = None,
        name: str | None = None,
        *,
        deliver: bool = True,
    ) -> Iterator["Node"]:
        """Run a node in its own thread during the block; see :class:`lodger.engine.node.node.Node`."""
        from lodger.engine.node.node import Node
        from lodger.sandbox.loop_thread import LoopThread

        made, thread = Node(self.host, executor, name, deliver=deliver), LoopThread("lodger-node")
        try:
            thread.run(made.start())
            yield made
        finally:
            thread.run(made.stop())
            thread.close()
