"""The synchronous Engine, for Flask, Django and scripts, and the core that the async facade wraps."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lodger.engine.core.clock import Clock, SystemClock
from lodger.engine.core.events import Event, EventBus, LedgerWritten
from lodger.engine.core.handlers import DEADLINE_S, F, Handlers
from lodger.engine.core.ids import Identities
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.core.settings import Settings
from lodger.engine.data.changes.external_writes import record_changed, record_sessions
from lodger.engine.data.changes.prepare import prepare
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.service import lock_context
from lodger.engine.service.checks.dry_runs import DryRuns
from lodger.engine.service.checks.module_check import ModuleCheck
from lodger.engine.service.checks.source_check import SourceCheck
from lodger.engine.service.checks.trial_budget import TrialBudget
from lodger.engine.service.hooks import Hook, Hooks
from lodger.engine.service.nouns.actions import Actions
from lodger.engine.service.nouns.audit import Audit
from lodger.engine.service.nouns.collections import Collections
from lodger.engine.service.nouns.grants import Grants
from lodger.engine.service.nouns.platform import Locks, Metrics, Nodes
from lodger.engine.service.nouns.schedules import Schedules
from lodger.engine.service.nouns.scripts import Scripts
from lodger.engine.service.nouns.secrets import Secrets
from lodger.engine.service.nouns.tenants import Tenants
from lodger.engine.service.nouns.tokens import Tokens
from lodger.engine.service.nouns.webhooks import Webhooks
from lodger.engine.service.operations.declaration import Sync
from lodger.engine.service.operations.table import Nouns
from lodger.engine.store.connection.database import Database
from lodger.engine.store.content_cache import Sources
from lodger.engine.store.context import StoreContext
from lodger.engine.store.migrations.revision import Progress, silent
from lodger.engine.store.revision_cache import Compile, RevisionCache
from lodger.engine.store.schedules import adoption
from lodger.engine.vault.keyring import Keyring
from lodger.engine.vault.vault import Vault

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy import URL, Column, Connection, Table
    from sqlalchemy.orm import Session

    from lodger.engine.core.execution import Executor
    from lodger.engine.node.host import Host
    from lodger.engine.node.node import Node
    from lodger.engine.store.platform.locks import Lock
    from lodger.engine.store.records import Action
    from lodger.sandbox.job import LogLine


class Engine(Nouns[Sync]):
    """An open ledger and its verbs. Make one with :meth:`open`; it may be used from several threads."""

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        self.events = EventBus()
        self.tenants = Tenants(context, self.changed)
        self.grants = Grants(context, self.changed)
        self.collections = Collections(context, self.changed)
        self.vault = Vault(Keyring(context.settings.secret_keys))
        self.secrets = Secrets(context, self.changed, self.vault)
        self.webhooks = Webhooks(context, self.changed, self.vault)
        self.scripts = Scripts(
            context,
            self.changed,
            ModuleCheck(context.settings, TrialBudget(context)),
            SourceCheck(context.settings, TrialBudget(context)),
            DryRuns(self),
        )
        self.schedules = Schedules(context, self.changed)
        self.actions = Actions(context, self.changed)
        #: Set by :meth:`own_people`.
        self.is_own: Callable[[str, str], bool] | None = None
        self.tokens = Tokens(context, self.changed)
        self.audit = Audit(context, self.changed)
        self.nodes = Nodes(context, self.changed)
        self.locks = Locks(context, self.changed)
        #: What nodes of this process count; ``metrics`` gives it with the ledger's numbers.
        self.process_metrics = ProcessMetrics()
        self.metrics = Metrics(context, self.changed, self.process_metrics)
        #: Set by :meth:`on`.
        self.hooks = Hooks(self.events, self.process_metrics, context.settings.missed_after_s)
        #: Python functions that actions of kind host call; nodes of this process carry a label for each.
        self.handlers = Handlers()
        #: What scripts see as ``db.NAME``, beside collections; a node's executor is given it.
        self.datasets = Datasets(context.clock.elapsed_s)

    @classmethod
    def open(
        cls,
        url_or_path: str,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        compile_schedule: Compile | None = None,
        ids: Identities | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Open a ledger, making or upgrading it.

        Args:
            url_or_path: a path of a SQLite file, or ``postgresql://user@host/name`` (extra ``postgres``).
            compile_schedule: replaces :func:`lodger.engine.recurrence.compile.compile_schedule`.
            ids: replaces the source of ids; simulations do.
            progress: told about each migration.

        Raises:
            Unavailable: the file is no database, may not be written, is of a later Lodger.
        """
        injected, clock, settings = clock is not None, clock or SystemClock(), settings or Settings()
        database = Database(
            str(url_or_path), synchronous=settings.sqlite_synchronous, progress=progress, patience_s=settings.database_patience_s
        )  # fmt: skip
        ids = ids or Identities(clock.now_us)
        of_server = database.driver.has_clock and not injected
        return cls(
            StoreContext(
                database, clock, ids, RevisionCache(settings, compile_schedule), Sources(settings), settings, of_server
            )
        )

    def close(self) -> None:
        """Call the hooks that wait, let go of the databases; safe to call twice."""
        self.hooks.close()
        self.scripts.proof.close()
        self.datasets.close()
        self.context.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def lock(
        self,
        name: str,
        lease: float | str | timedelta = "1m",
        *,
        slot: datetime | None = None,
        holder: str | None = None,
    ) -> "AbstractContextManager[Lock | None]":
        """Hold a named lock for a block, renewed while it lasts: ``with engine.lock("rebuild") as held: if held: …``.

        What it gives is None when another process, or another thread, has it; arguments as ``locks.take``.
        """
        return lock_context.held(self.locks, name, lease, slot, holder)

    def attach(self, source: "str | URL | sqlalchemy.Engine") -> ForeignDatabase:
        """Return a database of the platform's other than the ledger's, for :meth:`expose`; its tables may be read.

        After :meth:`prepare` they may be written too.

        Args:
            source: an address, or an engine of the platform's own, which stays the platform's to close.

        Raises:
            InputError: database_url.
        """
        return self.datasets.attach(source)

    def expose(
        self, source: "Table | type[Any]", *, tenant_column: "str | Column[Any]", **options: Any
    ) -> TableDataset:
        """Let scripts read, and where allowed write, a table of the platform's as ``db.NAME``.

        Arguments are those of :func:`lodger.engine.data.sets.expose.expose`: read, write, name, insert, delete, database, …

        Raises:
            InputError: the table cannot be exposed so; the reason is what one tenant could learn of another by it.
            Conflict: the name is taken.
        """
        return self.datasets.expose(source, tenant_column=tenant_column, **options)

    def own_people(self, is_own: Callable[[str, str], bool]) -> None:
        """Let the platform say whom a tenant's scripts may mail without further grant, in place of ``grants.people``.

        Args:
            is_own: given a tenant's id and an address, whether that is one of the tenant's own people; called in threads of
                the node that is started next.
        """
        self.is_own = is_own

    def record_changed(
        self,
        connection: "Connection | Session",
        tenant_id: str,
        what: "str | Table | type[Any]",
        keys: Any,  # noqa: ANN401 - whatever the table's key is
        kind: str = "update",
    ) -> None:
        """Report changes that the platform makes itself: in its own transaction, read by scripts when that is committed.

        Args:
            connection: the caller's, with the transaction that makes the change; of the database that the set is in. From
                asyncio: ``await connection.run_sync(engine.record_changed, tenant, "orders", id)``.
            tenant_id: whose row, as Lodger names the tenant.
            what: the set, by its name, its table or its mapped class. ``"schedules"`` (where no set of yours has that name) are
                Lodger's own: the newest revision that your SQL has inserted is checked and adopted, and the clock armed anew; see
                :mod:`lodger.engine.store.schedules.adoption`. The connection is the ledger's then.
            keys: the key of the row, or of several.
            kind: ``insert``, ``update`` or ``delete``.

        Raises:
            InputError: set_unknown, change_kind, feed_off, tenant_unknown, key_missing; of schedules revision_unchanged,
                revision_unreadable, and what an edit refuses.
        """
        if isinstance(what, str) and what in adoption.NAMES and all(rows.name != what for rows in self.datasets):
            adoption.adopt(self.context, connection, tenant_id, keys, self.context.clock.now_us())
            return
        record_changed(self.datasets, self.context.clock, connection, what, tenant_id, keys, kind)

    def record_sessions(self, sessions: Any) -> Callable[[], None]:  # noqa: ANN401 - what SQLAlchemy listens to
        """Report whatever SQLAlchemy sessions flush of exposed tables; call what is returned to stop.

        Statements that name no objects (``session.execute(update(…))``) flush nothing: report them, or let triggers see them.

        Args:
            sessions: a ``Session``, a ``sessionmaker``, or the class ``Session`` for all of them.
        """
        return record_sessions(self.datasets, self.context.clock, sessions)

    def prepare(self) -> None:
        """Make what Lodger wants in the databases of what is exposed, as a user who may; call it again after changes.

        In a database other than the ledger's, a table of receipts: without it everything there is read-only. On PostgreSQL,
        everywhere, role ``lodger_script`` and a view of each exposed table that shows one tenant: without them one wall less
        stands between tenants, and the engine says so.

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

        It is a script of the platform's from then on: the platform binds it by its name, a tenant (when it is ``offered``) with
        @ before it. Only nodes of processes that have registered it run it. A synchronous function is called in a thread, an
        asynchronous one on the node's event loop, which it must not block.

        Args:
            params: its typed params, see :mod:`lodger.engine.core.params`; None for any JSON value.
            offered: every tenant may bind it, not the platform alone.
            deadline_s: longest time that it may take.

        Raises:
            InputError: handler_invalid, label_invalid, fields_invalid.
            Conflict: handler_taken.
        """

        def register(function: F) -> F:
            made = self.handlers.make(name, function, params, deadline_s, offered=offered)
            self.scripts.put_handler(made)
            self.handlers.add(made)
            self.changed()
            return function

        return register

    def live(self, tenant_id: str, action_id: str | None = None) -> "Iterator[Action | LogLine]":
        """Yield each of a tenant's actions as it is created or changes; or one action with its log lines, until it has ended.

        Lines of an attempt that runs are written twice a second, by whichever node runs it. What any process changes is seen within
        half a second.

        Raises:
            NotFound: tenant_unknown, action_unknown.
        """
        from lodger.engine.service.action_stream import live

        return live(self, tenant_id, action_id)

    def on_event(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Hear what nodes of this process do; call what is returned to stop. The listener must be quick."""
        return self.events.subscribe(Event, listener)

    def on(self, name: str, hook: Hook | None = None, *, tenant_id: str | None = None) -> Any:  # noqa: ANN401 - a decorator, or what takes the hook off
        """Set a hook: a function that is called with an :class:`lodger.engine.core.events.Event`, in a thread of its own.

        ``engine.on("failed", tell)`` gives a callable that takes it off; ``@engine.on("failed")`` stands before a function.

        Args:
            name: one of :data:`lodger.engine.service.hooks.HOOKS`: started, finished, failed, late, budget.
            hook: None to decorate.
            tenant_id: only what happens to this tenant.

        Raises:
            InputError: hook_unknown.
        """
        if hook is not None:
            return self.hooks.add(name, hook, tenant_id)

        def decorate(function: Hook) -> Hook:
            self.hooks.add(name, function, tenant_id)
            return function

        return decorate

    def changed(self) -> None:
        """Let the nodes of this process look for work now."""
        self.events.publish(LedgerWritten())

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Have a callable called after every write of this process, from any thread; call the answer to stop."""
        return self.events.subscribe(LedgerWritten, lambda _event: watcher())

    @property
    def host(self) -> "Host":
        """What nodes and dry runs of this engine are given."""
        from lodger.engine.node.host import Host

        return Host(
            self.context, self.datasets, self.vault, self.handlers, self.events, self.process_metrics, self.is_own
        )

    @contextmanager
    def node(
        self,
        executor: "Executor | None" = None,
        name: str | None = None,
        *,
        deliver: bool = True,
    ) -> Iterator["Node"]:
        """Run a node in a thread of its own for as long as the block lasts; see :class:`lodger.engine.node.node.Node`."""
        import asyncio

        from lodger.engine.node.node import Node

        made = Node(self.host, executor, name, deliver=deliver)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="lodger-node", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(made.start(), loop).result()
            yield made
        finally:
            asyncio.run_coroutine_threadsafe(made.stop(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


__all__ = ["Engine"]
