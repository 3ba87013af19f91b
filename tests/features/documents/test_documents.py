"""Documents of collections, found and changed by people as scripts find and change them. On both databases."""

import gc
import json
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.sql.compiler import SQLCompiler
from tests.store.bench import Bench

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.store.schema import feeds

AT = {"$instant": "2027-01-31T09:00:00.000000Z"}
CARTS: dict[str, dict[str, Any]] = {
    "a": {"city": "Bonn", "total": 12, "at": AT},
    "b": {"city": "Kiel", "total": 9},
    "c/d": {"city": "Bonn", "total": 15, "lines": [{"n": 1}]},
}


def test_documents_are_found_replaced_and_deleted_with_their_history(bench: Bench) -> None:
    engine, documents = bench.engine, bench.engine.documents
    engine.tenants.create("acme")
    engine.tenants.create("other")
    engine.collections.index("acme", "carts", "city")
    for key, values in CARTS.items():
        assert documents.put("acme", "carts", key, values).values == values
    documents.put("other", "carts", "theirs", {"city": "Bonn"})
    for asked, order, ids in (
        ("{}", "id", ["a", "b", "c/d"]), ("{}", "-total", ["c/d", "a", "b"]), ('{"city": "Bonn"}', "id", ["a", "c/d"]),
        ('{"lines.n": 1}', "id", ["c/d"]),
        ('{"total": {"gt": 9}, "at": {"exists": true}}', "id", "a"), ('{"city": "Ulm"}', "id", ""),
        ('{"at": {"gte": "2027-01-31T09:00:00Z"}}', "id", "a"),
    ):  # fmt: skip
        assert [each.document for each in documents.list("acme", "carts", filter=asked, order=order)] == [*ids], asked
    pages, cursor = [], None
    while not pages or cursor is not None:
        page = documents.list("acme", "carts", order="-total", limit=2, cursor=cursor)
        pages.append([each.document for each in page])
        cursor = page.next
    assert pages == [["c/d", "a"], ["b"]]
    assert documents.put("acme", "carts", "a", {"city": "Ulm"}).values == {"city": "Ulm"}
    assert [each.document for each in documents.list("acme", "carts", filter='{"city": "Ulm"}')] == ["a"], (
        "its index follows"
    )
    documents.delete("acme", "carts", "b")
    assert [each.values for each in documents.list("acme", "carts")] == [{"city": "Ulm"}, CARTS["c/d"]]
    deleted, replaced, *_created = engine.audit.list("acme", verb="documents.")
    assert (deleted.verb, deleted.target, deleted.before["values"], deleted.after) == (
        "documents.delete", "b", CARTS["b"], None,
    )  # fmt: skip
    assert (replaced.before["values"], replaced.after["values"]) == (CARTS["a"], {"city": "Ulm"})
    with engine.context.database.read() as connection:
        told = connection.execute(select(feeds.changes.c.key, feeds.changes.c.kind).order_by(feeds.changes.c.seq)).all()
    assert [tuple(each) for each in told][-2:] == [("a", "update"), ("b", "delete")], "scripts that follow see it"


def test_a_tenant_with_the_id_of_a_deleted_one_reads_none_of_its_changes(bench: Bench) -> None:
    engine = bench.engine
    for tenant in ("acme", "other"):
        engine.tenants.create(tenant, labels=["eu"], tz="Europe/Berlin")
        engine.documents.put(tenant, "carts", "ann@acme.example", {"city": "Bonn"})
    engine.tenants.delete("acme")
    made = engine.tenants.create("acme")
    assert (made.labels, made.tz) == ((), None)
    with engine.context.database.read() as connection:
        assert set(connection.scalars(select(feeds.changes.c.owner))) == {"other"}


def test_what_a_script_is_refused_people_are_refused(bench: Bench) -> None:
    documents = bench.engine.documents
    bench.engine.tenants.create("acme")
    documents.put("acme", "carts", "a", {"n": 1})
    cases: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
        ("list", ("cart",), {}, "collection_unknown"),
        ("list", ("no name",), {}, "collection_name"),
        ("list", ("carts",), {"filter": '{"total": {"gtx": 1}}'}, "document_refused"),
        ("list", ("carts",), {"filter": "{"}, "document_refused"),
        ("list", ("carts",), {"order": "a b"}, "document_refused"),
        ("list", ("carts",), {"cursor": "WyJ4Il0="}, "document_refused"),
        ("list", ("carts",), {"limit": 0}, "limit_invalid"),
        ("get", ("carts", "z"), {}, "document_unknown"),
        ("put", ("carts", "z" * 201, {}), {}, "document_refused"),
        ("put", ("carts", "", {"n": 1}), {}, "document_refused"),
        ("put", ("carts", "z", {"a.b": 1}), {}, "document_refused"),
        ("put", ("carts", "z", {"id": "y"}), {}, "document_refused"),
        ("put", ("carts", "z", {"$at": 1}), {}, "document_refused"),
        ("put", ("carts", "z", {"text": "x" * 70_000}), {}, "document_refused"),
        ("put", ("carts", "z", {"text": "\0"}), {}, "document_refused"),
        ("put", ("carts", "z\0", {"n": 1}), {}, "document_refused"),
        ("get", ("carts", "z\ud800"), {}, "document_refused"),
        ("delete", ("carts", "z"), {}, "document_unknown"),
    ]
    for verb, arguments, more, code in cases:
        with pytest.raises((Conflict, InputError, NotFound)) as refused:
            getattr(documents, verb)("acme", *arguments, **more)
        assert refused.value.code == code, (verb, arguments, more)
    assert [each.document for each in documents.list("acme", "carts")] == ["a"]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_long_filters_leave_nothing_in_the_node_s_memory(bench: Bench) -> None:
    """With its statement a filter of 190 conditions took 15 MB: kept, those of one script that asks hundreds filled the memory.

    SQLite's own form of it took 1.5 MB, and each connection kept 128 of them.
    """

    def compiled() -> int:
        gc.collect()
        return sum(isinstance(each, SQLCompiler) or type(each).__name__ == "Statement" for each in gc.get_objects())

    bench.engine.tenants.create("acme")
    bench.engine.documents.put("acme", "carts", "a", {"n": 1})
    before = 0
    for conditions in range(30, 36):
        some = json.dumps({"or": [{"n": each} for each in range(conditions)]})
        assert [each.document for each in bench.engine.documents.list("acme", "carts", filter=some)] == ["a"]
        before = before or compiled()
    assert compiled() - before < 3
