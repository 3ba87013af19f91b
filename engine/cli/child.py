"""The API's process, started, restarted and ended by the node's process, so that no request delays a slot."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.output.result_output import is_for_program, say, write_result

#: Environment variable with the descriptor on which the API's process reports that it listens.
READY = "LODGER_READY_FD"
#: First and longest wait before an API that ended by itself is started again, and how long it may take to listen, seconds.
BACKOFF_S, BACKOFF_MAX_S, PATIENCE_S = 0.5, 30.0, 60.0


def ready() -> None:
    """Report to the parent process, if there is one, that the API listens."""
    number = os.environ.pop(READY, "")
    if number.isdigit():
        with suppress(OSError):
            os.write(int(number), b"1")
            os.close(int(number))


class Child:
    """``lodger up --role api`` as a child process. It ends whenever this process ends, because its standard input is a pipe.

    Args:
        check_place: raises Unavailable if the ledger's file was replaced: the child is not started again then, since it would create a
            new ledger.
    """

    def __init__(self, settings: Settings, expose: str | None, check_place: Callable[[], None]) -> None:
        self._check_place = check_place
        self._command = [
            sys.executable, "-m", "lodger.engine.cli", "up", "--role", "api", "--with-parent",
            *(["--expose", expose] if expose else []), *(["--json"] if is_for_program() else []),
        ]  # fmt: skip
        # In the environment, not in the arguments, which every user can read: a database URL may hold a password.
        self._environment = {"LODGER_DATABASE": settings.database, "LODGER_API_PORT": str(settings.api_port)}
        if settings.platform is not None:
            self._environment["LODGER_PLATFORM"] = str(settings.platform)
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the API's process, and wait until it listens.

        Raises:
            Unavailable: api_failed; the reason is in its own output.
        """
        if not await self._begun():
            raise Unavailable("api_failed")
        self._watch = asyncio.create_task(self._keep(), name="lodger-api-child")

    async def _begun(self) -> bool:
        """Start the API's process; return whether it reported that it listens."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(writing,),
                env={**os.environ, **self._environment, READY: str(writing)},
                # Ctrl-C goes to this process alone, which then ends the child.
                start_new_session=True,
            )
        finally:
            os.close(writing)
        listens = False
        try:
            listens = await asyncio.wait_for(_listens(reading), PATIENCE_S)
        except TimeoutError:
            pass
        finally:
            os.close(reading)
            if not listens:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
        return listens

    async def _keep(self) -> None:
        """Start the API's process again whenever it ends by itself, after a growing pause."""
        wait_s = BACKOFF_S
        while self._process is not None:
            code = await self._process.wait()
            with suppress(OSError):
                write_result({"kind": "api_ended", "code": code, "again_s": wait_s})
                say(f"the API process ended with exit code {code}; it is restarted in {wait_s:g} s")
            await asyncio.sleep(wait_s)
            await asyncio.to_thread(self._check_place)
            wait_s = BACKOFF_S if await self._begun() else min(wait_s * 2, BACKOFF_MAX_S)

    async def stop(self) -> None:
        """End the API's process: close its pipe, and kill it if it has not ended after 15 seconds."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 15)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _listens(reading: int) -> bool:
    """Wait for the child's report on this file descriptor; return whether it listens, False if it ends without."""
    loop = asyncio.get_running_loop()
    came = loop.create_future()

    def read_report() -> None:
        """Read the byte by which the child reports whether it listens."""
        if not came.done():
            came.set_result(os.read(reading, 1) == b"1")

    loop.add_reader(reading, read_report)
    try:
        return bool(await came)
    finally:
        loop.remove_reader(reading)
