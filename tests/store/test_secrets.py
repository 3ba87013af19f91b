"""Secrets in the ledger: no byte of a value is stored in clear, and keys change while everything goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.errors import InputError, NotFound, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.store.tenants import secrets
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring

VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    made = tmp_path / "keys"
    Keyring(made).add()
    return made


@contextmanager
def opened(url: str, keys: Path | None) -> Iterator[Engine]:
    settings = Settings(sqlite_synchronous="NORMAL", secret_keys=keys)
    with Engine.open(url, clock=VirtualClock(), settings=settings) as engine:
        if "acme" not in {tenant.id for tenant in engine.tenants.list()}:
            for tenant in ("acme", "other"):
                engine.tenants.create(tenant)
        yield engine


def values(engine: Engine, tenant: str = "acme", *names: str) -> dict[str, str]:
    with engine.context.database.read() as connection:
        found = secrets.open_secrets(engine.vault, connection, tenant, names or ("KEY", "TWO"))
    return {name: each.value for name, each in found.items()}


def all_cells(engine: Engine) -> str:
    """Every cell of every table, as text."""
    with engine.context.database.read() as connection:
        tables = [table.name for table in secrets.secrets.metadata.sorted_tables]
        return "\n".join(str(row) for table in tables for row in connection.execute(text(f"SELECT * FROM {table}")))


def test_a_secret_is_kept_and_nothing_of_it_shows(url: str, keys: Path, kind: str) -> None:
    with opened(url, keys) as engine:
        made = engine.secrets.put(
            "acme", "KEY", VALUE, hosts=["https://api.example.com:443", "*.example.org"], grant=True
        )
        assert made.hosts == ("*.example.org", "api.example.com")
        assert VALUE not in repr(made)
        assert engine.secrets.list("acme") == [made]
        assert values(engine) == {"KEY": VALUE}
        assert values(engine, "other") == {}, "another tenant's name is another secret"
        assert "secret:KEY" in engine.grants.list("acme")
        engine.secrets.put("acme", "KEY", VALUE + "2")
        assert values(engine) == {"KEY": VALUE + "2"}
        shown = all_cells(engine)
        assert "lodger_secrets" not in shown
        assert VALUE not in shown
        engine.secrets.delete("acme", "KEY")
        assert engine.secrets.list("acme") == []
        with pytest.raises(NotFound):
            engine.secrets.delete("acme", "KEY")
    if kind == "sqlite":
        files = [path.read_bytes() for path in Path(url.removeprefix("sqlite:///")).parent.glob("ledger.db*")]
        assert not any(VALUE.encode() in each for each in files)


def test_rows_that_are_moved_or_bent_do_not_open(url: str, keys: Path) -> None:
    """Write access to the database without the key neither borrows a secret nor sends it to another host."""
    with opened(url, keys) as engine:
        engine.secrets.put("acme", "KEY", VALUE, hosts=["api.example.com"])
        for change in ("hosts = '[\"evil.example\"]'", "tenant_id = 'other'", "name = 'TWO'", "key_id = 'nobody'"):
            engine.secrets.put("acme", "KEY", VALUE, hosts=["api.example.com"])
            with engine.context.database.write() as connection:
                connection.execute(text(f"UPDATE lodger_secrets SET {change}"))
            with pytest.raises(Unavailable) as refused:
                values(engine, "other" if "tenant" in change else "acme")
            assert refused.value.code in {"secret_tampered", "key_unknown"}
            with engine.context.database.write() as connection:
                connection.execute(text("DELETE FROM lodger_secrets"))


def test_keys_are_rotated_under_way_and_old_ones_forgotten(
    url: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "BATCH", 10)
    with opened(url, keys) as engine, opened(url, keys) as other:
        for number in range(secrets.BATCH + 5):
            engine.secrets.put(("acme", "other")[number % 2], f"K{number}", VALUE + str(number))
        before = keys.read_text()
        done = engine.secrets.rotate(new_key=True)
        assert (done.renewed, done.dropped) == (secrets.BATCH + 5, ())
        assert values(other, "acme", "K0") == {"K0": VALUE + "0"}, "another node reads the new file of keys by itself"
        assert engine.secrets.rotate().renewed == 0
        assert len(engine.secrets.rotate(drop=True).dropped) == 1
        assert {each.key_id for each in engine.secrets.list("acme")} == {done.key_id}
        keys.write_text(before)
        keys.chmod(0o600)
        with pytest.raises(Unavailable) as refused:
            values(other, "acme", "K0")
        assert refused.value.code == "key_unknown"


def test_a_rotation_that_is_broken_off_goes_on(url: str, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "BATCH", 10)
    with opened(url, keys) as engine:
        for number in range(secrets.BATCH + 1):
            engine.secrets.put(("acme", "other")[number % 2], f"K{number}", VALUE)
        engine.vault.keyring.add()
        with engine.context.database.write() as connection:
            assert secrets.reencrypt(engine.vault, connection) == secrets.BATCH  # and the process dies here
        assert set(values(engine, "acme", *(f"K{number}" for number in range(300))).values()) == {VALUE}
        done = engine.secrets.rotate(drop=True)
        assert (done.renewed, len(done.dropped)) == (1, 1)


def test_without_keys_nothing_is_stored(url: str, tmp_path: Path) -> None:
    with opened(url, None) as engine:
        with pytest.raises(Unavailable) as refused:
            engine.secrets.put("acme", "KEY", VALUE)
        assert refused.value.code == "keys_unset"
        assert engine.secrets.list("acme") == []


@pytest.mark.parametrize(
    ("name", "value", "hosts"),
    [
        ("", VALUE, ()), ("a b", VALUE, ()), ("basic", VALUE, ()), ("read", VALUE, ()), ("x" * 64, VALUE, ()),
        ("KEY", "short77", ()), ("KEY", "x" * 20_000, ()), ("KEY", "a\0bcdefghi", ()), ("KEY", "two\nlines of it", ("a.example",)),
        ("KEY", " space before", ("a.example",)), ("KEY", "emoji 😀 in it", ("a.example",)), ("KEY", VALUE, ("user@a.example",)),
        ("KEY", VALUE, ("https://a.example/path",)), ("KEY", VALUE, [f"h{n}.example" for n in range(21)]),
    ],
)  # fmt: skip
def test_what_is_no_secret_is_refused(bench: Bench, keys: Path, name: str, value: str, hosts: tuple[str, ...]) -> None:
    bench.tenant()
    with pytest.raises(InputError) as refused:
        bench.engine.secrets.put("acme", name, value, hosts=hosts)
    assert refused.value.fix
    assert value not in str(refused.value.as_dict())
    assert bench.engine.secrets.list("acme") == []


def test_a_secret_of_several_lines_needs_no_host(bench: Bench, keys: Path) -> None:
    bench.tenant()
    bench.engine.secrets.put("acme", "PEM", "-----BEGIN\nabc\n-----END\n")
    assert values(bench.engine, "acme", "PEM") == {"PEM": "-----BEGIN\nabc\n-----END\n"}
