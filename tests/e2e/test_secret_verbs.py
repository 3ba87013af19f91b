"""``lodger secret``: values come from stdin and are never shown again."""

from pathlib import Path

from tests.e2e.ready import lodger

VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


def test_without_keys_it_says_how_to_get_them(tmp_path: Path) -> None:
    ledger = str(tmp_path / "l.db")
    lodger("tenant", "create", "acme", "--db", ledger)
    refused = lodger("secret", "put", "acme", "KEY", "--db", ledger, stdin=VALUE)
    assert refused.code == 1
    assert "lodger secret keygen" in refused.err
    assert VALUE not in refused.err
    empty = lodger("secret", "put", "acme", "KEY", "--db", ledger, "--json", stdin="")
    assert empty.json["error"]["code"] == "secret_value_invalid"
