"""Every verb × every argument × hostile values of its kind, on both databases: refused in words or taken, never a fault.

Over HTTP many of these cannot be said; Python and the command line can say all of them.
"""

import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from tests.api.every_verb import carry_out_every_verb
from tests.store.verbs import every_verb
from tests.store.virtual_clock import EPOCH, VirtualClock

from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.features import TABLE
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring
from lodger.sandbox.errors import SandboxError

ABSENT = "019b76da-a800-7003-ab74-17aa3c0f0e2d"
#: What is good for an argument that must be given.
GOOD: dict[str, Any] = {
    "tenant_id": "acme", "name": "job", "script": "job", "schedule": "s", "schedule_id": ABSENT, "action_id": ABSENT, "rules": "every 60s",
    "source": "export default () => 1", "url": "https://example.com/", "value": "a secret of length", "role": "admin", "token": "x",
    "holder": "me", "collection": "carts", "path": "city", "addresses": ["a@example.com"], "held": ["kv"], "given": "kv", "taken": "kv",
    "at": EPOCH + timedelta(days=1), "delay": 5, "start": EPOCH - timedelta(hours=1), "end": EPOCH, "version": 1, "older": 1,
    "revision": 1, "limits": {},
}  # fmt: skip
TEXTS = (
    "\0",
    "a\0b",
    "\ud800",
    "x" * 100_000,
    "",
    "..",
    "' OR 1=1 --",
    "\u202e",
    "%00",
    "@platform",
    "NaN",
)
NUMBERS: dict[type, tuple[Any, ...]] = {
    int: (-1, 0, 2**31, 2**63, 10**30, -(10**30), True),
    float: (-1.0, 0.0, math.nan, math.inf, -math.inf, 1e300, 1.7e308, 10**400),
}
INSTANTS = (
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime(2027, 1, 1),
)  # the last is naive
DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]
VALUES = (DEEP, {"a\0": "\0"}, ["\ud800"], {"x": math.nan}, "x" * 1_000_000, 10**400)
OBJECTS: tuple[dict[str, Any], ...] = (
    {"a\0": 1}, {"cpu_ms": 10**400}, {"cpu_ms": "x"}, {"cpu_ms": None}, {"cpu_ms": math.nan}, {"cpu_ms": DEEP}, {"cpu_ms": True},
    {"": 1}, {"runs_per_day": -1}, {"runs_per_day": 2**63}, {"attempts": 10**30}, {"gap": DEEP}, {"attempts": "x", "backoff_s": math.inf},
)  # fmt: skip
#: Verbs that are slow, or that would take away what the others stand on; each is attacked in files of its own.
LEFT_OUT = {
    "scripts.dry_run",
    "scripts.check",
    "scripts.put_handler",
    "secrets.rotate",
    "tenants.delete",
    "metrics.text",
}
NUMBER = count()
REFUSALS = (InputError, Unavailable, SandboxError)


def hostile(hint: Any) -> Iterator[Any]:
    """Yield hostile values for an argument of this type."""
    kinds = {hint} if get_origin(hint) is Mapping else {hint, *get_args(hint)}
    if str in kinds:
        yield from TEXTS
    for kind, numbers in NUMBERS.items():
        if kind in kinds:
            yield from numbers
    if datetime in kinds:
        yield from INSTANTS
    if timedelta in kinds:
        yield from (timedelta.max, timedelta.min)
    if Any in kinds:
        yield from VALUES
    if any(get_origin(kind) is Mapping for kind in kinds):
        yield from OBJECTS


def good(name: str, hint: Any) -> Any:
    """Return what is good for an argument; of one that is not in the table something of its kind."""
    if name in GOOD:
        return GOOD[name]
    kinds = {hint, *get_args(hint)}
    return next((made for kind, made in ((str, "x"), (int, 1), (float, 1.0), (bytes, b"x")) if kind in kinds), [])


def shown(value: object) -> str:
    return "too deep to show" if value is DEEP else repr(value)[:40]


def calls(engine: Engine, verb: str) -> Iterator[tuple[str, Any, Callable[[], object]]]:
    """Yield calls of a verb, each with one hostile argument: its name, the value, and a function that makes the call."""
    noun, name = verb.split(".")
    function = getattr(TABLE.nouns[noun], name)
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    # What is made has a name of its own each time, or it would be refused for that.
    fresh = {"tenants.create": "tenant_id", "schedules.create": "name"}.get(verb)
    positional = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_POSITIONAL]
    many = [each for each in parameters if each.kind is each.VAR_POSITIONAL]
    bound = getattr(getattr(engine, noun), name)
    for attacked in parameters:
        for value in hostile(hints[attacked.name]):
            given = {each.name: good(each.name, hints[each.name]) for each in positional}
            if fresh:
                given[fresh] = f"n{next(NUMBER)}"
            given[attacked.name] = value
            rest = [value if each is attacked else good(each.name, hints[each.name]) for each in many]
            first = [given.pop(each.name) for each in positional[: len(positional) if many else 0]]
            named = {key: each for key, each in given.items() if key not in {one.name for one in many}}
            yield attacked.name, value, lambda first=first, rest=rest, named=named: bound(*first, *rest, **named)


@pytest.fixture
def engine(url: str, tmp_path: Path) -> Iterator[Engine]:
    Keyring(tmp_path / "keys").add()
    settings = Settings(sqlite_synchronous="NORMAL", secret_keys=tmp_path / "keys")
    with Engine.open(url, clock=VirtualClock(), settings=settings) as opened:
        opened.tenants.create("acme")
        opened.scripts.put("acme", "job", "export default () => 1")
        opened.schedules.create("acme", "s", script="job", rules="every 60s")
        yield opened


def test_no_verb_faults_whatever_it_is_given(engine: Engine, subtests: pytest.Subtests, kind: str) -> None:
    verbs = sorted(every_verb(engine) - LEFT_OUT)
    # PostgreSQL refuses a few values more; the suite asks every eighth verb there.
    for verb in verbs[:: 8 if kind == "postgresql" and os.environ.get("LODGER_FUZZ") != "whole" else 1]:
        with subtests.test(verb=verb):
            for name, value, call in calls(engine, verb):
                try:
                    answer = call()
                    if inspect.isgenerator(answer):
                        list(answer)
                except REFUSALS:
                    continue
                except Exception as fault:
                    raise AssertionError(f"{verb}({name}={shown(value)}): {type(fault).__name__}: {fault}") from fault
    assert engine.tenants.get("acme").id == "acme"


class Asked:
    """An engine whose calls for a tenant are made for one that does not exist first; ``answered`` are those that were answered."""

    def __init__(self, of: Any, answered: set[str], path: str = "") -> None:
        self.of, self.answered, self.path = of, answered, path

    def __getattr__(self, name: str) -> Any:
        return Asked(getattr(self.of, name), self.answered, f"{self.path}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        values = {name: "nobody" if name in ("tenant", "tenant_id") else value for name, value in named.items()}
        if self.path != ".tenants.create" and (arguments[:1] == ("acme",) or values != named):
            try:
                self.of(*("nobody" if each == "acme" else each for each in arguments), **values)
                self.answered.add(self.path.removeprefix("."))
            except (Conflict, InputError, NotFound):
                pass
        return self.of(*arguments, **named)


def test_no_verb_answers_for_a_tenant_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Keyring(tmp_path / "keys").add()
    monkeypatch.setenv("LODGER_SECRET_KEYS", str(tmp_path / "keys"))
    answered: set[str] = set()
    with Engine.open(str(tmp_path / "ledger.db"), clock=VirtualClock()) as engine:
        carry_out_every_verb(Asked(engine, answered), engine, lambda _verb, answer: answer)
    # A tenant that was deleted has a history.
    assert answered == {"audit.count", "audit.export", "audit.list"}
