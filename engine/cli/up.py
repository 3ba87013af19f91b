"""``lodger up``: the service. One node on one ledger, until it is told to stop; what happens is written as lines."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.cli.answer import AsJson, Database, say, write_json
from lodger.engine.cli.failure import Usage

if TYPE_CHECKING:
    from lodger.engine import sync
    from lodger.engine.events import Event

#: Kinds of events worth a line; a tick that found nothing is not.
TOLD = {"skipped", "finished", "lost", "rescued", "node_lost", "lease_lost", "retimed", "fault"}


def up(
    role: Annotated[str, typer.Option(help="What this process does; this version has node.")] = "node",
    expose: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Called with the (synchronous) engine before it starts: expose tables there.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The node's name, for people.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Run a node: what is due runs in locked workers until Ctrl-C or SIGTERM."""
    if role != "node":
        raise Usage("role_unknown", f"there is no role {role!r} here", fix="--role node")
    prepare = named(expose) if expose else None
    import asyncio

    asyncio.run(_serve(db, prepare, name, as_json=as_json))


def named(place: str) -> "Callable[[sync.Engine], Any]":
    """Find a function by ``module:function``; the current folder is looked through first.

    Raises:
        Usage: there is none.
    """
    module, _, function = place.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise Usage("expose_unknown", f"{place!r} is no function: {error}", fix="--expose shop.tables:expose") from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise Usage("expose_unknown", f"{place!r} is no function", fix="--expose shop.tables:expose")
    return found  # type: ignore[no-any-return]  # what it returns is not looked at


async def _serve(
    place: str | None, prepare: "Callable[[sync.Engine], Any] | None", name: str | None, *, as_json: bool
) -> None:
    import asyncio
    import signal
    from contextlib import AsyncExitStack, suppress

    from lodger.engine.facade import Engine
    from lodger.engine.ledger.database import shown
    from lodger.engine.node.mailer import Mailer, MailServer
    from lodger.engine.settings_table import load

    settings = load(database=place)
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine.open(settings.database, settings=settings))
        if prepare is not None:
            prepare(engine.inner)
        write = _as_json if as_json else _as_line

        def line(event: "Event") -> None:
            # Who reads the lines may go away, or the disk behind them fill: the slots go on.
            with suppress(OSError):
                write(event)

        def hear(event: "Event") -> None:
            loop.call_soon_threadsafe(line, event)

        stack.callback(engine.on_event(hear))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, told.set)
            stack.callback(loop.remove_signal_handler, number)
        if settings.mail_host:
            server = MailServer(settings.mail_host, settings.mail_port, sender=settings.mail_sender)
            mailer = Mailer(engine.books.database, server, engine.books.clock)
            await mailer.start()
            stack.push_async_callback(mailer.stop)
        node = await stack.enter_async_context(engine.node(name=name))
        if not as_json:
            say(f"node {node.name} is up on {shown(settings.database)}; Ctrl-C stops it")
            sys.stdout.flush()
        await told.wait()
        if not as_json:
            say("stopping: nothing more is claimed, running attempts end")
            sys.stdout.flush()


def _as_json(event: "Event") -> None:
    if event.kind in TOLD:
        write_json(_body(event))
        sys.stdout.flush()


def _body(event: "Event") -> dict[str, Any]:
    plain = {name: value for name, value in event.details.items() if isinstance(value, str | int | float | None)}
    names = ("kind", "at_us", "tenant_id", "schedule_id", "action_id")
    return {name: getattr(event, name) for name in names} | plain


def _as_line(event: "Event") -> None:
    if event.kind in TOLD:
        body = _body(event)
        head = f"{body.pop('kind'):9} {body.pop('tenant_id') or '-'}"
        body.pop("at_us")
        say(head + "".join(f"  {key}={json.dumps(value, ensure_ascii=False)}" for key, value in body.items() if value))
        sys.stdout.flush()
