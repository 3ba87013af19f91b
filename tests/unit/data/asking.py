"""Random filters, orders and aggregates in the script's own JSON, from one seed; what each tenant's rows may look like."""

import random
from typing import Any

from tests.unit.data.shop import READ

TEXTS = [
    "", "a", "A", "b", "aa", "é", "e\u0301", "Z", "z", "%", "_", "a%", "\U0001f600", "\uffff", "' OR 1=1 --",
    "canary", "10", "two",
]  # fmt: skip
DECIMALS = ["0", "0.10", "0.1", "12.34", "12.345", "-3.00", "99999999.99", "0.3", "1e1"]
KINDS: dict[str, str] = {
    "id": "int", "customer_id": "int", "state": "text", "note": "text", "items": "int", "serial": "bigint", "weight": "float",
    "total": "decimal", "paid": "bool", "modified": "instant", "day": "date", "ref": "uuid", "extra": "json", "blob": "bytes",
}  # fmt: skip
assert set(KINDS) == set(READ)
EMAILS = ["a@x", "A@x", "b@x", "", "é@x", "canary@x"]
UUIDS = [f"0000000{n}-0000-4000-8000-00000000000{n}" for n in range(4)]
INSTANTS = [
    "2026-01-01T00:00:00.000000Z",
    "2026-01-01T00:00:00.000001Z",
    "2026-06-01T12:00:00+02:00",
    "1969-12-31T23:59:59.5Z",
    "9999-12-31T23:59:59Z",
]


class Asker:
    """Draws what a script could ask."""

    def __init__(self, seed: int, keys: int = 60) -> None:
        self.draw = random.Random(seed)
        self.keys = keys

    def one(self, items: Any) -> Any:
        return self.draw.choice(list(items))

    def value(self, kind: str) -> Any:
        draw = self.draw
        if kind == "int":
            return draw.choice([0, 1, 2, 3, 7, -1, 2**31, draw.randrange(self.keys + 5)])
        if kind == "bigint":
            return draw.choice(["0", "7", str(2**63 - 1), str(-(2**63)), str(2**53 + 1), 5])
        if kind == "float":
            return draw.choice([0, 0.5, -1.25, 3, 1e10, 0.1])
        if kind == "decimal":
            return draw.choice(DECIMALS[:-1])
        if kind == "bool":
            return draw.choice([True, False])
        if kind == "instant":
            return {"$instant": draw.choice(INSTANTS)}
        if kind == "date":
            return draw.choice(["2026-01-01", "1900-02-28", "2026-01-02"])
        if kind == "uuid":
            return draw.choice(UUIDS)
        if kind == "bytes":
            return {"$bytes": draw.choice(["", "AA==", "AP8Q"])}
        if kind == "json":
            return draw.choice([{"a": 1}, [1, None], "x", 5, True])
        return draw.choice(TEXTS)

    def path_value(self) -> Any:
        return self.value(self.one(["int", "float", "bool", "text", "instant"])) if self.draw.random() > 0.1 else None

    def row(self) -> dict[str, Any]:
        row = {
            name: self.value(kind) if self.draw.random() > 0.3 else None
            for name, kind in KINDS.items()
            if name not in ("id", "customer_id")
        }
        row["total"] = self.one(["0", "0.10", "12.34", "-3.00", "99999.99", "0.3", None])
        return row | {"state": self.value("text"), "items": abs(self.draw.randrange(50))}

    def document(self) -> dict[str, Any]:
        values: dict[str, Any] = {name: self.path_value() for name in ("a", "b", "c") if self.draw.random() > 0.3}
        if self.draw.random() > 0.5:
            values["deep"] = {"x": self.path_value(), "y": {"z": self.path_value()}}
        if self.draw.random() > 0.8:
            values[self.one("abc")] = self.one(
                [
                    [1, 2],
                    [],
                    [None, [1]],
                    [True, 0.5, -1, "a"],
                    [self.path_value(), self.path_value()],
                    {"k": 1},
                    {"$bytes": "AA=="},
                    {"$object": {"$instant": 1}},
                ]
            )
        if self.draw.random() > 0.8:
            values["deep"] = self.listed()
        return values or {"a": 0}

    def listed(self) -> Any:
        """Return what lists the path deep.y.z may lead through."""
        ends = [self.path_value(), [self.path_value(), [1]], [], {"z": 1}]
        inner = [{"z": self.one(ends)}, [{"z": self.one(ends)}], {"z": self.one(ends)}, {}, 5, None]
        return self.one(
            [
                [{"x": self.path_value()}, {"x": self.path_value(), "y": {"z": self.one(ends)}}],
                [{"x": [self.path_value()], "y": inner[: self.draw.randrange(6)]}, "x", [{"x": self.path_value()}]],
                {"x": self.path_value(), "y": inner[: self.draw.randrange(6)]},
                [],
            ]
        )

    def related(self) -> dict[str, Any]:
        """Return a condition on the customer that an order belongs to."""
        if self.draw.random() < 0.5:
            return {"customer.email": self.one([None, {"ne": self.one(EMAILS)}, self.one(EMAILS), {"in": self.draw.sample(EMAILS, 2)},
                                                {"lt": self.one(EMAILS)}, {"contains": "@"}, {"startsWith": self.one(TEXTS)}])}  # fmt: skip
        return {"customer.id": self.one([None, {"gt": 2}, self.draw.randrange(8), {"ne": 3}, {"in": [1, 2, None]}])}

    def field(self, documents: bool) -> str:
        if documents:
            return str(self.one(["a", "b", "c", "deep.x", "deep.y.z", "deep", "id", "a.b"]))
        return str(self.one(KINDS))

    def condition(self, documents: bool) -> dict[str, Any]:
        if not documents and self.draw.random() < 0.12:
            return self.related()
        name = self.field(documents)
        kind = "any" if documents and name != "id" else KINDS.get(name, "text")
        if documents and name == "id":
            kind = "text"
        make = self.path_value if kind == "any" else (lambda: self.value(kind))
        if self.draw.random() < 0.15:
            return {name: None}
        if self.draw.random() < 0.3 and kind != "json":
            return {name: make()}
        words = ["eq", "ne", "in", *(["lt", "lte", "gt", "gte"] if kind not in ("json", "bytes") else [])]
        words += ["contains", "startsWith"] if kind in ("text", "any") else []
        words += ["notIn", "exists"] if kind != "json" else []
        words += ["has", "hasAny", "hasAll"] if kind == "any" else []
        if kind == "json":
            return {name: {self.one(["eq", "ne"]): None if self.draw.random() < 0.9 else {"$wrong": 1}}}
        ops = {}
        for op in self.draw.sample(words, self.draw.randrange(1, 3)):
            if op == "exists":
                ops[op] = self.draw.random() < 0.5
            elif op in ("in", "notIn"):
                ops[op] = [make() if self.draw.random() > 0.1 else None for _ in range(self.draw.randrange(4))]
            elif op in ("contains", "startsWith"):
                ops[op] = self.one(TEXTS)
            elif op in ("hasAny", "hasAll"):
                ops[op] = [each for each in (make(), make()) if each is not None]
            elif op == "has":
                ops[op] = self.one([1, 2, "a", True])
            else:
                ops[op] = make()
        if ops.keys() <= {"contains", "startsWith"} and self.draw.random() < 0.5:
            ops["ignoreCase"] = True
        return {name: ops}

    def filter(self, documents: bool, depth: int = 0) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for _ in range(self.draw.randrange(0 if depth == 0 else 1, 3)):
            made |= self.condition(documents)
        if depth < 3 and self.draw.random() < 0.5:
            made["not"] = self.filter(documents, depth + 1)
        for word in ("and", "or"):
            if depth < 3 and self.draw.random() < 0.35:
                made[word] = [self.filter(documents, depth + 1) for _ in range(self.draw.randrange(3))]
        return made

    def order(self, documents: bool) -> Any:
        names = [self.field(documents) for _ in range(self.draw.randrange(3))]
        return [
            ("-" if self.draw.random() < 0.5 else "") + name
            for name in names
            if KINDS.get(name) not in ("json", "bytes") or documents
        ]

    def aggregate(self, documents: bool) -> dict[str, Any]:
        if documents:
            numbers = ends = ["a", "b", "deep.x"]
            groups = ["a", "c", "deep.y.z", "id"]
        else:
            numbers = ["items", "serial", "total"]
            ends = [name for name, kind in KINDS.items() if kind not in ("json", "bytes")]
            groups = [name for name, kind in KINDS.items() if kind != "json"]
        wanted: dict[str, Any] = {
            "sum": self.one(numbers),
            "avg": self.one(numbers),
            "min": self.one(ends),
            "max": self.one(ends),
        }
        if self.draw.random() < 0.5:
            wanted["groupBy"] = self.draw.sample(groups, self.draw.randrange(1, 3))
            if self.draw.random() < 0.15:
                at = "a" if documents else next(name for name, kind in KINDS.items() if kind == "instant")
                unit = self.one(["day", "week", "month"])
                wanted["groupBy"].append(
                    {unit: at, "tz": self.one(["Europe/Berlin", "Asia/Kathmandu", "America/Sao_Paulo"])}
                )
        return wanted
