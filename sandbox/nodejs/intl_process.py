"""Answers of ICU to questions about ``Intl``, from a few limited Node.js processes.

A process serves one tenant at a time and is ended before another tenant is served, so an error in ICU never mixes two tenants. What crosses
is data: :mod:`lodger.sandbox.nodejs.limited_node` names the walls, ``intl.js`` is the program.
"""

import json
import logging
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.limits import KIB
from lodger.sandbox.nodejs import limited_node
from lodger.sandbox.nodejs.limited_node import TooCostly

#: Maximum number of processes; how long one may be idle, and how long it stays with a tenant while others wait, seconds.
AT_ONCE, IDLE_S, TURN_S = 4, 60.0, 0.5
#: CPU time of a process, after which it is replaced, and at which the kernel ends it: each question has at least the difference.
USED_S, CPU_S = 2, 4
#: Time for a question, and for the start, seconds.
WALL_S, START_S = 10.0, 30.0
HEAP_MIB = 64
#: Maximum characters of a question, and bytes of an answer.
MAX_QUESTION, MAX_ANSWER = 64 * KIB, 512 * KIB
_journal = logging.getLogger("lodger.sandbox")


@dataclass(frozen=True, slots=True)
class Answer:
    """JSON text of an answer, and the CPU time that it took."""

    text: str
    cpu_ms: float


@dataclass(slots=True)
class _Question:
    """A question as a line for the process, and the future of its answer."""

    line: bytes
    answer: "Future[Answer]" = field(default_factory=Future)


class IntlProcesses:
    """Threads that keep one process each. They start when they are needed and end when they have been idle."""

    def __init__(self) -> None:
        self._closed = False
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[_Question]] = {}  # by tenant, in the order of their first questions
        self._keepers: list[_Keeper] = []

    def ask(self, tenant: str, kind: str, method: str, given: str) -> "Future[Answer]":
        """Ask a question for a tenant; ``given`` is the JSON text ``[locales, options, values]``.

        The answer is a :class:`TooCostly`, or a SandboxError (package_missing, no_worker), if it is none.
        """
        question = _Question(json.dumps([kind, method, given]).encode() + b"\n")
        with self._changed:
            if self._closed:
                question.answer.set_exception(_ended())
                return question.answer
            self._waiting.setdefault(tenant, deque()).append(question)
            kept = [each.tenant for each in self._keepers]
            unserved = sum(each not in kept for each in self._waiting)
            if unserved > kept.count(None) and len(self._keepers) < AT_ONCE:
                self._keepers.append(_Keeper(self._keep))
                self._keepers[-1].thread.start()
            self._changed.notify_all()
        return question.answer

    def close(self) -> None:
        """End the processes and threads; waiting questions get an error. Blocks for a moment; safe to call twice."""
        with self._changed:
            self._closed = True
            keepers, waiting = [*self._keepers], [each for questions in self._waiting.values() for each in questions]
            self._waiting.clear()
            self._changed.notify_all()
        for question in waiting:
            if question.answer.set_running_or_notify_cancel():
                question.answer.set_exception(_ended())
        for keeper in keepers:
            keeper.kill()
            keeper.thread.join()

    def _keep(self, keeper: "_Keeper") -> None:
        """Answer questions by one process, until there is none for a while."""
        try:
            while (question := self._next(keeper)) is not None:
                keeper.serve(question)
        finally:
            keeper.end()
            with self._changed:
                if keeper in self._keepers:
                    self._keepers.remove(keeper)

    def _next(self, keeper: "_Keeper") -> _Question | None:
        """Wait for a question; None after an idle time and at the close, when the keeper is forgotten."""
        with self._changed:
            keeper.busy, keeper.idle_since = False, time.monotonic()
            while True:
                now = time.monotonic()
                tenant, wait_s = self._choose(keeper, now)
                if tenant is not None:
                    break
                if self._closed or now - keeper.idle_since >= IDLE_S:
                    self._keepers.remove(keeper)
                    return None
                self._changed.wait(wait_s)
            if tenant != keeper.tenant:
                if keeper.tenant in self._waiting:  # behind those that were not served yet
                    self._waiting[keeper.tenant] = self._waiting.pop(keeper.tenant)
                keeper.take(tenant, now)
            keeper.busy = True
            questions = self._waiting[tenant]
            question = questions.popleft()
            if not questions:
                del self._waiting[tenant]
            return question

    def _choose(self, keeper: "_Keeper", now: float) -> tuple[str | None, float]:
        """Return the tenant that a keeper serves now, or None and the time until it must look again."""
        kept = {each.tenant for each in self._keepers}
        others = [tenant for tenant in self._waiting if tenant not in kept]
        ends = keeper.since + TURN_S
        if others and (keeper.tenant is None or now >= ends):
            idle = [each for each in self._keepers if not each.busy]
            if min(idle, key=lambda each: (each.tenant is not None, each.idle_since)) is keeper:
                return others[0], 0.0
        if keeper.tenant in self._waiting:
            return keeper.tenant, 0.0
        return None, max(ends - now, 0.01) if others else IDLE_S


class _Keeper:
    """A thread with a process, which serves one tenant."""

    def __init__(self, run: "Callable[[_Keeper], None]") -> None:
        self.thread = threading.Thread(target=run, args=(self,), name="lodger-intl", daemon=True)
        self.tenant: str | None = None
        self.since = self.idle_since = 0.0
        self.busy = self._killed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._used_us = 0

    def take(self, tenant: str, now: float) -> None:
        """Serve another tenant from now on, by another process."""
        self.end()
        self.tenant, self.since = tenant, now

    def kill(self) -> None:
        """End the process from another thread, and start no other."""
        self._killed, process = True, self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        """End the Node.js process."""
        if self._process is not None:
            self._process.kill()
            self._process.__exit__(None, None, None)
            self._process = None

    def serve(self, question: _Question) -> None:
        """Answer a question; it is asked once more if the process ended for no reason of its own."""
        if not question.answer.set_running_or_notify_cancel():
            return
        try:
            question.answer.set_result(self._ask(question.line) or self._again(question.line))
        except Exception as error:  # noqa: BLE001 - the caller gets it
            self.end()
            question.answer.set_exception(error)

    def _again(self, line: bytes) -> Answer:
        """Ask the question that ended the last process once more, in a new one."""
        answer = self._ask(line)
        if answer is None:
            raise TooCostly("it ended the process that answers")
        return answer

    def _ask(self, line: bytes) -> Answer | None:
        """Return the answer, None if the process ended.

        Raises:
            TooCostly, SandboxError.
        """
        process = self._process or self._start()
        said = limited_node.exchange(process, line, WALL_S, MAX_ANSWER)
        cpu, _, text = said.partition(b" ")
        if not text.endswith(b"\n") or not cpu.isdigit():
            self._process = None
            with process:
                used_s = limited_node.end(process)
            if used_s >= USED_S:
                raise TooCostly(f"it takes more than {CPU_S - USED_S} s of CPU time")
            return None
        used_us, before_us = int(cpu[:18]), self._used_us
        self._used_us = used_us
        if used_us > USED_S * 1_000_000:
            self.end()
        return Answer(text[:-1].decode("utf-8", "replace"), max(used_us - before_us, 0) / 1000)

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start the Node.js process."""
        if self._killed:
            raise _ended()
        node = limited_node.find_node("Intl cannot be answered")
        process = limited_node.start(node, _program(), cpu_s=CPU_S, heap_mib=HEAP_MIB)
        self._process, self._used_us = process, 0
        if limited_node.exchange(process, b"", START_S, MAX_ANSWER) != b"R":
            assert process.stderr is not None
            process.kill()
            said = process.stderr.read(limited_node.CHUNK).decode("utf-8", "replace")
            _journal.warning("Node.js for Intl did not start: %s", said[-1000:])
            raise SandboxError("no_worker", "Node.js for Intl did not start", why=said[-200:], fix="try again")
        return process


def _ended() -> SandboxError:
    """Return the error of a question after the engine was stopped."""
    return SandboxError("no_worker", "Intl is not answered any more", why="the engine stops", fix="start it again")


@cache
def _program() -> str:
    """Return the text of the JavaScript program of the process."""
    shared = (files("lodger.stdlib") / "js" / "formats.js").read_text("utf-8")
    return f"function formats($) {{{shared}}}\n" + (files("lodger.sandbox.nodejs") / "intl.js").read_text("utf-8")
