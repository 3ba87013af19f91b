"""``lodger alert``: a rule from its creation to its deletion, as tables and as JSON."""

from pathlib import Path

from tests.e2e.command import inside


def test_a_rule_is_created_shown_tested_and_deleted(tmp_path: Path) -> None:
    ledger = str(tmp_path / "l.db")
    inside("tenant", "create", "acme", "--people", "ops@acme.example", "--db", ledger)
    words = ("alert", "put", "acme", "nightly", "--kind", "failed", "--kind", "silent", "--mail", "ops@acme.example",
             "--quiet", "22:00-07:00", "--tz", "Europe/Berlin", "--silent-s", "900")  # fmt: skip
    made = inside(*words, "--db", ledger, "--json").json
    assert (made["kinds"], made["mail"], made["quiet"]) == (["failed", "silent"], ["ops@acme.example"], ["22:00-07:00"])
    assert (made["zone"], made["silent_s"], made["late_s"]) == ("Europe/Berlin", 900, 60)
    assert inside("alert", "show", "acme", "nightly", "--db", ledger, "--json").json == made
    listed = inside("alert", "list", "acme", "--db", ledger).out
    assert "nightly" in listed
    assert "failed silent" in listed
    assert inside("alert", "test", "acme", "nightly", "--db", ledger, "--json").json == 1
    assert inside("alert", "raised", "acme", "--db", ledger, "--json").json == {"alerts": []}
    assert inside("alert", "delete", "acme", "nightly", "--yes", "--db", ledger).code == 0
    gone = inside("alert", "show", "acme", "nightly", "--db", ledger, "--json")
    assert (gone.code, gone.json["error"]["code"]) == (1, "alert_unknown")


def test_a_chat_is_a_webhook_of_another_style(tmp_path: Path) -> None:
    ledger, keys = str(tmp_path / "l.db"), str(tmp_path / "keys")
    environment = {"LODGER_SECRET_KEYS": keys}
    inside("secret", "keygen", keys)
    inside("tenant", "create", "acme", "--db", ledger)
    url = "https://chat.example/hooks/1"
    made = inside(
        "webhook", "put", "acme", "chat", url, "--style", "slack", "--db", ledger, "--json", **environment
    ).json
    assert made["webhook"]["style"] == "slack"
    refused = inside("webhook", "put", "acme", "chat", url, "--style", "loud", "--db", ledger, "--json", **environment)
    assert refused.json["error"]["code"] == "webhook_style_unknown"
