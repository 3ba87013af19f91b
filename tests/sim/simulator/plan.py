"""Plans: the list of events of a world, drawn from its seed in advance, which can be shortened and replayed."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from tests.sim.simulator.rules import WALLS

#: Start times of worlds with a zone, some of them two minutes before a change of clocks.
BEGINNINGS: tuple[tuple[str, str], ...] = (
    ("2026-03-29T00:58:00", "Europe/Berlin"),
    ("2026-10-25T00:58:00", "Europe/Berlin"),
    ("2026-03-08T06:58:00", "America/New_York"),
    ("2026-11-01T05:58:00", "America/New_York"),
    ("2026-04-04T14:58:00", "Australia/Lord_Howe"),
    ("2026-10-03T15:28:00", "Australia/Lord_Howe"),
    ("2026-06-30T23:58:00", "Asia/Kathmandu"),
    ("2028-02-29T12:00:00", "UTC"),
)
#: Label of the first machine, required by some schedules and one tenant.
LABEL, BOUND = "big", "t1"
OVERLAPS = ("skip", "queue_one", "queue_all", "cancel_running", "allow")
MISSED = ("skip", "latest", "all", "within:60s")
#: Settings of worlds with many events at once.
SWIFT = {
    "concurrent_runs": 500,
    "tick_batch": 3000,
    "commit_batch": 3000,
    "catch_up_max": 5,
    "retention_runs": 1000,
    "poll_s": 0.5,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a world.

    Attributes:
        seconds: virtual time with events; afterwards all actions are finished.
        schedules: initial number of schedules.
        trouble: mean number of events per virtual second, beside slots.
        job_s: duration of a node's transaction; None for a random one.
        slots: of a node; None for a random number.
        focus: a verb that occurs ten times as often.
        swift: whether every schedule has a slot every second and one script.
        draws: whether attempts reserve daily budgets of their tenants.
    """

    seconds: int = 60
    schedules: int = 24
    tenants: int = 4
    nodes: int = 3
    trouble: float = 2.0
    job_s: float | None = None
    slots: int | None = None
    focus: str = ""
    swift: bool = False
    draws: bool = False


#: ``dense``: long transactions with thousands of slots.
#: ``storm``: hundreds of slots come due every second, so that the ledger does most of the work.
SHAPES = {
    "small": Shape(),
    "dense": Shape(seconds=240, schedules=400, tenants=20, trouble=1.0, job_s=0.05),
    "storm": Shape(seconds=120, schedules=400, tenants=10, trouble=0.3, job_s=0.1, slots=3000, swift=True),
}


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """One event: a verb of :mod:`tests.sim.simulator.operations` or :mod:`tests.sim.simulator.faults`, with its arguments."""

    at_s: float
    verb: str
    given: dict[str, Any]

    def __str__(self) -> str:
        said = " ".join(f"{name}={json.dumps(value)}" for name, value in self.given.items())
        return f"{self.at_s:9.3f} {self.verb} {said}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a world, which determines it completely; can be written as JSON."""

    seed: int
    shape: Shape
    start_us: int
    zone: str
    settings: dict[str, Any]
    job_s: float
    events: tuple[PlannedEvent, ...]

    def only(self, events: Sequence[PlannedEvent]) -> Self:
        """Return the same plan with fewer events."""
        return replace(self, events=tuple(events))

    def as_json(self) -> str:
        """Return the plan as text for :func:`read`."""
        return json.dumps(asdict(self), indent=1)


def read(text: str) -> Plan:
    """Return the plan from a text of :meth:`Plan.as_json`."""
    body = json.loads(text)
    events = tuple(PlannedEvent(**each) for each in body.pop("events"))
    return Plan(shape=Shape(**body.pop("shape")), events=events, **body)


def draw_plan(seed: int, shape: Shape | None = None) -> Plan:
    """Return the plan of a seed."""
    return _Draw(seed, shape or Shape()).plan()


class _Draw:
    """Draws one plan."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.seed, self.shape = seed, shape
        self.chance = random.Random(f"plan {seed}")
        begin, self.zone = self.chance.choice(BEGINNINGS)
        self.start_us = round(datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp()) * 1_000_000
        self.tenants = [f"t{number}" for number in range(shape.tenants)]
        self.names: list[str] = []

    def plan(self) -> Plan:
        settings = self._settings()
        job_s = self.chance.choice((0.001, 0.004, 0.02)) if self.shape.job_s is None else self.shape.job_s
        events = [self._make("create", self._create(), 0.01 * number) for number in range(self.shape.schedules)]
        operations = self._verbs()
        weights = [weight * (10 if verb == self.shape.focus else 1) for weight, verb, _given in operations]
        for _ in range(round(self.shape.seconds * self.shape.trouble)):
            _weight, verb, given = self.chance.choices(operations, weights)[0]
            at_s = round(self.chance.uniform(1, self.shape.seconds), 3)
            events.append(self._make(verb, given(), at_s))
        events.sort(key=lambda each: each.at_s)
        return Plan(self.seed, self.shape, self.start_us, self.zone, settings, job_s, tuple(events))

    @staticmethod
    def _make(verb: str, given: dict[str, Any], at_s: float) -> PlannedEvent:
        return PlannedEvent(at_s, verb, given)

    def _settings(self) -> dict[str, Any]:
        pick = self.chance.choice
        # With long transactions small batches cannot keep up, and late work proves nothing.
        batches = (2, 3, 40, 500) if self.shape.job_s is None else (100, 200, 400, 500)
        settings = {
            "slots": pick((4, 16, 64)) if self.shape.slots is None else self.shape.slots,
            "lease_s": pick((6.0, 6.0, 3.0)),
            "poll_s": pick((0.25, 0.5, 1.0)),
            "tick_batch": pick(batches[1:]),
            "commit_batch": pick((batches[0], *batches[2:])),
            "grace_s": pick((5.0, 30.0)),
            "drain_s": pick((0.5, 5.0)),
            "catch_up_max": pick((5, 20, 100)),
            "concurrent_runs": pick((1, 3, 10)),
            "retention_runs": pick((5, 50, 1000, 1000)),
            "missed_after_s": pick((10.0, 10.0, 3.0)),
        }
        return settings | (SWIFT if self.shape.swift else {})

    def _verbs(self) -> tuple[tuple[int, str, Callable[[], dict[str, Any]]], ...]:
        pick, whole = self.chance.choice, self.chance.randrange
        name = self._name
        return (
            (6, "create", self._create),
            (5, "edit", self._edit),
            (5, "pause", lambda: {"name": name(), "for_s": pick((None, 2, 9, 40)), "fuse": self._fuse()}),
            (7, "resume", lambda: {"name": name(), "fuse": self._fuse()}),
            (2, "delete", lambda: {"name": name(), "fuse": self._fuse()}),
            (4, "run_now", lambda: {"name": name(), "key": pick((None, None, "k1", "k2"))}),
            (3, "once", lambda: {"tenant": pick(self.tenants), "in_s": whole(20), "key": pick((None, "k3"))}),
            (4, "backfill", lambda: {"name": name(), "back_s": pick((5, 30, 120, 900)), "fuse": self._fuse()}),
            (4, "replay", lambda: {"pick": whole(1000), "newest": pick((True, False))}),
            (4, "cancel", lambda: {"pick": whole(1000), "fuse": self._fuse()}),
            (2, "put_script", lambda: {"tenant": pick(self.tenants)}),
            (2, "suspend", lambda: {"tenant": pick(self.tenants), "fuse": self._fuse()}),
            (4, "resume_tenant", lambda: {"tenant": pick(self.tenants), "fuse": self._fuse()}),
            (1, "recreate", lambda: {"tenant": pick(self.tenants), "fuse": self._fuse()}),
            # Faults of machines.
            (8, "crash", lambda: {"node": self._node(), "statement": pick((None, 0, 1, 2, 3, 4, 5, 6, 8, 10, 13, "commit", "after"))}),
            (3, "stop", lambda: {"node": self._node()}),
            (4, "freeze", lambda: {"node": self._node(), "for_s": pick((0.5, 3, 5, 9, 30))}),
            (4, "refuse", lambda: {"node": self._node(), "statement": pick((0, 1, 2, 4, 7, "commit", "after")), "times": pick((1, 1, 3))}),
            (4, "slow", lambda: {"node": self._node(), "by_s": pick((0.1, 1, 5)), "for_s": pick((2, 10))}),
            (2, "step_clock", lambda: {"by_s": pick((-40, -3, -0.5, 0.5, 4, 30, 400))}),
            (1, "sleep", lambda: {"for_s": pick((15, 120, 4000))}),
        )  # fmt: skip

    def _node(self) -> int:
        return self.chance.randrange(self.shape.nodes)

    def _name(self) -> str:
        # Mostly a recent one: older ones may be deleted.
        return self.chance.choice(self.names[-40:])

    def _fuse(self) -> int | None:
        """Draw after how many statements an operation is interrupted; mostly None."""
        return self.chance.randrange(12) if self.chance.random() < 0.2 else None

    def _create(self) -> dict[str, Any]:
        pick = self.chance.choice
        name = f"s{len(self.names)}"
        self.names.append(name)
        tenant = pick(self.tenants)
        return {
            "tenant": tenant,
            "name": name,
            "rule": self._rule(),
            "owed_s": pick((None, None, None, 5, 100)),
            "overlap": pick(("skip", "queue_one", "allow", "allow") if self.shape.swift else OVERLAPS),
            "missed": pick(MISSED),
            "script": "job"
            if self.shape.swift
            else pick(("job", "job", "job", ["job", "next"], ["job", "next", "job"])),
            "retry": pick((None, None, {"attempts": 3, "backoff_s": 3})),
            "jitter_s": pick((0, 0, 0, 0.7, 4, 3600)),
            "expires_s": pick((0, 0, 0, 1, 15)),
            "priority": pick(("high", "normal", "low")),
            "pause_after": pick((0, 0, 0, 2)),
            # No node has both the label of the bound tenant and the second node's name.
            "labels": pick(("", "", "", "", LABEL, "" if tenant == BOUND else "node:n1")),
            "fuse": self._fuse(),
        }

    def _edit(self) -> dict[str, Any]:
        pick = self.chance.choice
        change: dict[str, Any] = {"name": self._name(), "fuse": self._fuse()}
        if self.chance.random() < 0.7:
            change["rule"] = self._rule()
        for field, values in (
            ("missed", MISSED),
            ("overlap", OVERLAPS),
            ("jitter_s", (0, 2)),
            ("script", ("job", ["next", "job"])),
        ):
            if self.chance.random() < 0.25:
                change[field] = pick(values)
        return change

    def _rule(self) -> dict[str, Any]:
        pick = self.chance.choice
        if self.shape.swift:
            return {"kind": pick(("every", "cron")), "s": 1}
        kind = self.chance.choices(("every", "cron", "wall", "union"), (8, 5, 4, 1))[0]
        rule: dict[str, Any]
        if kind == "wall":
            rule = {"kind": "wall", "zone": self.zone, "text": pick(tuple(WALLS)), "gap": pick(("shift", "next", "skip")),
                    "both": pick((True, False))}  # fmt: skip
        elif kind == "union":
            rule = {"kind": "union", "s": pick(([2, 3], [4, 10, 7])), "without": pick(([], [12]))}
        else:
            rule = {"kind": kind, "s": pick((1, 1, 1, 2, 2, 3, 5, 10, 30))}
        if kind == "every" and self.chance.random() < 0.3:
            rule["from_s"] = pick((-7, 0.25, 20))
        if self.chance.random() < 0.05:
            rule["end_s"] = self.chance.randrange(30, max(31, self.shape.seconds))
        return rule
