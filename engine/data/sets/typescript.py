"""TypeScript declarations of exposed datasets, so that editors complete columns and mark wrong writes."""

import json
from collections.abc import Iterable, Mapping

from lodger.engine.core.functions import PlatformFunction
from lodger.engine.core.params import Field
from lodger.engine.data.sets.dataset import KeySource, TableDataset
from lodger.engine.data.values.fields import ColumnField
from lodger.engine.data.values.kinds import Kind

#: What a script is given of each kind, and what it may say.
GIVEN = dict.fromkeys(Kind, "string") | {
    Kind.INT: "number",
    Kind.FLOAT: "number",
    Kind.BOOL: "boolean",
    Kind.INSTANT: "Instant",
    Kind.JSON: "any",
    Kind.BYTES: "Uint8Array",
}
SAID = GIVEN | {
    Kind.BIGINT: "string | number | bigint",
    Kind.DECIMAL: "string | number",
    Kind.INSTANT: "Instant | Date | string",
}
_NOTES = {
    Kind.BIGINT: "A 64-bit integer, as text.",
    Kind.DECIMAL: "An exact decimal, as text.",
    Kind.DATE: "A date such as 2026-11-21.",
    Kind.UUID: "A UUID.",
}


def declarations(
    sets: Iterable[TableDataset], targets: dict[str, dict[str, str]], functions: Iterable[PlatformFunction] = ()
) -> str:
    """Return the text of a ``.d.ts`` file.

    Args:
        targets: names of related datasets by relation name, for each dataset.
    """
    parts = ["// The sets and functions of this platform, written by `lodger init`; do not edit.\n"]
    members = []
    for rows in sets:
        name = rows.name[0].upper() + rows.name[1:]
        led = targets.get(rows.name, {})
        parts.append(_row(rows, f"{name}Row", led))
        written = "never"
        if rows.insertable or rows.writable:
            written = f"{name}Values"
            parts.append(_values(rows, written))
        members.append(f"  readonly {rows.name}: Rows<{name}Row, {written}>;")
    parts.append("interface Db {\n" + "\n".join(members) + "\n}\n")
    return "\n".join([*parts, *_spaces((each.name, signature(each), each.help) for each in functions)])


def of_tenant(sets: Mapping[str, Mapping[str, str]], functions: Iterable[tuple[str, str, str]]) -> str:
    """Return the declarations for the editor: kinds of columns by dataset; of each function its name, its signature and its description.

    Rows may have further members, those of related datasets.
    """
    members = (
        f"  readonly {name}: Rows<Row & {{ {' '.join(f'{each}: {GIVEN[Kind(kind)]};' for each, kind in columns.items())} }}>;"
        for name, columns in sets.items()
    )
    return "\n".join(["interface Db {", *members, "}", *_spaces(functions)])


def _spaces(functions: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the declarations of functions by their spaces."""
    spaces: dict[str, list[str]] = {}
    for name, signed, about in functions:
        note = f"  /** {about.replace('*/', '* /')} */\n" if about else ""
        spaces.setdefault(name.partition(".")[0], []).append(f"{note}  {signed};")
    parts = [f"declare const {space}: {{\n" + "\n".join(lines) + "\n};\n" for space, lines in spaces.items()]
    if spaces:
        parts.append("interface Run {\n" + "\n".join(f"  readonly {each}: typeof {each};" for each in spaces) + "\n}\n")
    return parts


def signature(function: PlatformFunction) -> str:
    """Return a function as a method of its space: ``score(id: number): Promise<any>``."""
    returned = "any" if function.returns is None else _of_param(function.returns[0])
    needed = max((at for at, field in enumerate(function.fields) if field.required), default=-1)
    taken = ", ".join(
        f"{field.name}{'' if at <= needed else '?'}: {_of_param(field)}{'' if field.required or at > needed else ' | null'}"
        for at, field in enumerate(function.fields)
    )
    return f"{function.name.partition('.')[2]}({taken}): Promise<{returned}>"


_PARAMS = {
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "instant": "Instant | Date | string",
    "list": "string[]",
}


def _of_param(field: Field) -> str:
    """Return the TypeScript type of a param."""
    if field.choices:
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in field.choices)
    return _PARAMS.get(field.type, "string")


def _row(rows: TableDataset, name: str, led: dict[str, str]) -> str:
    """Return the TypeScript interface of a dataset's rows."""
    lines = []
    for item in rows.shown:
        lines += [f"  /** {_NOTES[item.kind]} */"] if item.kind in _NOTES else []
        lines.append(f"  {item.name}: {_type(item, GIVEN)};")
    for link, target in led.items():
        there = target[0].upper() + target[1:]
        lines += [f'  /** With `include: "{link}"`. */', f"  {link}?: {there}Row | null;"]
    return _interface(name, lines)


def _values(rows: TableDataset, name: str) -> str:
    """Return the TypeScript interface of the values that a script can write."""
    needed = rows.required | ({rows.key.name} if rows.key_source is KeySource.GIVEN else set())
    written = (item for item in rows.shown if item.name in rows.writable)
    return _interface(
        name, (f"  {item.name}{'' if item.name in needed else '?'}: {_type(item, SAID)};" for item in written)
    )


def _interface(name: str, lines: Iterable[str]) -> str:
    """Return a TypeScript interface with these lines."""
    return "\n".join([f"interface {name} {{", *lines, "}\n"])


def _type(item: ColumnField, table: dict[Kind, str]) -> str:
    """Return the TypeScript type of a column."""
    said = (
        " | ".join(json.dumps(each, ensure_ascii=False) for each in item.choices) if item.choices else table[item.kind]
    )
    return f"{said} | null" if item.nullable and item.kind is not Kind.JSON else said
