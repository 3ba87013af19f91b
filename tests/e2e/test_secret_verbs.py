"""``lodger secret``: values come from stdin and are never shown again."""

from pathlib import Path

from tests.e2e.command import inside
from tests.e2e.ready import lodger

VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


def test_keep_list_rotate_and_delete(tmp_path: Path) -> None:
    keys, ledger = str(tmp_path / "keys"), str(tmp_path / "l.db")
    assert inside("secret", "keygen", keys, "--json").json["file"] == keys
    assert inside("secret", "keygen", keys).code == 1
    inside("tenant", "create", "acme", "--db", ledger)

    def secret(*words: str, stdin: str = "") -> dict[str, object]:
        said = inside("secret", *words, "--db", ledger, "--json", stdin=stdin, LODGER_SECRET_KEYS=keys)
        assert said.code == 0, said.out + said.err
        assert VALUE not in said.out + said.err
        return dict(said.json)

    made = secret("put", "acme", "STRIPE", "--host", "api.stripe.example", "--grant", stdin=VALUE + "\n")
    assert made["hosts"] == ["api.stripe.example"]
    assert "secret:STRIPE" in inside("grant", "list", "acme", "--db", ledger, "--json").json["grants"]
    (row,) = secret("list", "acme")["secrets"]  # type: ignore[misc]  # a list
    assert row["name"] == "STRIPE"
    done = secret("rotate", "--new-key", "--drop")
    assert (done["renewed"], len(list(done["dropped"]))) == (1, 1)  # type: ignore[call-overload]  # a list
    assert Path(keys).read_text().count("\n") == 2
    secret("delete", "acme", "STRIPE", "--yes")
    assert secret("list", "acme")["secrets"] == []


def test_without_keys_it_says_how_to_get_them(tmp_path: Path) -> None:
    ledger = str(tmp_path / "l.db")
    lodger("tenant", "create", "acme", "--db", ledger)
    refused = lodger("secret", "put", "acme", "KEY", "--db", ledger, stdin=VALUE)
    assert refused.code == 1
    assert "lodger secret keygen" in refused.err
    assert VALUE not in refused.err
    empty = lodger("secret", "put", "acme", "KEY", "--db", ledger, "--json", stdin="")
    assert empty.json["error"]["code"] == "secret_value_invalid"
