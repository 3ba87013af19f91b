"""``lodger next``: when a rule fires, in words and instants. Pure: no database, no server."""

import json
import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from lodger.engine.cli.answer import AsJson, say, table, write_json, zulu
from lodger.engine.cli.failure import Teaching, Usage, described, human, under

Kind = Annotated[
    str | None, typer.Option(help="Language of the rule: rrule, cron, schyntax, every, once; recognised when left out.")
]
_MOST = 10_000
_FIELDS = frozenset({"id", "rule", "kind", "dtstart", "tz", "after", "inclusive", "n", "previous"})


def next_slots(
    rule: Annotated[
        str | None, typer.Argument(help="The rule, such as 'FREQ=DAILY;BYHOUR=9' or '0 9 * * 1-5'.")
    ] = None,
    kind: Kind = None,
    dtstart: Annotated[str | None, typer.Option(help="Where the rule begins, local to its zone.")] = None,
    tz: Annotated[str | None, typer.Option(help="IANA time zone, such as Europe/Berlin; UTC when left out.")] = None,
    after: Annotated[str | None, typer.Option(help="Slots after this instant; now when left out.")] = None,
    inclusive: Annotated[bool, typer.Option("--inclusive", help="A slot at that very instant counts.")] = False,
    previous: Annotated[
        bool, typer.Option("--previous", help="Slots before the instant instead, latest first.")
    ] = False,
    n: Annotated[int, typer.Option("-n", min=1, max=_MOST, help="How many slots.")] = 5,
    batch: Annotated[
        bool, typer.Option("--batch", help="Answer JSON lines from stdin, one line each, in order.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a rule's sentence and its next slots."""
    if batch:
        _answer_lines()
        return
    if rule is None:
        raise Usage("rule_missing", "no rule was given", fix="lodger next 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0'")
    request = {"rule": rule, "kind": kind, "dtstart": dtstart, "tz": tz, "after": after}
    request |= {"inclusive": inclusive, "n": n, "previous": previous}
    body = _answered(request)
    error = body.get("error")
    if as_json:
        body.pop("id", None)
        write_json(body)
    elif error:
        sys.stderr.write(_refused(rule, error) + "\n")
    else:
        _show(body, tz or "UTC", previous=previous)
    if error:
        raise typer.Exit(1)


def _now() -> datetime:
    from lodger.engine.clock import SystemClock, from_us

    return from_us(SystemClock().now_us())


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    """Ask the pure core; a refusal becomes the ``error`` of the answer."""
    from lodger.engine.recurrence.query import answer

    request = {name: value for name, value in request.items() if value is not None}
    request.setdefault("after", zulu(_now()))
    try:
        return answer(request)
    except Exception as error:
        if not isinstance(error, Teaching):
            raise
        return {"id": request.get("id"), "error": described(error)}


def _answer_lines() -> None:
    """JSON lines in, JSON lines out, same order, one answer per line whatever the line holds."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            sys.stdout.write(json.dumps(_line(line, number), ensure_ascii=False, separators=(",", ":")) + "\n")
            sys.stdout.flush()


def _line(line: bytes, number: int) -> dict[str, Any]:
    def refused(code: str, message: str, **more: object) -> dict[str, Any]:
        return {"id": None, "error": {"code": code, "message": message, "line": number, **more}}

    try:
        request = json.loads(line)
    except json.JSONDecodeError as error:
        return refused("bad_json", f"the line is not JSON: {error.msg}", index=error.pos)
    except (UnicodeDecodeError, RecursionError) as error:
        return refused("bad_json", f"the line is not JSON: {error}")
    if not isinstance(request, dict):
        return refused("bad_request", "the line is not a JSON object")
    if unknown := sorted(set(request) - _FIELDS):
        return refused("field_unknown", f"there is no field {unknown[0]!r}") | {"id": request.get("id")}
    if not isinstance(request.get("rule"), str):
        return refused("rule_missing", "the field rule is missing or no text") | {"id": request.get("id")}
    many = request.get("n")
    if many is not None and (isinstance(many, bool) or not isinstance(many, int) or not 1 <= many <= _MOST):
        return refused("n_out_of_range", f"n is a whole number from 1 to {_MOST}") | {"id": request.get("id")}
    return {"id": request.get("id")} | _answered(request)


def _refused(rule: str, error: dict[str, Any]) -> str:
    head, _, rest = human(error).partition("\n")
    index = error.get("index")
    place = under(rule, index) if isinstance(index, int) else ""
    return "\n".join(part for part in (head, place, rest) if part)


def _show(body: dict[str, Any], tz: str, *, previous: bool) -> None:
    from zoneinfo import ZoneInfo

    say(f"{body['text']}  ({body['kind']})")
    if body.get("never"):
        say(f"It never fires: {body.get('reason')}")
        return
    slots = [datetime.fromisoformat(text) for text in body["next"]]
    if not slots:
        say("No slot before that instant." if previous else "No slot after that instant.")
        return
    zone, now, shifted = ZoneInfo(body.get("tz") or tz), _now(), set(body.get("shifted") or ())
    rows = []
    for number, (text, slot) in enumerate(zip(body["next"], slots, strict=True), 1):
        mark = "moved by daylight saving" if text in shifted or number - 1 in shifted else ""
        local = slot.astimezone(zone)
        rows.append(
            (
                number,
                f"{local:%a %Y-%m-%d %H:%M:%S %Z}",
                f"{slot.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}",
                _away(slot, now),
                mark,
            )
        )
    table(("", f"local time ({zone.key})", "UTC", "from now", ""), rows)


def _away(slot: datetime, now: datetime) -> str:
    from lodger.engine.span import span

    seconds = (slot - now).total_seconds()
    return f"in {span(seconds)}" if seconds >= 0 else f"{span(-seconds)} ago"
