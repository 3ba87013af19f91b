"""Keys, ciphertexts and what is taken out of texts: no database, no network."""

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.vault.keyring import Keyring, refuse_existing
from lodger.engine.vault.redaction import Redactor
from lodger.engine.vault.vault import Sealed, Vault


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    made = Keyring(tmp_path / "keys")
    made.add()
    return made


def test_what_is_sealed_opens_in_its_place_and_nowhere_else(ring: Keyring) -> None:
    vault = Vault(ring)
    sealed = vault.seal("grüße\n" * 100, "acme", "KEY", '["a.example"]')
    assert vault.open(sealed, "acme", "KEY", '["a.example"]') == "grüße\n" * 100
    assert vault.seal("x" * 20, "acme", "KEY", "[]").text != vault.seal("x" * 20, "acme", "KEY", "[]").text
    for place in (("other", "KEY", '["a.example"]'), ("acme", "OTHER", '["a.example"]'), ("acme", "KEY", '["evil.example"]'),
                  ("acmeKEY", "", '["a.example"]'), ("acme", "KEY")):  # fmt: skip
        with pytest.raises(Unavailable) as refused:
            vault.open(sealed, *place)
        assert refused.value.code == "secret_tampered"
    data = bytearray(base64.b64decode(sealed.text))
    data[-1] ^= 1
    with pytest.raises(Unavailable):
        vault.open(Sealed(sealed.key_id, base64.b64encode(data).decode()), "acme", "KEY", '["a.example"]')


def test_older_keys_open_and_the_newest_seals(ring: Keyring) -> None:
    vault = Vault(ring)
    first = vault.seal("value one", "p")
    second_id = ring.add()
    second = vault.seal("value two", "p")
    assert (first.key_id != second_id, second.key_id) == (True, second_id)
    assert (vault.open(first, "p"), vault.open(second, "p")) == ("value one", "value two")
    ring.drop({first.key_id, second_id})
    assert list(ring.keys()) == [second_id], "the newest stays"
    with pytest.raises(Unavailable) as refused:
        vault.open(first, "p")
    assert refused.value.code == "key_unknown"


def test_the_file_is_its_owners_alone_and_never_half_written(tmp_path: Path, ring: Keyring) -> None:
    path = tmp_path / "keys"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(Unavailable) as refused:
        ring.keys()
    assert refused.value.code == "keys_readable"
    path.chmod(0o600)
    ring.add()
    assert os.listdir(tmp_path) == ["keys"], "nothing lies beside it"
    with pytest.raises(InputError):
        refuse_existing(path)


def test_a_node_sees_a_new_file_of_keys_at_once(tmp_path: Path, ring: Keyring) -> None:
    other = Keyring(tmp_path / "keys")
    assert len(other.keys()) == 1
    made = ring.add()
    assert next(iter(other.keys())) == made


NO_KEYS = (
    "",
    "# nothing\n",
    "abcd short\n",
    "abcd " + "A" * 44 + "\n",
    "abcd " + base64.b64encode(b"x" * 16).decode(),
    "\xff\xfe",
)


@pytest.mark.parametrize("text", NO_KEYS)
def test_a_file_that_holds_no_keys_says_which_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)
    with pytest.raises(Unavailable) as refused:
        Keyring(path).keys()
    assert refused.value.code == "keys_invalid"


def test_without_a_file_it_says_how_to_get_one(tmp_path: Path) -> None:
    for ring, code in ((Keyring(None), "keys_unset"), (Keyring(tmp_path / "absent"), "keys_missing")):
        with pytest.raises(Unavailable) as refused:
            Vault(ring).seal("x")
        assert refused.value.code == code
        assert "keygen" in refused.value.fix
    with pytest.raises(Unavailable) as refused:
        Keyring(tmp_path / "no" / "folder").add()
    assert refused.value.code == "keys_unwritable"


SECRET = 'sk_live_"a/b+c=d'
RAW = SECRET.encode()


@pytest.mark.parametrize(
    "form",
    [
        SECRET, base64.b64encode(RAW).decode(), base64.urlsafe_b64encode(RAW).decode(), quote(SECRET), quote(SECRET, safe=""),
        json.dumps(SECRET)[1:-1], RAW.hex(), RAW.hex().upper(),
    ],
)  # fmt: skip
def test_forms_in_which_a_value_turns_up(form: str) -> None:
    redactor = Redactor()
    redactor.add("KEY", SECRET)
    assert redactor.text(f"before {form} after {form}") == "before [secret KEY] after [secret KEY]"


visible = st.text(alphabet=st.characters(codec="ascii", min_codepoint=33), min_size=8, max_size=40)


@given(st.text(max_size=12), st.text(max_size=12), visible)
def test_inside_any_base64_little_is_left_of_it(before: str, after: str, secret: str) -> None:
    redactor = Redactor()
    redactor.add("KEY", secret)
    shown = redactor.text(base64.b64encode((before + secret + after).encode()).decode())
    assert "[secret KEY]" in shown


def test_what_was_json_stays_json() -> None:
    redactor = Redactor()
    redactor.add("NUMBER", "12345678")
    redactor.add("QUOTE", '","x":{"')
    redactor.add("BRACE", "}}}}}}}}")
    given: Any = {"a": 12345678, "12345678": [1, 123456789, True, None, 0.5], "q": '","x":{"', "b": "}}}}}}}}"}
    shown = json.loads(redactor.json(json.dumps(given)) or "")
    assert shown == {
        "a": "[secret NUMBER]",
        "[secret NUMBER]": [1, "[secret NUMBER]9", True, None, 0.5],
        "q": "[secret QUOTE]",
        "b": "[secret BRACE]",
    }
    assert redactor.json(None) is None


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(anything, st.text(min_size=8, max_size=20))
def test_whatever_the_value_is_json_stays_json(given_value: Any, secret: str) -> None:
    """A result that is no JSON any more would stop every later claim of its schedule."""
    redactor = Redactor()
    redactor.add("KEY", secret)
    text = json.dumps([given_value, secret, {secret: 1}])
    shown = redactor.json(text) or ""
    json.loads(shown)
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in shown


def test_knowing_nothing_it_changes_nothing() -> None:
    redactor = Redactor()
    redactor.add("SHORT", "seven77")
    assert not redactor
    assert (redactor.text("seven77 \ud800"), redactor.json("[ 1 ]")) == ("seven77 \ud800", "[ 1 ]")


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    redactor = Redactor()
    redactor.add("KEY", "secretvalue")
    assert redactor.text("\ud800 secretvalue") == "\ud800 [secret KEY]"


def test_no_error_tells_where_the_keys_lie(tmp_path: Path) -> None:
    """Tenants read these errors over HTTP."""
    path = tmp_path / "keys"
    refusals = []

    def refused() -> None:
        with pytest.raises(Unavailable) as error:
            Keyring(path).keys()
        refusals.append(error.value)

    refused()
    for text, mode in (("", 0o600), ("x\n", 0o600), ("", 0o644)):
        path.write_text(text)
        path.chmod(mode)
        refused()
    with pytest.raises(Unavailable) as unwritable:
        Keyring(tmp_path / "nowhere" / "keys").add()
    told = [each.as_dict() for each in (*refusals, unwritable.value)]
    assert {each["code"] for each in told} == {"keys_missing", "keys_invalid", "keys_readable", "keys_unwritable"}
    assert not any(str(tmp_path) in str(each) for each in told)
