"""``lodger mcp``, spoken to by the protocol's own client over the pipes of a real process."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.e2e.command import bare, inside
from tests.egress.peer import Peer, thread_of_peers

from lodger.engine.core.settings import load
from lodger.engine.sync import Engine
from lodger.engine.vault.keyring import Keyring

SCRIPT = (
    "export default async ({ kv, action }) => { console.log('tried'); await kv.set('n', action.input.n); return 7; };"
)


def asked(
    *arguments: str, calls: list[tuple[str, dict[str, Any]]], **env: str
) -> tuple[dict[str, Any], list[Any], list[str]]:
    """Start ``lodger mcp``; return its tools by name, the answers of calls, and the texts of its resources."""
    # Not when tests are collected: each of the suite's processes would import it.
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def talk() -> tuple[dict[str, Any], list[Any], list[str]]:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "lodger.engine.cli", "mcp", *arguments], env=bare() | env
        )
        async with Client(stdio_client(command, errlog=sys.__stderr__ or sys.stderr)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            answers = [await client.call_tool(name, given) for name, given in calls]
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            texts = [(await client.read_resource(uri)).contents[0].text for uri in uris]
            return tools, answers, texts

    return asyncio.run(talk())


def names(*lists: str) -> set[str]:
    """Return the tools of these lists."""
    from lodger.engine.cli.assistants import tools

    return {name.replace(".", "_") for each in lists for name in getattr(tools, each)}


def body(answer: Any) -> Any:
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)


def test_a_draft_is_tried_without_a_tenant() -> None:
    tools, answers, texts = asked(
        calls=[
            ("scripts_dry_run", {"name": "draft", "source": SCRIPT, "params": {"n": 3}}),
            ("scripts_check", {"source": "export default () => {"}),
            ("schedules_preview", {"rules": "every weekday at 9", "tz": "Europe/Berlin", "n": 2}),
            ("schedules_preview", {"rules": "whenever"}),
            ("schedules_preview", {"rules": "every 1h", "n": "many"}),
            ("scripts_dry_run", {"name": "draft", "source": "export default () => 'x'.repeat(60000);"}),
            ("scripts_put", {"name": "draft", "source": SCRIPT}),
            ("scripts_dry_run", {"name": "draft", "source": "export default () => '\\ud800\\x9b\\u202e';"}),
            ("schedules_preview", {"rules": "every " + "\x1b[31m" * 100_000}),
        ],
    )
    assert set(tools) == names("DRAFTING")
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    run = body(answers[0])
    assert (run["outcome"], run["result"], run["logs"][0]["text"], len(run["effects"])) == ("ok", 7, "tried", 1)
    assert body(answers[1])["problems"][0]["name"] == "SyntaxError"
    assert body(answers[2])["text"].startswith("Every Monday through Friday at 09:00")
    refused = answers[3]
    assert refused.is_error
    assert '"rule_unrecognised"' in refused.content[0].text
    assert "Write for example" in refused.content[0].text
    assert answers[4].is_error
    assert answers[4].content[0].text.startswith("Error executing tool schedules_preview")
    assert "more characters: ask for fewer" in answers[5].content[0].text
    assert answers[6].is_error, "a tool that is not offered cannot be called"
    assert body(answers[7])["result"] == "\ud800\x9b\u202e"
    assert answers[7].content[0].text.isprintable()
    assert "\x1b" not in answers[8].content[0].text
    assert len(answers[8].content[0].text) < 60_000
    assert "interface Kv" in "".join(texts) or "kv" in texts[0]
    assert any(text.startswith("---\nname: lodger-scripts\n") for text in texts)


SENDING = """
export default async ({ secrets }) => {
  const found = {};
  try { found.plain = await secrets.read("KEY"); } catch (error) { found.plainError = error.code; }
  for (const method of ["GET", "HEAD", "OPTIONS", "POST", "DELETE"]) {
    const headers = { authorization: `Bearer ${secrets.KEY}` };
    try { found[method] = (await fetch("@@/" + method, { method, headers })).status; } catch (error) { found[method] = error.code; }
  }
  return found;
};
"""


def test_a_server_reads_one_tenant_sends_nothing_and_shows_no_secret_unless_it_may_write(tmp_path: Path) -> None:
    place, keys, value = str(tmp_path / "ledger.db"), tmp_path / "keys", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
    Keyring(keys).add()
    peer = Peer()
    with thread_of_peers(peer):
        here = peer.url()[:-1]
        source = SENDING.replace("@@", here)
        env = {
            "LODGER_EGRESS_NETWORKS": "127.0.0.1/32",
            "LODGER_EGRESS_PORTS": str(peer.port),
            "LODGER_SECRET_KEYS": str(keys),
        }
        with Engine.open(place, settings=load(secret_keys=keys)) as engine:
            for tenant in ("acme", "other"):
                engine.tenants.create(tenant, grants=[f"fetch:{here}", "secret:KEY:plain"])
                engine.secrets.put(tenant, "KEY", value, hosts=[here])
                engine.scripts.put(tenant, f"of_{tenant}", source)
        asks: list[tuple[str, dict[str, Any]]] = [
            ("scripts_dry_run", {"name": "draft", "source": source}),
            ("scripts_dry_run", {"name": "draft", "source": source, "fetches": True, "offline": False}),
            ("scripts_dry_run", {"name": "of_acme", "fetches": True, "offline": False}),
            ("scripts_list", {}),
            ("scripts_get", {"name": "of_other"}),
            ("scripts_list", {"tenant_id": "other"}),
        ]
        reading, answers, _ = asked("acme", "--db", place, calls=asks, **env)
        assert peer.connections == 0
        for answer in answers[:3]:
            assert value not in answer.content[0].text
            if not answer.is_error:
                assert body(answer)["result"] == {
                    "plainError": "offline", "GET": "offline", "HEAD": "offline", "OPTIONS": "offline", "POST": 200, "DELETE": 200,
                }  # fmt: skip
        assert not answers[0].is_error
        assert [each["name"] for each in body(answers[3])["entries"]] == ["of_acme"]
        assert answers[4].is_error
        assert "of_other" not in json.dumps(body(answers[5])), "a tool has no parameter for the tenant"
        assert set(reading) == names("DRAFTING", "READING")
        assert all("tenant_id" not in tool.input_schema["properties"] for tool in reading.values())
        assert not {"fetches", "offline"} & set(reading["scripts_dry_run"].input_schema["properties"])
        hints = [tool.annotations for tool in reading.values()]
        assert all(hint.read_only_hint and not hint.destructive_hint and not hint.open_world_hint for hint in hints)
        rule = {"rules": "every day at 9", "tz": "Europe/Berlin"}
        changes: list[tuple[str, dict[str, Any]]] = [
            asks[1],
            ("scripts_put", {"name": "greet", "source": SCRIPT}),
            ("schedules_create", {"name": "daily", "script": "greet", **rule}),
            ("schedules_edit", {"schedule": "daily", "rules": "every day at 10"}),
        ]
        writing, answers, _ = asked("acme", "--write", "--db", place, calls=changes, **env)
        assert peer.connections == 5, "the same source reaches the server if it may"
    assert body(answers[0])["outcome"] == "ok"
    assert set(writing) - set(reading) == names("WRITING")
    assert not any(writing[name].annotations.read_only_hint for name in names("WRITING"))
    hint = writing["scripts_dry_run"].annotations
    assert (hint.read_only_hint, hint.destructive_hint, hint.open_world_hint) == (False, True, True)
    created, edited = body(answers[2]), body(answers[3])
    assert created["text"] == "Every day at 09:00 (Europe/Berlin)"
    assert (edited["text"], edited["tz"]) == ("Every day at 10:00 (Europe/Berlin)", created["tz"])


def test_what_needs_a_tenant_says_so() -> None:
    said = inside("mcp", "--write")
    assert said.code == 2
    assert "lodger mcp TENANT" in said.err
