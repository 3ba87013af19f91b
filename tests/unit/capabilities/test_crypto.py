"""Host calls of ``crypto.subtle``; what they compute is checked by tests/conformance/web_platform/crypto.js."""

import asyncio
import json
import sys

import pytest

from lodger.escape.cases.tenants.world import TenantHost
from lodger.sandbox.limits import Limits

CALLS = {
    "crypto.aes": {"decrypt": False, "key": "AAAAAAAAAAAAAAAAAAAAAA==", "iv": "AAAAAAAAAAAAAAAA", "data": "", "tagBits": 128},
    "crypto.derive": {"kind": "PBKDF2", "hash": "SHA-256", "key": "YQ==", "salt": "", "iterations": 1, "bits": 256},
    "crypto.key": {"kind": "EC", "format": "spki", "data": "", "curve": "P-256"},
    "crypto.verify": {"kind": "ECDSA", "hash": "SHA-256", "key": "", "curve": "P-256", "signature": "", "data": ""},
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_node_without_the_package_names_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, module, None)
    reply = asyncio.run(TenantHost(Limits()).call(name, json.dumps(CALLS[name])))
    assert not reply.ok
    assert json.loads(reply.json)["code"] == "crypto_missing"
    assert "lodger with the extra secrets" in json.loads(reply.json)["message"]
