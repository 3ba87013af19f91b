"""The table of grants: what it lets by, what it refuses, how it is written, and that narrowing only ever takes away."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.access.grants import DEFAULT, GRANTS, Grants, meaning, parse
from lodger.engine.core.access.origins import Origin, parse_origin
from lodger.engine.core.errors import InputError

FORMS = [
    "collections", "collections:read", "collections:read:notes", "collections:write:notes", "sets:read", "sets:read:orders",
    "sets:write", "sets:write:orders", "kv", "kv:read", "mail", "mail:a@x.example", "mail:*@x.example", "mail:*", "events",
    "run", "run:@report-2", "run:*", "functions", "functions:crm.score",
    "fetch:*", "fetch:api.example.com",
    "fetch:api.example.com,60s", "fetch:api.example.com,32MiB", "fetch:api.example.com,90s,16MiB",
    "fetch:*.example.com:8443", "fetch:http://10.0.0.7:8080", "fetch:[2001:db8::1]",
    "secret:STRIPE", "secret:STRIPE:plain",
]  # fmt: skip


def allowed(grants: Grants) -> set[str]:
    """Return everything that can be asked of grants and that these allow."""
    api, deep = Origin("https", "api.example.com", 443), Origin("https", "a.b.example.com", 8443)
    asked = {
        f"{verb} {name} {'set' if exposed else 'collection'}": grants.of_rows(
            name, exposed=exposed, write=verb == "write"
        )
        for verb in ("read", "write")
        for name in ("orders", "notes")
        for exposed in (True, False)
    }
    asked |= {"kv read": grants.of_kv(write=False), "kv write": grants.of_kv(write=True), "events": grants.of_events}
    asked |= {
        f"mail {to} {own}": grants.of_mail(to, own=own)
        for to in ("a@x.example", "b@y.example")
        for own in (True, False)
    }
    asked |= {f"fetch {origin}": grants.of_fetch(origin) for origin in (api, deep, Origin("http", "10.0.0.7", 8080))}
    asked |= {
        f"run {name} {own}": grants.of_run(name, own=own) for name in ("report", "other") for own in (True, False)
    }
    asked |= {f"secret {plain}": grants.of_secret("STRIPE", plain=plain) for plain in (True, False)}
    return {name for name, may in asked.items() if may}


def test_the_default_is_what_the_product_says() -> None:
    assert allowed(parse(DEFAULT.split())) == {
        "read notes collection", "write notes collection", "read orders collection", "write orders collection",
        "read orders set", "read notes set", "kv read", "kv write", "events", "mail a@x.example True", "mail b@y.example True",
        "run report True", "run other True",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("grant", "lets"),
    [
        ("collections:read:notes", {"read notes collection"}),
        ("collections:write:notes", {"read notes collection", "write notes collection"}),
        ("sets:write:orders", {"read orders set", "write orders set"}),
        ("sets:write", {"read orders set", "write orders set", "read notes set", "write notes set"}),
        ("run", {"run report True", "run other True"}),
        ("run:report", {"run report True", "run report False"}),
        ("run:*", {"run report True", "run report False", "run other True", "run other False"}),
        ("kv:read", {"kv read"}),
        ("mail:A@X.example", {"mail a@x.example True", "mail a@x.example False"}),
        ("mail:*@y.example", {"mail b@y.example True", "mail b@y.example False"}),
        ("mail:*", {f"mail {to} {own}" for to in ("a@x.example", "b@y.example") for own in (True, False)}),
        ("fetch:api.example.com", {"fetch api.example.com"}),
        ("fetch:*.example.com:8443", {"fetch a.b.example.com:8443"}),
        ("fetch:*", {"fetch api.example.com"}),
        ("fetch:http://10.0.0.7:8080", {"fetch http://10.0.0.7:8080"}),
        ("secret:STRIPE", {"secret False"}),
        ("secret:STRIPE:plain", {"secret False", "secret True"}),
        ("secret:OTHER:plain", set()),
    ],
)
def test_a_grant_lets_by_what_it_says_and_nothing_else(grant: str, lets: set[str]) -> None:
    assert allowed(parse([grant])) == lets


grant_lists = st.lists(st.sampled_from(FORMS), max_size=8)


@given(grant_lists, grant_lists)
def test_narrowing_never_adds(tenant: list[str], script: list[str]) -> None:
    both = allowed(parse(tenant).narrowed(parse(script)))
    assert both <= allowed(parse(tenant)) & allowed(parse(script))
    # Names and patterns are looked at layer by layer, so nothing that both hold gets lost either.
    assert both == allowed(parse(tenant)) & allowed(parse(script))


@given(grant_lists)
def test_written_and_read_again_it_is_the_same(texts: list[str]) -> None:
    assert parse(parse(texts).shown()) == parse(texts)


def test_every_form_of_the_table_has_its_meaning() -> None:
    assert {meaning(form) for form in FORMS} == {spec.help for spec in GRANTS}


def test_the_page_on_grants_has_the_table_as_it_is() -> None:
    lines = (Path(__file__).resolve().parents[3] / "docs" / "grants.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| `")]
    assert table == [f"| `{spec.form}` | {'yes' if spec.default else 'no'} | {spec.help} |" for spec in GRANTS]


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "db", "KV", " kv", "kv:write:", "kv:all", "sets:", "sets:read:", "sets:read:a b", "sets:read:__proto__",
        "sets:drop:orders",
        "collections:read:x:y", "mail:", "mail:a", "mail:@x", "mail:a@", "mail:*@*", "mail:a@x,b@y", "mail:a b@x", "mail:a@x\n", "fetch",
        "fetch:", "fetch:ftp://x", "fetch:https://x/path", "fetch:x y", "fetch:user@x", "fetch:x:0", "fetch:x:65536", "fetch:*.*",
        "fetch:*.com:99999", "fetch:0x7f.1", "fetch:2130706433", "fetch:127.1", "fetch:1.2.3.4.5", "fetch:münchen.example",
        "fetch:[::1", "fetch:[fe80::1%25eth0]",
        "fetch:x,", "fetch:x,0s", "fetch:x,60", "fetch:x,1MiB,60s", "fetch:x,60s,", "fetch:x,6000000s", "fetch:,60s",
        "secret", "secret:", "secret:a b", "secret:A:read", "secret:A:plain:", "events:x",
    ],
)  # fmt: skip
def test_what_is_no_grant_is_refused_with_the_list(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse([text])
    assert refused.value.code in {"grant_unknown", "host_invalid"}
    assert refused.value.fix


def test_a_host_is_written_in_one_way() -> None:
    assert str(parse_origin("HTTPS://API.example.com:443/")) == "api.example.com"
    assert str(parse_origin("http://[2001:0db8:0::1]:80")) == "http://[2001:db8::1]"


def test_a_name_below_is_not_the_name_itself_nor_one_that_ends_alike() -> None:
    pattern = parse_origin("*.example.com")
    for host, inside in (
        ("example.com", False),
        ("a.example.com", True),
        ("badexample.com", False),
        ("example.com.evil", False),
    ):
        assert pattern.covers(Origin("https", host, 443)) is inside


def test_limits_of_requests_are_the_widest_of_a_layer_and_the_narrowest_of_all() -> None:
    api, mib = Origin("https", "api.example.com", 443), 1024 * 1024
    for layers, expected in (
        ((["fetch:*"],), (30, 8 * mib)),
        ((["fetch:API.example.com,120S,32mib"],), (120, 32 * mib)),
        ((["fetch:api.example.com,5s"],), (5, 8 * mib)),
        ((["fetch:*", "fetch:*.example.com,60s", "fetch:api.example.com,1MiB"],), (60, 8 * mib)),
        ((["fetch:other.example,120s", "fetch:*"],), (30, 8 * mib)),
        ((["fetch:*"], ["fetch:api.example.com,300s,64MiB"]), (30, 8 * mib)),
        ((["fetch:api.example.com,60s"], ["fetch:*"]), (60, 8 * mib)),
        ((["fetch:api.example.com,60s"], ["fetch:*,10s,1MiB"]), (10, mib)),
        ((["fetch:api.example.com,60s"], ["kv"]), None),
    ):
        granted = parse(layers[0])
        for layer in layers[1:]:
            granted = granted.narrowed(parse(layer))
        assert granted.fetch_limits(api) == expected, layers
    assert Grants(()).fetch_limits(api) == (30, 8 * mib), "without layers everything is granted"
