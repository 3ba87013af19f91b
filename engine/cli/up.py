"""``lodger up``: the service: a node, the API, or both in two processes, until stopped. Events are written as lines."""

import resource
import shlex
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lodger.engine.cli.place import chosen
from lodger.engine.cli.platform import Expose, File, preparation
from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import Database, is_for_program, say, write_json, write_result
from lodger.engine.web import dashboard_link

if TYPE_CHECKING:
    import asyncio
    from contextlib import AsyncExitStack

    from lodger.engine import Engine, sync
    from lodger.engine.core.errors import Unavailable
    from lodger.engine.core.events import Event
    from lodger.engine.node.node import Node

#: Open files of the service: workers of 64 cores, their requests and a thousand clients take less.
MAX_DESCRIPTORS = 65_536
ROLES = ("all", "node", "api")
#: First and longest wait before a database that cannot be reached yet is tried again, seconds.
BACKOFF_S, BACKOFF_MAX_S = 0.5, 5.0
#: How long it is tried.
START_PATIENCE_S = 30.0
#: Errors at the start that end without this process: for the schema it waits as long as that takes.
SCHEMA = frozenset({"database_behind", "database_newer"})
WAITED = SCHEMA | {"database_unreachable", "ledger_unreachable", "database_busy", "disk_full"}
#: Seconds that a thread of the API's process computes before another one may; Python's default is ten times as long.
SWITCH_S = 0.0005


def up(
    role: Annotated[
        str, typer.Option(help="Role of this process: node (runs actions), api (serves the HTTP API) or all (both).")
    ] = "all",
    expose: Expose = None,
    platform: File = None,
    name: Annotated[str | None, typer.Option(help="Name of the node.")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port of the HTTP API; 0: any free port. [env: LODGER_API_PORT]"),
    ] = None,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="Stop when standard input ends.")
    ] = False,
    db: Database = None,
) -> None:
    """Run the service until Ctrl-C or SIGTERM: run due actions in sandboxed workers, and serve the HTTP API."""
    if role not in ROLES:
        raise Usage("role_unknown.node", role=role, roles=ROLES)
    prepare = preparation(expose, platform)
    import asyncio

    from lodger.engine.core.settings import load
    from lodger.engine.core.telemetry import json_logs

    # The environment of a child names its ledger.
    database = None if with_parent else chosen(db, local="a service runs on the machine where it is started").database
    settings = load(database=database, api_port=port, platform=platform)
    json_logs.use(json_logs.JsonFormatter() if settings.log_format == "json" else json_logs.LineFormatter())
    if role != "node":
        _require_server()
    raise_descriptor_limit()
    serving = Serving(role, expose, prepare, name, settings, with_parent)
    asyncio.run(serving.run())


def _require_server() -> None:
    """Raise Usage (extra_missing) if the packages of the HTTP API are not installed."""
    from importlib.util import find_spec

    missing = [each for each in ("fastapi", "uvicorn") if find_spec(each) is None]
    if missing:
        raise Usage("extra_missing.server", names=missing)


@dataclass(eq=False)
class Serving:
    """One run of the service.

    Attributes:
        running: the node, once it has started.
        reported: code of the error that the service waits for and has reported.
    """

    role: str
    expose: str | None
    prepare: "Callable[[sync.Engine], Any] | None"
    name: str | None
    settings: Any
    with_parent: bool
    is_up: bool = False
    running: "Node | None" = None
    reported: str = ""

    async def run(self) -> None:
        """Serve until stopped. Waits for a database that cannot be reached yet, for :data:`START_PATIENCE_S`.

        Raises:
            Unavailable: the database did not answer in time, or cannot be used; keys_missing and other errors of the key file.
        """
        from lodger.engine.core.clock import SystemClock
        from lodger.engine.core.errors import Unavailable

        if self.settings.secret_keys is not None:
            from lodger.engine.vault.keyring import Keyring

            # Else the first secret that is needed would tell: after days, and a tenant.
            Keyring(self.settings.secret_keys).keys()
        clock, backoff_s = SystemClock(), BACKOFF_S
        end_s = clock.elapsed_s() + START_PATIENCE_S
        while True:
            try:
                return await self._serve()
            except Unavailable as error:
                # An upgrade in another process decides how long: the schema is too old or too new, or just being changed.
                left_s = None if error.code in SCHEMA else end_s - clock.elapsed_s()
                # What is up does not end because its database does: its services wait by themselves, each in its way.
                if self.is_up or error.code not in WAITED or (left_s is not None and left_s <= 0):
                    raise
                self._waits(error, left_s)
                await clock.sleep(backoff_s if left_s is None else min(backoff_s, left_s))
                backoff_s = min(backoff_s * 2, BACKOFF_MAX_S)

    def _waits(self, error: "Unavailable", left_s: float | None) -> None:
        """Report that the database does not answer yet, and for how many more seconds it is tried again; None: without end."""
        left = None if left_s is None else round(left_s, 3)
        write_result({"kind": "waiting", "code": error.code, "why": error.why, "left_s": left})
        if left_s is not None:
            say(f"{error.what} ({error.why}); retrying for {left_s:.0f} s")
        elif error.code != self.reported:
            say(f"{error.what} ({error.why}); waiting. To continue: {error.fix}")
        self.reported = error.code

    async def _serve(self) -> None:
        """Run the API and the node, as the role asks, until a signal comes."""
        import asyncio
        import signal
        from contextlib import AsyncExitStack

        from lodger.engine import Engine
        from lodger.engine.store.connection.database import mask_password

        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            if self.role == "api":
                opened = Engine.open_all(self.settings)
            else:
                opened = Engine.open(self.settings.database, settings=self.settings)
            engine = await stack.enter_async_context(opened)
            if engine.inner.context.database.created:
                say(f"the ledger is new and empty: {mask_password(self.settings.database)}")
            if self.prepare is not None:
                engine.inner.prepare_each(cast("Callable[[Any], object]", self.prepare))
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stopping.set)
                stack.callback(loop.remove_signal_handler, number)
            if self.with_parent:
                loop.add_reader(0, stopping.set)
                stack.callback(loop.remove_reader, 0)
            elif self.role != "node":
                self._first_token(engine.inner)
            if self.role == "api":
                await self._api(stack, engine)
            if self.role == "all":
                from lodger.engine.cli.child import Child

                child = Child(self.settings, self.expose, engine.inner.context.database.check_place)
                await child.start()
                stack.push_async_callback(child.stop)
            if not self.with_parent:  # else the port is the parent's
                self._serve_metrics(stack, engine)
            if self.role != "api":
                self.running = node = await self._node(stack, engine)
                say(f"node {node.name} runs on {mask_password(self.settings.database)}; Ctrl-C stops it")
            self.is_up = True
            await self._until(stopping, engine)
            if not self.with_parent:
                say("stopping; waiting for running attempts")

    async def _until(self, stopping: "asyncio.Event", engine: "Engine") -> None:
        """Wait for the request to stop; look once per lease whether the ledger is still the file that was opened.

        Raises:
            Unavailable: ledger_replaced.
        """
        import asyncio

        database = engine.inner.context.database
        while not stopping.is_set():
            await asyncio.to_thread(database.check_place)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self.settings.lease_s)

    async def _api(self, stack: "AsyncExitStack", engine: "Engine") -> None:
        """Start the HTTP API and stop it with the stack."""
        from lodger.engine.cli.child import ready
        from lodger.engine.server.server import Server

        # Parsing of large bodies in threads holds up the event loop's turns, of which each answer needs several.
        sys.setswitchinterval(SWITCH_S)
        server = Server(engine.inner)
        if not (has_dashboard := dashboard_link.add_dashboard(server.api)):
            say(dashboard_link.MISSING)
        await server.start()
        stack.push_async_callback(server.stop)
        ready()
        write_result({"kind": "listening", "url": server.url})
        say(f"the HTTP API is at {server.url}/api/v1")
        if has_dashboard:
            self._sign_in_link(engine.inner, server.url)

    def _sign_in_link(self, engine: "sync.Engine", url: str) -> None:
        """Write the dashboard's address, on a terminal with a link that signs in once."""
        from lodger.engine.core.errors import Unavailable

        link = None
        with suppress(Unavailable):  # of several ledgers the first one creates it
            link = dashboard_link.link(engine, url) if dashboard_link.shows_secrets() else None
        write_result({"kind": "dashboard", "url": f"{url}/"})
        if link is not None:
            say("link to the dashboard, which signs in once and expires after 15 minutes:", "", f"    {link}", "")
        else:
            say(
                f"the dashboard is at {url}/; to print a link that signs in once, run: {self._command('token link')} --url {url}"
            )

    def _serve_metrics(self, stack: "AsyncExitStack", engine: "Engine") -> None:
        """Serve this process's metrics for Prometheus, and its health, if the settings name a port."""
        from lodger.engine.core.metrics import serve

        if self.settings.metrics_port is None:
            return
        host = self.settings.metrics_host
        port, stop = serve(
            engine.inner.process_metrics, partial(self._problems, engine.inner), host, self.settings.metrics_port
        )
        stack.callback(stop)
        write_result({"kind": "metrics", "url": f"http://{host}:{port}/metrics"})
        say(f"metrics are at http://{host}:{port}/metrics")

    def _problems(self, engine: "sync.Engine") -> list[str]:
        """Return the reasons why this process is not ready."""
        own = self.running.problems() if self.running else ["the node has not started"]
        return engine.unready() + (own if self.role != "api" else [])

    async def _node(self, stack: "AsyncExitStack", engine: "Engine") -> "Node":
        """Start a node and stop it with the stack."""
        import asyncio

        from lodger.engine.output import event_lines

        loop = asyncio.get_running_loop()

        def write_event(event: "Event") -> None:
            """Print an event as one line."""
            # The reader of standard output may end, or its disk fill: the node goes on.
            with suppress(OSError):
                if is_for_program():
                    write_json(event_lines.body(event))
                else:
                    say(event_lines.line(event))

        def forward_event(event: "Event") -> None:
            """Hand an event that is printed to the event loop's thread."""
            if event.kind in event_lines.KINDS:
                loop.call_soon_threadsafe(write_event, event)

        stack.callback(engine.on_event(forward_event))
        return await stack.enter_async_context(engine.node(name=self.name))

    def _command(self, words: str) -> str:
        """Return the text of a command on the ledger of this service; an address with a password is left to LODGER_DATABASE."""
        from lodger.engine.store.drivers.addresses import mask_password

        database = self.settings.database
        if self.settings.ledgers is not None or database == "lodger.db" or mask_password(database) != database:
            return f"lodger {words}"
        return f"lodger {words} --db {shlex.quote(database)}"

    def _first_token(self, engine: "sync.Engine") -> None:
        """Create the first administrator's token, if there never was one, and print it if the output is a terminal, the only time;
        elsewhere print the command that does so."""
        from lodger.engine.core.access.audit_context import audit_as
        from lodger.engine.core.errors import Unavailable
        from lodger.engine.sync import Engine

        create, is_one = self._command("token first"), self.settings.ledgers is None
        try:
            # The platform's tokens are in the first ledger, whatever the node's is.
            with nullcontext(engine) if is_one or self.role == "api" else Engine.open_all(self.settings) as system:
                if system.tokens.any_administrator():
                    return
                write_result({"kind": "token_missing", "fix": create})
                if is_for_program() or not dashboard_link.shows_secrets():
                    say(f"there is no administrator's token yet; to create it, run: {create}")
                    return
                with audit_as(via="cli"):
                    made = system.tokens.first("first administrator")
                if made is not None:
                    say("token of the first administrator (shown only once):", "", f"    {made.text}", "")
        except Unavailable as error:
            if is_one:
                raise
            say(f"{error.what} ({error.why}); to see whether there is an administrator's token: {create}")


def raise_descriptor_limit() -> None:
    """Raise this process's limit of open files to :data:`MAX_DESCRIPTORS`, or as far as the host allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MAX_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
