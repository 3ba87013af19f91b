"""``lodger.toml``: what the file says is given to the engine, and each mistake is named with its line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from lodger.engine.core.errors import Explained, Unavailable
from lodger.engine.core.functions import Endpoint
from lodger.engine.core.settings import Settings
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.typescript import declarations
from lodger.engine.service import platform_file
from lodger.engine.sync import Engine

PLATFORM = "[platform]\nurl = 'http://127.0.0.1:3000/hooks/'\nsecret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'"
#: What is wrong with a file, and words of the message that says so.
WRONG = [
    ("a = [", ":1: Invalid value"),
    ("# x\n[tabels.orders]\n", ":2: there is no key 'tabels'"),
    ("tables = 1\n", ":1: tables: Input should be a valid dict"),
    ("[tables.orders]\nread = ['id']\n", ":1: tables.orders.tenant_column: Field required"),
    ("[tables.orders]\ntenant_column = 'org'\n\ntenent_setting = 'a.b'\n", ":4: there is no key 'tenent_setting'"),
    ("[tables.orders]\ntenant_column = 1\n", ":2: tables.orders.tenant_column: Input should be a valid string"),
    ("[tables.orders]\ntenant_column = 'org'\nread = ['id', 2]\n", ":3: tables.orders.read.1: Input should be a valid string"),
    ("[tables.orders]\ntenant_column = 'org'\nfeed = 'all'\n", ":3: tables.orders.feed: Input should be 'reported', 'trigger' or 'off'"),
    ("[tables.orders]\ntenant_column = 'owner'\n", ":1: orders has no column owner"),
    ("[tables.orders]\ntenant_column = 'org'\nwrite = ['org']\n", ":1: orders.org"),
    ("[tables.orders]\ntenant_column = 'org'\n[tables.order]\ntenant_column = 'org'\n", ":3: the database has no table 'order'"),
    ("[tables.orders]\ntenant_column = 'org'\ndatabase = '$NO_SUCH'\n", ":3: tables.orders.database: the environment variable NO_SUCH"),
    ("[tables.x]\ntenant_column = 'org'\ndatabase = 'postgresql://u:geheim@127.0.0.1:1/x'\n", "cannot be opened"),
    ("[tables.x]\ntenant_column = 'org'\ndatabase = 'mysql://u:geheim@127.0.0.1:1/x'\n", ""),
    ("[tables.x]\ntenant_column = 'org'\ndatabase = 'sqlite:///misspelt.db'\n", ":1: there is no file 'misspelt.db'"),
    ("[tables.x]\ntenant_column = 'org'\ndatabase = \"sqlite:///a\\u0000b\"\n", ":1: there is no file"),
    ("[tables.lodger_tenants]\ntenant_column = 'id'\n", ":1: lodger_tenants"),
    ("[functions.crm.score]\n", ":1: there is no [platform]"),
    (f"{PLATFORM}\n[functions.db.score]\n", ":4: 'db.score' cannot be the name"),
    (f"{PLATFORM}\n[functions.crm.score]\nparam = {{}}\n", ":5: there is no key 'param'"),
    (f"{PLATFORM}\n[functions.crm.score]\nparams = {{ id = {{ type = 'uuid' }} }}\n", ":4: param id: there is no type"),
    (f"{PLATFORM}\n[functions.crm.score]\nparams = {{ id = {{ type = 'choice', choices = 'ab' }} }}\n", ":4: param id: the choices"),
    (f"{PLATFORM}\n[functions.crm.score]\nparams = {{ id = {{ type = 'choice', choices = 3 }} }}\n", ":4: param id: the choices"),
    (f"{PLATFORM}\n[functions.crm.toString]\n", ":4: 'crm.toString' cannot be the name"),
    (f"{PLATFORM}\n[functions.constructor.x]\n", ":4: 'constructor.x' cannot be the name"),
    (f"{PLATFORM}\n[functions.crm.score]\ntimeout_s = 1e9\n", ":4: timeout_s cannot be"),
    (f"{PLATFORM}\n[functions]\ncrm = 3\n", ":5: functions.crm: Input should be a valid dict"),
    (PLATFORM.replace("whsec_", "geheim"), ":3: platform.secret: a secret is whsec_"),
    (PLATFORM.replace("http:", "ftp:"), ":2: platform.url: the URL is not a canonical http or https URL"),
    (PLATFORM.replace("/hooks", "/hooks?key=geheim"), ":2: platform.url: the URL has a query"),
    ("a = " + "[" * 100_000 + "]" * 100_000, ""),
    ("#" * (platform_file.MAX_BYTES + 1), "cannot be read"),
]  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(str(tmp_path / "ledger.db")) as made:
        with made.context.database.write() as connection:
            connection.execute(
                sa.text("CREATE TABLE orders (id INTEGER PRIMARY KEY, org TEXT NOT NULL, total INTEGER)")
            )
        yield made


def test_each_mistake_is_named_with_its_line(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "lodger.toml"
    for text, said in WRONG:
        path.write_text(text)
        with pytest.raises(Explained) as caught:
            platform_file.PlatformFile(path).apply(engine)
        assert said in caught.value.what, text[:200]
        assert str(path) in caught.value.what or not said.startswith(":")
        assert "geheim" not in str(caught.value.as_dict())
    path.write_text("[tables.orders]\ntenant_colum = 'org'\n")
    with pytest.raises(Explained, match="tenant_colum") as caught:
        platform_file.PlatformFile(path)
    assert caught.value.fix.startswith("did you mean tenant_column?")
    assert not list(Path().glob("misspelt*")), "no database is created"


def test_tables_are_exposed(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with other.begin() as connection:
        connection.execute(
            sa.text("CREATE TABLE parcels (id INTEGER PRIMARY KEY, house TEXT NOT NULL, weight INTEGER)")
        )
    monkeypatch.setenv("SHOP_DATABASE", f"sqlite:///{tmp_path / 'shop.db'}")
    monkeypatch.chdir(tmp_path)
    assert platform_file.place(Settings()) is None
    (tmp_path / "lodger.toml").write_text(
        "\ufeff[tables.orders]\ntenant_column = 'org'\nread = ['id', 'total']\nwrite = ['total']\ninsert = false\n"
        "[tables.boxes]\ntable = 'parcels'\ndatabase = '$SHOP_DATABASE'\ntenant_column = 'house'\n"
    )
    found = platform_file.place(Settings())
    assert found is not None
    platform_file.PlatformFile(found).apply(engine)
    orders, boxes = engine.datasets.named("orders"), engine.datasets.named("boxes")
    assert isinstance(orders, TableDataset)
    assert isinstance(boxes, TableDataset)
    assert (set(orders.fields), set(orders.writable), orders.insertable) == ({"id", "total"}, {"total"}, False)
    assert (set(boxes.fields), boxes.origin.name, boxes.database) == (
        {"id", "weight"},
        "parcels",
        engine.datasets.databases[0],
    )
    other.dispose()


def test_functions_are_refused_where_no_request_can_be_sent(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dns.asyncresolver", None)
    file = tmp_path / "lodger.toml"
    file.write_text(f"{PLATFORM}\n[functions.crm.score]\n")
    with pytest.raises(Unavailable, match=r"functions of lodger\.toml") as refused:
        platform_file.PlatformFile(file).apply(engine)
    assert (refused.value.code, refused.value.fix) == ("extra_missing", "pip install 'lodger[fetch]'")


def test_functions_are_declared(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "lodger.toml"
    path.write_text(
        f"{PLATFORM}\n[functions.crm.score]\nhelp = 'How likely */ a customer pays.'\ntrial = true\ntimeout_s = 2.5\n"
        "params = { id = { type = 'integer', required = true }, kind = { type = 'choice', choices = ['a', 'b'] } }\n"
        "returns = { type = 'number' }\n[functions.crm.invite]\n[functions.geo.find]\n"
    )
    platform_file.PlatformFile(path).apply(engine)
    score = engine.datasets.function("crm.score")
    assert isinstance(score.answered_by, Endpoint)
    assert (score.answered_by.url, score.trial, score.timeout_s) == ("http://127.0.0.1:3000/hooks", True, 2.5)
    assert declarations(engine.datasets, {}, engine.datasets.functions).split("}\n\n", 1)[1] == (
        "declare const crm: {\n  /** How likely * / a customer pays. */\n"
        '  score(id: number, kind?: "a" | "b"): Promise<number>;\n  invite(): Promise<any>;\n};\n\n'
        "declare const geo: {\n  find(): Promise<any>;\n};\n\n"
        "interface Run {\n  readonly crm: typeof crm;\n  readonly geo: typeof geo;\n}\n"
    )
    with pytest.raises(Explained, match=r":4: a function named 'crm.score' is already declared"):
        platform_file.PlatformFile(path).apply(engine)
