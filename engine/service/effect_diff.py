"""Formats described effects for people: as the lines of a diff, and as tables of values before and after. Pure."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lodger.engine.effects.effect import FIRST_TOKEN

#: A token as text, of columns with numbers that are shown as text.
_TOKEN = re.compile(r"-9\d{15}", re.ASCII)
_LAST_TOKEN = FIRST_TOKEN - 1_000_000


def lines(effects: Iterable[dict[str, Any]]) -> list[str]:
    """Return the lines of a diff: ``+`` insert, ``~`` change, ``-`` delete, ``@`` mail, event, later run, ``>`` request, ``<`` read.

    Args:
        effects: results of :func:`lodger.engine.effects.effect.describe`.
    """
    shown: list[str] = []
    for effect in effects:
        shown += _one(effect)
    return shown


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One value of an effect: before it, after it, or both; None if there was none or it is not known."""

    field: str
    before: str | None
    after: str | None
    changed: bool = True


@dataclass(frozen=True, slots=True)
class EffectChange:
    """An effect as a table.

    Attributes:
        mark: as in :func:`lines`.
        title: what it changes.
        line: its place in the script (``main.js:3``), if it is known.
    """

    mark: str
    title: str
    rows: tuple[EffectRow, ...]
    line: str | None = None


def changes(effects: Iterable[dict[str, Any]]) -> list[EffectChange]:
    """Return effects with their values before and after; what is sent has its text as values that did not change."""
    return [_table(effect) for effect in effects]


def _table(effect: dict[str, Any]) -> EffectChange:
    head, *texts = _one(effect)
    before = {name: _value(value) for name, value in _pairs(effect, "before")}
    match effect.get("effect"):
        case "insert":
            rows = [EffectRow(name, None, _value(value)) for name, value in _pairs(effect, "values")]
        case "update":
            rows = [EffectRow(name, before.get(name), _value(value)) for name, value in _pairs(effect, "changes")]
        case "increment":
            rows = [EffectRow(name, before.get(name), _sum(effect, name)) for name, _by in _pairs(effect, "amounts")]
        case "delete":
            rows = [EffectRow(name, value, None) for name, value in before.items()]
        case "kv.set":
            rows = [EffectRow("value", None, _value(effect.get("value")))]
        case "kv.add":
            rows = [EffectRow("value", None, _signed(effect.get("amount")))]
        case _:
            rows = [EffectRow("", None, text.strip(), changed=False) for text in texts]
    return EffectChange(head[:1], head[2:], tuple(rows), effect.get("line"))


def _sum(effect: dict[str, Any], name: str) -> str:
    """Return a column after an increment, where its number before is known, with the amount."""
    amount, held = effect["amounts"][name], (effect.get("before") or {}).get(name)
    if type(amount) is int and type(held) is int:
        return f"{held + amount} ({_signed(amount)})"
    return _signed(amount)


def _one(effect: dict[str, Any]) -> list[str]:
    kind, place = effect.get("effect", "?"), f"{effect.get('set', '')} {_value(effect.get('id'))}".strip()
    match kind:
        case "insert":
            return [f"+ {place}", *(f"    {name}: {_value(value)}" for name, value in _pairs(effect, "values"))]
        case "update":
            before = effect.get("before") or {}
            changes = _pairs(effect, "changes")
            return [f"~ {place}", *(_change(name, before, value) for name, value in changes)]
        case "increment":
            return [f"~ {place}", *(_added(effect, name, amount) for name, amount in _pairs(effect, "amounts"))]
        case "delete":
            return [f"- {place}", *(f"    {name}: {_value(value)}" for name, value in _pairs(effect, "before"))]
        case "changes":
            more = ", more wait" if effect.get("more") else ""
            return [f"< {effect.get('count')} changes of {effect.get('set')}{more}"]
        case "kv.set":
            return [f"~ kv {effect.get('key')}", f"    = {_value(effect.get('value'))}"]
        case "kv.delete":
            return [f"- kv {effect.get('key')}"]
        case "kv.add":
            return [f"~ kv {effect.get('key')}", f"    {_signed(effect.get('amount'))}"]
        case "mail":
            body = str(effect.get("text") or effect.get("html") or "")
            copies = "".join(f", {kind} {', '.join(effect[kind])}" for kind in ("cc", "bcc") if kind in effect)
            files = f" (with {', '.join(effect['attachments'])})" if "attachments" in effect else ""
            head = f"@ mail to {', '.join(effect.get('to', ()))}{copies}: {effect.get('subject', '')}{files}"
            return [head, *(f"    {line}" for line in body.splitlines()[:6])]
        case "event":
            return [f"@ event {effect.get('name')}", f"    {_value(effect.get('data'))}"]
        case "run":
            key = f" (key {effect['key']})" if "key" in effect else ""
            return [f"@ run {effect.get('script')} at {effect.get('at')}{key}", f"    {_value(effect.get('input'))}"]
        case "run.cancel":
            return [f"- run {effect.get('run')} of {effect.get('script')}"]
        case "fetch":
            sent = effect.get("status", "") if effect.get("sent") else "not sent"
            body = str(effect.get("body") or "")
            return [
                f"> {effect.get('method')} {effect.get('url')}: {sent}",
                *(f"    {line}" for line in body.splitlines()[:6]),
            ]
        case _:
            return [f"* {json.dumps(effect, ensure_ascii=False)}"]


def _pairs(effect: dict[str, Any], name: str) -> list[tuple[str, Any]]:
    return list((effect.get(name) or {}).items())


def _change(name: str, before: dict[str, Any], value: object) -> str:
    if name in before:
        return f"    {name}: {_value(before[name])} → {_value(value)}"
    return f"    {name}: {_value(value)}"


def _added(effect: dict[str, Any], name: str, amount: object) -> str:
    before = effect.get("before") or {}
    held = f" (current value {_value(before[name])})" if before.get(name) is not None else ""
    return f"    {name}: {_signed(amount)}{held}"


def _signed(amount: object) -> str:
    shown = _value(amount)
    return shown if shown.startswith("-") else f"+{shown}"


def _value(value: object) -> str:
    number = int(value) if isinstance(value, str) and _TOKEN.fullmatch(value) else value
    if type(number) is int and _LAST_TOKEN < number < FIRST_TOKEN:
        return f"(new {FIRST_TOKEN - number})"  # a key that the database will generate
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("$instant"), str):
        return str(value["$instant"])
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
