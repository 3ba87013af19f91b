"""The host side of attempts, which answers their host calls: data, outbound requests, secrets, budgets, people."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, select

from lodger.engine.capabilities.attempt_budgets import BudgetReservations
from lodger.engine.capabilities.fetch_state import FetchState, Send
from lodger.engine.capabilities.secrets import withheld_secrets
from lodger.engine.capabilities.session import AddressLookup, QueryRunner, ScriptCheck, SecretLookup, no_secrets
from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.execution import Answer, Claim
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.guard import inspect_databases
from lodger.engine.data.sets.reads import ThreadReads
from lodger.engine.effects.finished import Recording
from lodger.engine.egress.way_out import WayOut
from lodger.engine.node.executors.attempt import Attempt
from lodger.engine.node.node_environment import NodeEnvironment
from lodger.engine.store.actions import later_runs
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle import fetches
from lodger.engine.store.platform import node_rows
from lodger.engine.store.rows import load_list
from lodger.engine.store.schema.scheduling import tenants
from lodger.engine.store.tenants import secrets
from lodger.engine.store.tenants.grants import is_one_of
from lodger.engine.store.tenants.secrets import OpenSecret
from lodger.engine.vault.vault import Vault
from lodger.sandbox.job import LogLine
from lodger.sandbox.nodejs.intl_process import IntlProcesses

if TYPE_CHECKING:
    from lodger.engine.node.tracing import Tracer

_log = logging.getLogger("lodger.node")


#: Seconds between two looks for tables that other processes have exposed.
LEARN_S = 10.0
#: Begins the recording of a claim's attempt; returns None for an attempt that is not recorded.
Recorder = Callable[[Claim], Awaitable[Recording | None]]
#: Hook of a wing: makes the recorder of a node, which reads the ledger and the clock.
RECORDERS: list[Callable[[QueryRunner, Clock], Recorder]] = []
#: Returns further secrets of a tenant by name.
TokenSource = Callable[[str, Collection[str]], Awaitable[dict[str, OpenSecret]]]
#: Hook of a wing: makes a source of further secrets, which the engine itself gets and renews.
TOKENS: list[Callable[[StoreContext, Vault, WayOut], TokenSource]] = []


@dataclass(eq=False)
class HostSide:
    """Makes the :class:`lodger.engine.node.executors.attempt.Attempt` of a claim.

    Args:
        read: runs a query on a read-only connection of the ledger's database.
        datasets: the datasets that ``db.NAME`` refers to.
        clock: the time that scripts see.
        people: returns those of some addresses that belong to a tenant; None: those that the ledger knows.
        on_log: called with each log line as it arrives.
        way_out: sends requests; :meth:`close` stops it. None: requests are not allowed.
        vault: decrypts secrets; None: there are none.
        reservations: reserves shares of tenants' daily budgets; :meth:`close` closes it. None: they are not counted.
        tracer: makes spans of host calls and requests; None while tracing is off.
        tokens: returns secrets that are not stored as such.
        recorder: begins the recordings of attempts; None to record none.
        check_script: checks scripts that are to run later; None: by the ledger.
        of_ledger: whether ``read`` asks a ledger with nodes.
    """

    read: QueryRunner
    datasets: Datasets
    clock: Clock
    _: KW_ONLY
    people: AddressLookup | None = None
    on_log: Callable[[Claim, LogLine], None] | None = None
    way_out: WayOut | None = None
    vault: Vault | None = None
    reservations: BudgetReservations | None = None
    tracer: "Tracer | None" = None
    recorder: Recorder | None = None
    tokens: TokenSource | None = None
    check_script: ScriptCheck | None = None
    of_ledger: bool = False

    def __post_init__(self) -> None:
        self._intl = IntlProcesses()
        self._people = self.people or partial(ledger_addresses, self.read)
        self._learn_s, self._learning = -math.inf, asyncio.Lock()

    @classmethod
    def of(cls, host: NodeEnvironment, *, way_out: WayOut | None = None) -> Self:
        """Return the host side of a node, with threads of its own for reads; ``way_out`` sends requests in place of the node's own."""
        store, own = host.store, WayOut(host.store.settings)
        reads = ThreadReads(store.database)
        return cls(
            reads, host.datasets, store.clock, people=host.is_own and partial(platform_addresses, reads, host.is_own),
            way_out=way_out or own, vault=host.vault, reservations=BudgetReservations(store), tracer=host.tracer,
            tokens=next((make(store, host.vault, own) for make in TOKENS), None),
            recorder=next((make(reads, store.clock) for make in RECORDERS), None), of_ledger=True,
        )  # fmt: skip

    def hear(self, listener: Callable[[Claim, LogLine], None]) -> None:
        """Call a further listener with each log line of attempts that begin from now on."""
        before = self.on_log

        def call_both(claim: Claim, line: LogLine) -> None:
            """Call the listeners that were there before, and then the new one."""
            if before is not None:
                before(claim, line)
            listener(claim, line)

        self.on_log = call_both

    async def close(self) -> None:
        """Stop requests, reservations, threads for reads and processes for Intl; safe to call twice."""
        await asyncio.to_thread(self._intl.close)
        if self.way_out is not None:
            self.way_out.stop()
        if self.reservations is not None:
            await self.reservations.close()
        if isinstance(self.read, ThreadReads):
            self.read.close()

    async def attempt(self, claim: Claim) -> Attempt:
        """Return a new attempt of a claim, ready to answer its host calls."""
        await inspect_databases(self.datasets, self.read)
        if self.of_ledger and self.clock.elapsed_s() > self._learn_s:
            async with self._learning:
                if self.clock.elapsed_s() > self._learn_s:
                    self.datasets.learn(await self.read(partial(node_rows.known_sets, now_us=self.clock.now_us())))
                    self._learn_s = self.clock.elapsed_s() + LEARN_S
        return Attempt(
            claim,
            self.read,
            self.datasets,
            now_us=self.clock.now_us() if claim.pretended_us is None else claim.pretended_us,
            people=self._people,
            on_log=self.on_log,
            fetch_state=self._fetching(claim),
            draws=None if claim.trial else self.reservations,
            clock_us=self.clock.now_us,
            read_secrets=self._secrets(claim),
            check_script=self.check_script or partial(self._check_script, claim),
            numbers=self.read.numbers if isinstance(self.read, ThreadReads) else None,
            span=None if self.tracer is None else self.tracer.calls(),
            recording=None if claim.trial or self.recorder is None else await self.recorder(claim),
            intl=self._intl,
        )

    def _fetching(self, claim: Claim) -> FetchState:
        """Return the initial state of an attempt's requests."""
        send: Send | None = None if self.way_out is None else self.way_out.send
        if send is not None and self.tracer is not None:
            send = self.tracer.sending(send)
        end_s = asyncio.get_running_loop().time() + claim.limits.wall_ms / 1000
        made = FetchState.of(claim, send, frame_bytes=claim.limits.frame_bytes, end_s=end_s)
        if claim.tries > 1:
            made.earlier = partial(self._earlier_responses, claim)
        return made

    def _secrets(self, claim: Claim) -> SecretLookup:
        """Return the lookup of the secrets that an attempt may read."""
        if claim.offline:
            return withheld_secrets
        return no_secrets if self.vault is None else partial(self._opened, self.vault, claim.tenant_id)

    async def _opened(self, vault: Vault, tenant_id: str, names: Collection[str]) -> dict[str, OpenSecret]:
        """Return the named secrets of a tenant, decrypted, by name; raises CallRefused if this node cannot decrypt them."""
        try:
            found = await self.read(lambda connection: secrets.open_secrets(vault, connection, tenant_id, names))
            absent = set(names) - set(found)
            return found if self.tokens is None or not absent else found | await self.tokens(tenant_id, absent)
        except Unavailable as error:
            # The operator's matter; the script learns no more than that it cannot have it now.
            _log.error("secrets of tenant %s: %s (%s)", tenant_id, error, error.fix)
            raise CallRefused("secret_unavailable", "this node cannot decrypt the secret") from error

    async def _check_script(self, claim: Claim, name: str, params: Any) -> None:
        """Check by the ledger that a script can run later with these params; raises CallRefused."""
        # The source of a trial need not be stored.
        unsaved = claim.trial and name == claim.script_name
        await self.read(partial(later_runs.check, tenant_id=claim.tenant_id, name=name, params=params, unsaved=unsaved))

    async def _earlier_responses(self, claim: Claim) -> dict[str, Answer]:
        """Read the responses that earlier attempts of the step received, by key."""
        return await self.read(
            partial(fetches.load, tenant_id=claim.tenant_id, action_id=claim.action_id, step=claim.step)
        )


async def ledger_addresses(read: QueryRunner, tenant_id: str, addresses: Collection[str]) -> Collection[str]:
    """Return those of the addresses that belong to the tenant, as the ledger knows them (``engine.grants.people``)."""

    def read_people(connection: Connection) -> tuple[str, ...]:
        """Return the addresses that the tenant may send mail to."""
        return load_list(connection.scalar(select(tenants.c.people).where(tenants.c.id == tenant_id))) or ()

    known = await read(read_people)
    return {address for address in addresses if is_one_of(known, address)}


async def platform_addresses(
    read: QueryRunner, is_own: Callable[[str, str], bool], tenant_id: str, addresses: Collection[str]
) -> Collection[str]:
    """Return those of the addresses that belong to the tenant, as the platform says; in a thread for reads: it may look into its tables."""
    return await read(lambda _connection: {each for each in addresses if is_own(tenant_id, each)})
