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


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One value of an effect: before it, after it, or both; None if there was none or it is not known. ``text`` is its line."""

    field: str
    before: str | None
    after: str | None
    text: str
    changed: bool = True


@dataclass(frozen=True, slots=True)
class EffectChange:
    """An effect as a table.

    Attributes:
        mark: as in :func:`lines`.
        title: the changed row, key, or receiver.
        line: its place in the script (``main.js:3``), if it is known.
    """

    mark: str
    title: str
    rows: tuple[EffectRow, ...]
    line: str | None = None


def lines(effects: Iterable[dict[str, Any]]) -> list[str]:
    """Return the lines of a diff: ``+`` insert, ``~`` change, ``-`` delete, ``@`` mail, event, later run, ``>`` request, ``<`` read.

    Args:
        effects: results of :func:`lodger.engine.effects.effect.describe`.
    """
    return [
        line
        for each in changes(effects)
        for line in (f"{each.mark} {each.title}", *(f"    {row.text}" for row in each.rows))
    ]


def changes(effects: Iterable[dict[str, Any]]) -> list[EffectChange]:
    """Return effects with their values before and after; mails, events and requests have their text as values that did not change."""
    return [
        EffectChange(head[:1], head[2:], tuple(rows), effect.get("line"))
        for effect in effects
        for head, rows in [_shown(effect)]
    ]


def _shown(effect: dict[str, Any]) -> tuple[str, list[EffectRow]]:
    """Return the title of an effect, which begins with its mark, and its values before and after."""
    kind, place = effect.get("effect", "?"), f"{effect.get('set', '')} {_value(effect.get('id'))}".strip()
    before = {name: _value(value) for name, value in _pairs(effect, "before")}
    match kind:
        case "insert":
            values = [(name, _value(value)) for name, value in _pairs(effect, "values")]
            return f"+ {place}", [EffectRow(name, None, value, f"{name}: {value}") for name, value in values]
        case "update":
            values = [(name, _value(value)) for name, value in _pairs(effect, "changes")]
            return f"~ {place}", [_changed(name, before.get(name), value) for name, value in values]
        case "increment":
            return f"~ {place}", [_added(effect, name, amount) for name, amount in _pairs(effect, "amounts")]
        case "delete":
            return f"- {place}", [EffectRow(name, value, None, f"{name}: {value}") for name, value in before.items()]
        case "changes":
            more = ", more wait" if effect.get("more") else ""
            return f"< {effect.get('count')} changes of {effect.get('set')}{more}", []
        case "kv.set":
            text = _value(effect.get("value"))
            return f"~ kv {effect.get('key')}", [EffectRow("value", None, text, f"= {text}")]
        case "kv.delete":
            return f"- kv {effect.get('key')}", []
        case "kv.add":
            text = _signed(effect.get("amount"))
            return f"~ kv {effect.get('key')}", [EffectRow("value", None, text, text)]
        case "mail":
            copies = "".join(f", {kind} {', '.join(effect[kind])}" for kind in ("cc", "bcc") if kind in effect)
            files = f" (with {', '.join(effect['attachments'])})" if "attachments" in effect else ""
            head = f"@ mail to {', '.join(effect.get('to', ()))}{copies}: {effect.get('subject', '')}{files}"
            return head, _same(str(effect.get("text") or effect.get("html") or ""))
        case "event":
            return f"@ event {effect.get('name')}", _same(_value(effect.get("data")))
        case "run":
            key = f" (key {effect['key']})" if "key" in effect else ""
            return f"@ run {effect.get('script')} at {effect.get('at')}{key}", _same(_value(effect.get("input")))
        case "run.cancel":
            return f"- run {effect.get('run')} of {effect.get('script')}", []
        case "function":
            sent = effect.get("status", "") if effect.get("sent") else "not called, null is returned"
            params = (effect.get("params") or {}).items()
            return f"> {effect.get('name')}: {sent}", _same(
                "\n".join(f"{name}: {_value(value)}" for name, value in params)
            )
        case "fetch":
            sent = effect.get("status", "") if effect.get("sent") else "not sent"
            return f"> {effect.get('method')} {effect.get('url')}: {sent}", _same(str(effect.get("body") or ""))
        case _:
            return f"* {json.dumps(effect, ensure_ascii=False)}", []


def _same(text: str) -> list[EffectRow]:
    """Return the first lines of a text as values that did not change."""
    return [EffectRow("", None, line, line, changed=False) for line in text.splitlines()[:6]]


def _changed(name: str, before: str | None, after: str) -> EffectRow:
    """Return the row of an updated column, with its value before, if known, and after."""
    return EffectRow(name, before, after, f"{name}: {after}" if before is None else f"{name}: {before} → {after}")


def _added(effect: dict[str, Any], name: str, amount: object) -> EffectRow:
    """Return a column after an increment: the sum if its number before is known, and the amount."""
    held, more = (effect.get("before") or {}).get(name), _signed(amount)
    total = f"{held + amount} ({more})" if isinstance(amount, int) and isinstance(held, int) else more
    if held is None:
        return EffectRow(name, None, total, f"{name}: {more}")
    return EffectRow(name, _value(held), total, f"{name}: {more} (current value {_value(held)})")


def _pairs(effect: dict[str, Any], name: str) -> list[tuple[str, Any]]:
    """Return names and values of a part of an effect."""
    return list((effect.get(name) or {}).items())


def _signed(amount: object) -> str:
    """Return an amount with its sign."""
    shown = _value(amount)
    return shown if shown.startswith("-") else f"+{shown}"


def _value(value: object) -> str:
    """Return a value of an effect as text for people."""
    number = int(value) if isinstance(value, str) and _TOKEN.fullmatch(value) else value
    if type(number) is int and _LAST_TOKEN < number < FIRST_TOKEN:
        return f"(new {FIRST_TOKEN - number})"  # a key that the database will generate
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("$instant"), str):
        return str(value["$instant"])
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
