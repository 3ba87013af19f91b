"""Gets shares of tenants' days for running attempts; what is asked for at the same time is one transaction, in a thread of its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from lodger.engine.store.context import Books
from lodger.engine.store.usage import budget_reservations
from lodger.engine.store.usage.budget_reservations import Wish


class Till:
    """Satisfies :class:`lodger.engine.node.executors.attempt.Draws`."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._waiting: list[tuple[Wish, asyncio.Future[int]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def __call__(self, wish: Wish) -> int:
        """Give how much was had of a wish, 0 when nothing is left of the day."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._serve(), name="lodger-till")
        return await answer

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="lodger-till")
        while self._waiting:
            asked, self._waiting = self._waiting, []
            try:
                drawn = await loop.run_in_executor(self._thread, self._draw, [wish for wish, _answer in asked])
            except Exception as error:  # noqa: BLE001 - told to whoever asked
                for _wish, answer in asked:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_wish, answer), share in zip(asked, drawn, strict=True):
                if not answer.done():
                    answer.set_result(share)

    def _draw(self, wishes: list[Wish]) -> list[int]:
        with self._books.database.write() as connection:
            return budget_reservations.draw(self._books, connection, wishes)

    async def close(self) -> None:
        """Let go of the thread; safe to call twice."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            await asyncio.gather(task, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
