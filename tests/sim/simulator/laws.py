"""Laws: invariants that are checked after every transaction, on its changes only.

A law is a function of the mirror (after the transaction) and the transaction; it raises :class:`Broken`.
"""

from collections import Counter
from collections.abc import Iterable

from tests.sim.simulator.mirror import OPEN, OVER, STARTABLE, Action, Line, Mirror, ScheduleClock, Transaction
from tests.sim.simulator.oracle import Oracle, count, names

from lodger.engine.core.settings import Settings
from lodger.engine.policy.retry import Retry
from lodger.sandbox.outcome import Blame, Outcome

#: A clock may be so far ahead of its time: its slots are claimed before they are due.
AHEAD_US = int(Settings().ahead_s * 1_000_000)


#: Attempts of a step that the machine may take away before its action fails.
ENGINE_ATTEMPTS = Retry().engine_attempts
#: Reasons of actions that end because a budget of the day is used up.
BUDGETS = frozenset({"budget_runs", "budget_cpu_s"})


class Broken(AssertionError):
    """A law does not hold.

    Attributes:
        law: text of the law.
        detail: where it is broken.
    """

    def __init__(self, law: str, detail: str) -> None:
        super().__init__(f"{law}: {detail}")
        self.law, self.detail = law, detail


#: Allowed changes of an action's state; None for no row: a node may claim in the transaction of its tick or commit.
MOVES: dict[str | None, frozenset[str]] = {
    None: frozenset({"ready", "running", "skipped", "expired", "cancelled"}),
    "ready": frozenset({"ready", "running", "skipped", "expired", "cancelled", "failed"}),
    "running": frozenset({"running", "sealed", "ready", "waiting_retry", "done", "failed", "cancelled"}),
    "sealed": frozenset({"sealed", "ready", "waiting_retry", "done", "failed"}),
    "waiting_retry": frozenset({"waiting_retry", "running", "skipped", "cancelled", "failed"}),
}


def actions_move_as_they_may(mirror: Mirror, transaction: Transaction) -> None:
    """Check changes of the state, number of attempts and lease of actions."""
    for key, (old, new) in transaction.actions.items():
        if new is None:
            _check_deleted(mirror, old)
            continue
        if old is not None and old.state in OVER:
            if (old.state, old.outcome, old.step, old.attempt) != (new.state, new.outcome, new.step, new.attempt):
                raise Broken("what is over stays over", f"{key}: {old.state} became {new.state}")
            continue
        if new.state not in MOVES[None if old is None else old.state]:
            raise Broken("actions move as they may", f"{key}: {old and old.state} became {new.state}")
        if _begun(old, new):
            _check_start(mirror, old, new)
        elif old is not None and new.attempt != old.attempt:
            raise Broken("an attempt has one number", f"{key}: {old.attempt} became {new.attempt}")
        if new.state == "running":
            node = mirror.nodes.get(new.node or "")
            if node is None or node.state != "alive" or node.epoch != new.epoch:
                raise Broken(
                    "a running action is leased by a living epoch", f"{key} runs on {new.node} under {new.epoch}"
                )
            home = mirror.turns.get((new.tenant, ""))
            if not set(node.labels.split()).issuperset(new.requires.split() + (home.bound.split() if home else [])):
                raise Broken("what runs is where its labels are", f"{key} requires {new.requires!r} on {node.labels!r}")
        if new.state == "expired" and (new.expires is None or (new.finished or 0) < new.expires):
            raise Broken("nothing expires before its time", key)


def _check_deleted(mirror: Mirror, old: Action | None) -> None:
    """Check that a deleted action was finished, or its tenant deleted."""
    if old is not None and old.state not in OVER:
        tenant = mirror.tenants.get(old.tenant)
        if tenant is not None and tenant.state == "active" and (tenant.id, "") in mirror.turns:
            raise Broken("an unfinished action is not deleted", f"{old.id} was {old.state}")


def _begun(old: Action | None, new: Action) -> bool:
    """Return whether an attempt has begun, perhaps in the transaction in which the one before it ended."""
    return new.state == "running" and (old is None or (old.state, old.attempt) != ("running", new.attempt))


def _check_start(mirror: Mirror, old: Action | None, new: Action) -> None:
    """Check the number and the time of an attempt that starts."""
    started = new.started or 0
    if new.attempt != (0 if old is None else old.attempt) + 1:
        raise Broken("an attempt has one number", f"{new.id} starts as {new.attempt}")
    due = new.due if old is None or old.state == "running" else old.due
    if started < due:
        raise Broken("nothing starts before it is due", f"{new.id} starts {due - started} µs early")
    if new.step == 0 and new.attempt == 1 and new.expires is not None and started >= new.expires:
        raise Broken("nothing starts after it has expired", new.id)
    if new.origin == "slot" and new.attempt == 1 and new.schedule is not None:
        if mirror.clocks[new.schedule].state == "deleted":
            raise Broken("a deleted schedule begins nothing", new.id)
        terms = mirror.terms[new.schedule, new.revision or 0]
        for other in mirror.open[new.schedule].values():
            if (
                terms.overlap != "allow"
                and other.origin == "slot"
                and other.state == "ready"
                and other.revision == new.revision
                and (other.slot or 0) < (new.slot or 0)
            ):
                raise Broken("a serial schedule starts in slot order", f"{new.id} before {other.id}")


def attempts_leave_a_row(mirror: Mirror, transaction: Transaction) -> None:
    """Check that every ended attempt has a row and is charged."""
    charged: dict[str, int] = {}
    for ended, (tenant, outcome) in transaction.attempts.items():
        old, _new = transaction.actions.get(ended[0], (None, None))
        if old is None or old.state not in {"running", "sealed"} or (old.step, old.attempt) != ended[1:]:
            raise Broken("an attempt that ended had begun", str(ended))
        if outcome not in {"cancelled", "conflict"} and Outcome(outcome).blames is not Blame.ENGINE:
            charged[tenant] = charged.get(tenant, 0) + 1
    for key, (old, new) in transaction.actions.items():
        if old is None or new is None or old.state != "running":
            continue
        if new.state == "running" and not _begun(old, new):
            continue
        handed_back = new.state == "ready" and new.step == old.step
        if not handed_back and new.state != "sealed" and (key, old.step, old.attempt) not in transaction.attempts:
            raise Broken("an attempt that ended has its row", f"{key} step {old.step} attempt {old.attempt}")
    # The ledger does not tell how a cancelled attempt ended: one that was in vain is free.
    reported = Counter(transaction.reported)
    for tenant in {*charged, *reported, *transaction.runs}:
        due = charged.get(tenant, 0)
        if not due <= transaction.runs.get(tenant, 0) <= due + reported[tenant]:
            raise Broken("a run is charged once", f"{transaction.runs} for {charged} and {reported}")


def effects_happen_once(mirror: Mirror, transaction: Transaction) -> None:
    """Check that effects are committed once, with the end of their step, under its lease."""
    applied = set()
    for action, step, number, node, epoch in transaction.effects:
        if (action, step) in mirror.effects:
            raise Broken("a step has at most one committed set of effects", f"{action} step {step}")
        mirror.effects.add((action, step))
        applied.add((action, step))
        old, new = transaction.actions.get(action, (None, None))
        if old is None or (old.state, old.step, old.attempt, old.node, old.epoch) != (
            "running",
            step,
            number,
            node,
            epoch,
        ):
            raise Broken("effects come from the attempt that runs", f"{action} step {step} attempt {number} of {node}")
        if new is None or (new.state != "done" and new.step != step + 1):
            raise Broken("effects come with the end of their step", f"{action} step {step} is {new and new.state}")
    for key, (old, new) in transaction.actions.items():
        if old is None or new is None or old.state in OVER:
            continue
        if (new.state == "done" or new.step > old.step) and (key, old.step) not in applied:
            raise Broken("a step that is done has its effects", f"{key} step {old.step}")
        if new.state == "done" and new.origin in {"slot", "backfill"} and new.schedule is not None:
            slot = (new.schedule, new.slot or 0)
            if slot in mirror.done:
                raise Broken("a slot is done at most once, replays apart", f"{key} slot {new.slot}")
            mirror.done.add(slot)


def slots_are_accounted_once(mirror: Mirror, transaction: Transaction) -> None:
    """Check each advanced schedule clock: every slot up to it has exactly one row, and there are no others."""
    for schedule in transaction.slots:
        if schedule not in transaction.clocks:
            raise Broken("slots come with their clock's move", schedule)
    for schedule, (old, new) in transaction.clocks.items():
        if new is None:
            continue
        if old is not None:
            if new.accounted < old.accounted:
                raise Broken(
                    "what is accounted stays accounted", f"{schedule} goes back {old.accounted - new.accounted} µs"
                )
            if old.state == "deleted" and new.state != "deleted":
                raise Broken("what is deleted stays deleted", schedule)
            if new.accounted > max(old.accounted, transaction.latest_us + AHEAD_US):
                raise Broken("nothing is accounted before its time", f"{schedule} up to {new.accounted}")
            rows = sorted(transaction.slots.get(schedule, ()), key=lambda row: row.slot or 0)
            _check_rows_of_slots(mirror.terms[schedule, old.revision].oracle, old.accounted, new.accounted, rows)
        _check_next_slot(mirror, new)
    for schedule in (*transaction.schedules, *transaction.clocks):
        bound, hand = mirror.schedules.get(schedule), mirror.clocks.get(schedule)
        if bound is not None and hand is not None:
            if bound.revision != hand.revision:
                raise Broken(
                    "a clock goes by its schedule's revision", f"{schedule}: {hand.revision}, not {bound.revision}"
                )
            if (bound.deleted_us is not None) != (hand.state == "deleted"):
                raise Broken("a deleted schedule's clock is off", f"{schedule}: {hand.state}")


def _check_rows_of_slots(oracle: Oracle, after: int, until: int, rows: Iterable[Action]) -> None:
    """Check that rows account for all slots between two times, each once."""
    at = after
    for row in rows:
        expected = oracle.after(at)
        if expected is None or row.slot != expected:
            what = "twice or never named" if expected is None or (row.slot or 0) < expected else "lost before"
            raise Broken(
                "each slot is accounted exactly once", f"{row.schedule}: {what} {row.slot}, expected {expected}"
            )
        at = row.slot
        following = oracle.after(at)
        if row.due < at or (following is not None and row.due >= following):
            raise Broken("an action is due before the next slot", f"{row.id} {row.due - at} µs after its own")
        if row.slot_to is not None:
            if row.slot_to <= row.slot or not names(oracle, row.slot_to):
                raise Broken("a gap begins and ends with slots", f"{row.schedule}: {row.slot} to {row.slot_to}")
            at = row.slot_to
    if at > until:
        raise Broken("nothing is accounted before its time", f"slot {at} after {until}")
    left = oracle.after(at)
    if left is not None and left <= until:
        raise Broken("each slot is accounted exactly once", f"lost {left}, and {count(oracle, left, until)} in all")


def _check_next_slot(mirror: Mirror, hand: ScheduleClock) -> None:
    """Check that an enabled schedule has its next slot."""
    if hand.state not in {"armed", "ended"}:
        return
    expected = mirror.terms[hand.schedule, hand.revision].oracle.after(hand.accounted)
    if hand.next_at != expected:
        raise Broken(
            "an enabled schedule has its next slot", f"{hand.schedule}: {hand.state} at {hand.next_at}, not {expected}"
        )


def schedules_keep_their_order(mirror: Mirror, transaction: Transaction) -> None:
    """Check the order and overlap of actions in each changed schedule."""
    seen: dict[str, int] = {}
    for old, new in transaction.actions.values():
        schedule = (new or old).schedule if new or old else None  # type: ignore[union-attr]  # one of them is not None
        if schedule is None:
            continue
        counted = old is not None and old.state in OPEN and not old.held
        # An edit that makes a schedule serial first writes the slots that were due under the old revision.
        bound = new is not None and (new.revision is None or mirror.terms[schedule, new.revision].overlap != "allow")
        still = bound and new is not None and new.state in OPEN and not new.held
        seen[schedule] = seen.get(schedule, 0) + still - counted
    for schedule, more in seen.items():
        free = [action for action in mirror.open[schedule].values() if not action.held]
        hand = mirror.clocks.get(schedule)
        if not free and mirror.open[schedule]:
            raise Broken("a held action has one ahead of it", schedule)
        if len(free) > 1 and more > 0 and hand is not None and mirror.terms[schedule, hand.revision].overlap != "allow":
            reported = ", ".join(f"{each.origin} {each.state}" for each in free)
            raise Broken("actions of a serial schedule never run side by side", f"{schedule}: {reported}")


def losses_are_no_failures(mirror: Mirror, transaction: Transaction) -> None:
    """Check that an attempt that did not fail by its script is made again, and that later slots supersede only the script's failures."""
    for (action, step, _number), (_tenant, outcome) in transaction.attempts.items():
        mirror.losses[action, step] += Outcome(outcome).blames is Blame.ENGINE
    for key, (old, new) in transaction.actions.items():
        if old is None or new is None or new.state == old.state:
            continue
        blame = Blame.NEITHER if new.outcome is None else Outcome(new.outcome).blames
        if new.state == "waiting_retry" and blame is not Blame.TENANT:
            raise Broken("what the machine took away is ready again", f"{key} waits after {new.outcome}")
        losses = mirror.losses[key, old.step]
        is_failed = new.state == "failed" and new.reason not in BUDGETS
        if is_failed and blame is Blame.ENGINE and losses < ENGINE_ATTEMPTS:
            raise Broken(
                "what the machine took away has all its attempts", f"{key} failed as {new.reason} after {losses}"
            )
        if new.state == "failed" and new.reason == "superseded" and old.state in STARTABLE:
            hand = transaction.clocks.get(new.schedule or "", (None, None))[0] or mirror.clocks[new.schedule or ""]
            if mirror.terms[hand.schedule, hand.revision].overlap == "queue_all":
                raise Broken("under queue_all each slot has all its attempts", key)


def tenants_have_their_turn(mirror: Mirror, transaction: Transaction) -> None:
    """Check turns, concurrency limit and state of each changed tenant."""
    touched = {row.tenant: 0 for row in _rows(transaction)}
    for old, new in transaction.actions.values():
        if new is not None and _begun(old, new):
            touched[new.tenant] += 1
    for tenant in {*touched, *(tenant for tenant, _requires in transaction.turns), *transaction.tenants}:
        row, running = mirror.tenants.get(tenant), len(mirror.running_of[tenant])
        home = mirror.turns.get((tenant, ""))
        if row is None or home is None:
            if row is not None and row.state != "deleted":
                raise Broken("a tenant has its turn", tenant)
            continue
        if row.state != "active" and running:
            raise Broken("a suspended tenant runs nothing", f"{tenant} runs {running}")
        if touched.get(tenant) and running > home.cap:
            raise Broken("no tenant runs more than its cap", f"{tenant} runs {running} of {home.cap}")
        may = row.state == "active" and running < home.cap
        for line in mirror.lines_of[tenant]:
            expected = min(mirror.startable_of[line].values(), default=None) if may else None
            if mirror.turns[line].startable_at != expected:
                raise Broken(
                    "turns are what the actions say", f"{line}: {mirror.turns[line].startable_at}, not {expected}"
                )
    for _old, made in transaction.actions.values():
        if made is not None and made.startable and made.line not in mirror.turns:
            raise Broken("a tenant has its turn", f"{made.line}")
    for tenant, (before, after) in transaction.tenants.items():
        if (
            before is not None
            and after is not None
            and before.state != after.state
            and after.generation <= before.generation
        ):
            raise Broken("a tenant's state moves its generation", tenant)


def _rows(transaction: Transaction) -> Iterable[Action]:
    """Yield the changed actions as they are now; deleted ones as they were."""
    for old, new in transaction.actions.values():
        row = new or old
        if row is not None:
            yield row


def epochs_are_used_once(mirror: Mirror, transaction: Transaction) -> None:
    """Check that epochs are used once, and that a new epoch takes over the node's actions."""
    for node, (old, new) in transaction.nodes.items():
        if new is None:
            continue
        if old is not None and (
            new.epoch < old.epoch or (new.state == "alive" != old.state and new.epoch == old.epoch)
        ):
            raise Broken(
                "an epoch is never used twice", f"{node}: {old.state} {old.epoch} became {new.state} {new.epoch}"
            )
        if old is not None and old.state == "alive" and new.state == "lost" and old.until >= transaction.latest_us:
            raise Broken("a lease is taken when it has ended", f"{node}: {old.until - transaction.now_us} µs left")
        for action in mirror.running_on[node]:
            if new.state != "alive" or mirror.actions[action].epoch != new.epoch:
                raise Broken(
                    "a running action is leased by a living epoch",
                    f"{action} under {mirror.actions[action].epoch} of {node}",
                )


#: How often in a row a tenant may be passed over. Nodes may differ in what is due, once or twice.
PASSED_BY = 4


def tenants_are_served_in_turn(mirror: Mirror, transaction: Transaction) -> None:
    """Check that claims do not repeatedly pass over a tenant that has waited longer than those they serve."""
    looked_at = {line[0] for line, (old, new) in transaction.turns.items() if old and new and new.served != old.served}
    now, node = 0, None
    for old, new in transaction.actions.values():
        if new is not None and _begun(old, new):
            looked_at.add(new.tenant)
            now, node = max(now, new.started or 0), mirror.nodes.get(new.node or "")
    if node is None:
        return
    carried = set(node.labels.split())
    last = max((mirror.served[tenant], tenant) for tenant in looked_at)
    waits = {line[0] for line in mirror.turns if _waits(mirror, transaction, line, now, carried)}
    for tenant in mirror.tenants:
        if tenant in looked_at or tenant not in waits:
            mirror.passed_by[tenant] = 0
        elif mirror.served[tenant] < last[0]:
            mirror.passed_by[tenant] += 1
            if mirror.passed_by[tenant] > PASSED_BY:
                raise Broken("tenants are served in turn", f"{tenant} was passed by for {last[1]}, and before")
    mirror.services += 1
    for tenant in looked_at:
        mirror.served[tenant] = mirror.services
        mirror.served_s[tenant] = transaction.at_s


def _waits(mirror: Mirror, transaction: Transaction, line: Line, now: int, carried: set[str]) -> bool:
    """Return whether a line had actions to start both before and after the transaction."""
    turn = mirror.turns[line]
    before = transaction.turns[line][0] if line in transaction.turns else turn
    both = (turn.startable_at, before.startable_at if before is not None else None)
    ready = all(at is not None and at <= now for at in both)
    return ready and carried.issuperset(turn.requires.split() + turn.bound.split())


LAWS = (
    actions_move_as_they_may,
    attempts_leave_a_row,
    effects_happen_once,
    slots_are_accounted_once,
    schedules_keep_their_order,
    losses_are_no_failures,
    tenants_have_their_turn,
    epochs_are_used_once,
    tenants_are_served_in_turn,
)
