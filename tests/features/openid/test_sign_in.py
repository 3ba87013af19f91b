"""Signing in at an OpenID Connect provider: with a published one, and against one that lies."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
import pytest
from joserfc.jwk import RSAKey
from tests.api.running_api import NO_CERTIFICATES, RunningApi
from tests.features.openid.providers import RULES, Provider, configure, mock_provider, provider, signing_key

from lodger.engine.core.errors import InputError
from lodger.engine.service.platform_file import PlatformFile

JSON = {"accept": "application/json"}
STRICT = re.compile("lodger=[^;]+; HttpOnly; Max-Age=3600; Path=/; SameSite=strict", re.IGNORECASE)


def visitor(lodge: RunningApi) -> httpx2.Client:
    return httpx2.Client(
        base_url=lodge.url, timeout=50, trust_env=False, verify=NO_CERTIFICATES, headers={"accept": "text/html"}
    )


def query(answer: httpx2.Response) -> dict[str, str]:
    assert answer.status_code in {302, 303}, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def test_users_of_a_provider_are_callers_by_their_claims(lodge: RunningApi, tmp_path: Path) -> None:
    with mock_provider() as issuer:
        configure(lodge, tmp_path, RULES.replace("{issuer}", issuer))

        def sign_in(user: str, client: httpx2.Client) -> httpx2.Response:
            asked = client.get("/sign-in/openid?next=/t/acme/schedules")
            sent = query(asked)
            assert sent["code_challenge_method"] == "S256"
            assert sent["response_type"] == "code"
            assert set(sent["scope"].split()) == {"openid", "email", "profile"}
            consented = client.post(asked.headers["location"], data={"sub": user})
            assert consented.headers["location"].startswith(f"{lodge.url}/sign-in/callback?")
            return client.get(consented.headers["location"])

        for user, role, tenant, name in (
            ("ann", "admin", None, "ann@shop.example"),
            ("bob", "editor", "acme", "bob"),  # an unproved mail address is no name
            ("eve", "viewer", "acme", "eve"),
        ):
            with visitor(lodge) as client:
                shown = client.get("/t/acme/schedules")
                assert shown.headers["location"] == "/sign-in?next=/t/acme/schedules"
                page = client.get(shown.headers["location"]).text
                assert 'href="/sign-in/openid?next=%2Ft%2Facme%2Fschedules">Sign in with Example' in page
                done = sign_in(user, client)
                assert done.status_code == 200
                assert 'content="0; url=/t/acme/schedules"' in done.text
                session = next(each for each in done.headers.get_list("set-cookie") if each.startswith("lodger="))
                assert STRICT.fullmatch(session)
                mine = client.get("/api/v1/session").json()
                assert (mine["role"], mine["tenant_id"], mine["name"]) == (role, tenant, name)
                assert client.get("/t/acme/schedules").status_code == 200
                old = client.cookies["lodger"]
                sign_in(user, client)
                assert client.cookies["lodger"] != old
                assert httpx2.get(f"{lodge.url}/api/v1/me", headers={"cookie": f"lodger={old}"}).status_code == 401
                out = client.delete(
                    "/api/v1/session", headers={"x-csrf-token": client.get("/api/v1/session").json()["csrf"]}
                )
                assert out.status_code == 204
                assert out.headers["location"].startswith(f"{issuer}/oauth2/end_session?id_token_hint=")
                assert (
                    query(httpx2.Response(303, headers=out.headers))["post_logout_redirect_uri"]
                    == f"{lodge.url}/sign-in"
                )
                assert client.get("/t/acme/schedules").status_code == 303
        with visitor(lodge) as client:
            refused = sign_in("zoe", client)
            assert refused.status_code == 403
            assert "which tenant is yours" in refused.text
        entries = [each for each in lodge.engine.audit.list() if each.verb == "sessions.begin"]
        assert {each.actor for each in entries} == {"ann@shop.example", "bob", "eve"}
        with visitor(lodge) as client:
            sign_in("ann", client)
            lodge.clock.advance(3600)
            assert client.get("/api/v1/me", headers=JSON).status_code == 401, "the session has a life of its own"


Change = Callable[[Provider], Any]


def with_claims(**claims: Any) -> Change:
    """Return a change of a provider: it signs these claims."""
    return lambda liar: liar.claims.update(claims)


def with_attributes(**values: Any) -> Change:
    """Return a change of a provider: it has these attributes."""

    def change(liar: Provider) -> None:
        for name, value in values.items():
            setattr(liar, name, value)

    return change


def other_key(name: str) -> Any:
    """Return another key than the provider's, under this name."""
    return RSAKey.import_key(signing_key("other").as_dict(private=True) | {"kid": name})


LIES: dict[str, tuple[int, Change]] = {
    "another audience": (401, with_claims(aud="other")),
    "several audiences, for another party": (401, with_claims(aud=["lodger", "other"], azp="other")),
    "several audiences, without a party": (401, with_claims(aud=["lodger", "other"])),
    "another issuer": (401, with_claims(iss="https://evil.example")),
    "no issuer": (401, with_claims(iss=None)),
    "expired": (401, with_claims(exp=1_700_000_000)),
    "no expiry": (401, with_claims(exp=None)),
    "of tomorrow": (401, with_claims(iat=9_999_999_999)),
    "another nonce": (401, with_claims(nonce="other")),
    "no nonce": (401, with_claims(nonce=None)),
    "no subject": (401, with_claims(sub=None)),
    "a number for a subject": (401, with_claims(sub=7)),
    "no signature": (401, with_attributes(algorithm="none")),
    "the public key as a secret": (401, with_attributes(algorithm="HS256")),
    "a key that is not published": (401, lambda liar: with_attributes(published=[other_key("first")])(liar)),
    "no key": (401, with_attributes(published=[])),
    "a huge token": (401, with_claims(groups=["x" * 70_000])),
    "a huge name": (403, with_claims(email="x" * 300, email_verified=True)),
    "no tenant": (403, with_claims(org=None)),
    "two tenants": (403, with_claims(org=["acme", "other"])),
    "a tenant that is an object": (403, with_claims(org={"acme": 1})),
    "an unknown tenant": (403, with_claims(org="absent")),
    "the platform for a tenant": (403, with_claims(org="@platform")),
    "claims that are nested deeply": (401, with_claims(groups="nested")),
    "a path for a tenant": (403, with_claims(org="../acme")),
    "a group that looks like a list": (200, with_claims(groups="['lodger-admins']")),
    "a new key": (200, lambda liar: with_attributes(key=other_key("new"), published=[other_key("new")])(liar)),
    "a list of one tenant": (200, with_claims(org=["acme"])),
}


def test_a_provider_that_lies_signs_no_user_in(lodge: RunningApi, tmp_path: Path, subtests: pytest.Subtests) -> None:
    with provider() as liar:
        configure(lodge, tmp_path, RULES.replace("{issuer}", liar.issuer))
        for lie, (status, change) in LIES.items():
            with subtests.test(lie), visitor(lodge) as client:
                liar.claims, liar.algorithm, liar.published = {}, "RS256", [liar.key]
                change(liar)
                sent = query(client.get("/sign-in/openid"))
                liar.codes["code"] = sent["code_challenge"], sent["nonce"]
                answer = client.get("/sign-in/callback", params={"code": "code", "state": sent["state"]})
                assert answer.status_code == status, answer.text
                assert answer.headers["content-type"].startswith("text/html")
                signed_in = client.get("/api/v1/session", headers=JSON)
                assert signed_in.status_code == (200 if status == 200 else 401)
                if status == 200:
                    assert (signed_in.json()["role"], signed_in.json()["tenant_id"]) == ("viewer", "acme")


def test_a_sign_in_belongs_to_one_browser_and_happens_once(lodge: RunningApi, tmp_path: Path) -> None:
    with provider() as honest:
        configure(lodge, tmp_path, RULES.replace("{issuer}", honest.issuer))

        def callback(client: httpx2.Client, sent: dict[str, str], **more: str) -> httpx2.Response:
            honest.codes["code"] = sent["code_challenge"], sent["nonce"]
            return client.get("/sign-in/callback", params={"code": "code", "state": sent["state"]} | more)

        with visitor(lodge) as client, visitor(lodge) as victim:
            asked = client.get("/sign-in/openid")
            cookie = asked.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=lax" in cookie
            assert query(asked)["nonce"] not in cookie
            assert query(asked)["state"] not in cookie
            sent = query(asked)
            assert callback(victim, sent).status_code == 401, "another browser: login CSRF"
            victim.get("/sign-in/openid")
            assert callback(victim, sent).status_code == 401, "another browser, which has begun a sign-in of its own"
            assert callback(client, sent | {"state": "x"}).status_code == 401
            for more in ({"iss": "https://evil.example"}, {"error": "access_denied", "code": ""}):
                sent = query(client.get("/sign-in/openid"))
                assert callback(client, sent, **more).status_code == 401
            refused = client.get("/sign-in/openid")
            denied = client.get(
                "/sign-in/callback", params={"error": "<b>access_denied", "state": query(refused)["state"]}
            )
            assert denied.status_code == 401
            assert "&lt;b&gt;access_denied" in denied.text
            sent = query(client.get("/sign-in/openid"))
            kept = {"cookie": f"lodger-sign-in={client.cookies['lodger-sign-in']}"}
            assert callback(client, sent).status_code == 200
            assert "lodger-sign-in" not in client.cookies
            again = callback(victim, sent)
            assert again.status_code == 401
            honest.codes["code"] = sent["code_challenge"], sent["nonce"]
            replayed = httpx2.get(
                f"{lodge.url}/sign-in/callback", params={"code": "code", "state": sent["state"]}, headers=kept
            )
            assert replayed.status_code == 401, "the same cookie, state and code once more"
            assert "completed before" in replayed.text
            repeated = client.get(f"/sign-in/callback?state={sent['state']}&state=x&code=code")
            assert repeated.status_code == 401
            tampered = httpx2.get(f"{lodge.url}/sign-in/callback", headers={"cookie": kept["cookie"][:-2] + "xx"})
            assert tampered.status_code == 401
            unread = httpx2.get(
                f"{lodge.url}/sign-in/callback", headers={"cookie": f"lodger-sign-in=x.{'9' * 5000}.%2F"}
            )
            assert unread.status_code == 401, "Python reads no such number"


NEXT = {
    "/t/acme": "/t/acme", "/t/acme/actions?filter=a%20b": "/t/acme/actions?filter=a%20b", "": "/", "t/acme": "/",
    "https://evil.example/": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/",
    "/\t/evil.example": "/", "/ /evil.example": "/", "javascript:alert(1)": "/", "/sign-in?code=x": "/", "/x\r\nset-cookie: a=b": "/",
    "/t/ä": "/", '/"><script>': "/&#34;&gt;&lt;script&gt;", "/" + "x" * 3000: "/",
}  # fmt: skip


def test_next_is_a_page_of_the_dashboard(lodge: RunningApi, tmp_path: Path, subtests: pytest.Subtests) -> None:
    with provider() as honest:
        configure(lodge, tmp_path, RULES.replace("{issuer}", honest.issuer))
        for number, (wanted, page) in enumerate(NEXT.items()):
            with subtests.test(wanted), visitor(lodge) as client:
                signed = client.post("/sign-in", params={"next": wanted}, data={"token": lodge.token("admin")})
                assert unquote(signed.headers["location"]) == unquote(unescape(page))
                if number % 4:
                    continue
                sent = query(client.get("/sign-in/openid", params={"next": wanted}))
                honest.codes["code"] = sent["code_challenge"], sent["nonce"]
                done = client.get("/sign-in/callback", params={"code": "code", "state": sent["state"]})
                assert f'content="0; url={page}"' in done.text


def test_a_provider_that_is_away_has_a_page(lodge: RunningApi, tmp_path: Path) -> None:
    with visitor(lodge) as client:
        assert client.get("/sign-in/openid").status_code == 404
        assert "Sign in with" not in client.get("/sign-in").text
        with provider() as honest:
            configure(lodge, tmp_path, RULES.replace("{issuer}", honest.issuer))
            for about in (
                {"issuer": "https://evil.example"},
                {"token_endpoint": None},
                {"authorization_endpoint": "http://evil.example/"},
                {"userinfo_endpoint": "http://evil.example/"},
                {"userinfo_endpoint": None},
            ):
                honest.about = about
                assert client.get("/sign-in/openid").status_code == 503
            honest.about = {}
            sent = query(client.get("/sign-in/openid"))
        gone = client.get("/sign-in/callback", params={"code": "code", "state": sent["state"]})
        configure(lodge, tmp_path, RULES.replace("{issuer}", honest.issuer))
        for answer in (gone, client.get("/sign-in/openid")):
            assert answer.status_code == 503
            assert "cannot be used to sign in" in answer.text
            assert honest.issuer in answer.text
    assert httpx2.get(f"{lodge.url}/sign-in/callback").status_code == 401


def test_claims_that_the_provider_has_elsewhere_are_asked_for(lodge: RunningApi, tmp_path: Path) -> None:
    with provider() as honest, visitor(lodge) as client:
        configure(lodge, tmp_path, RULES.replace("{issuer}", honest.issuer))
        for more, role in (
            ({"groups": ["lodger-admins"]}, "admin"),
            ({"groups": ["lodger-admins"], "sub": "bob"}, "viewer"),
        ):
            honest.more = more
            sent = query(client.get("/sign-in/openid"))
            honest.codes["code"] = sent["code_challenge"], sent["nonce"]
            client.get("/sign-in/callback", params={"code": "code", "state": sent["state"]})
            assert client.get("/api/v1/session").json()["role"] == role


WRONG = {
    'issuer = "http://login.example"\nclient_id = "a"': "begins with https://",
    'issuer = "https://login.example"': "client_id",
    'issuer = "https://login.example"\nclient_id = "a"\nrules = []': "rules",
    'issuer = "https://login.example"\nclient_id = "a"\nrules = [{role = "king"}]': "role",
    'issuer = "https://login.example"\nclient_id = "a"\nrules = [{role = "viewer"}]': "needs tenant",
    'issuer = "https://login.example"\nclient_id = "a"\nrules = [{role = "admin", tenant = "acme"}]': "none",
    'issuer = "https://login.example"\nclient_id = "a"\nrules = [{role = "admin", claim = "a"}]': "belong together",
    'issuer = "https://login.example"\nclient_id = "$NOT_SET_ANYWHERE"\nrules = [{role = "admin"}]': "NOT_SET_ANYWHERE",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_in_the_file_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    place = tmp_path / "lodger.toml"
    place.write_text(f"[signin]\n{text}\n")
    with pytest.raises(InputError) as told:
        PlatformFile(place)
    assert told.value.code.startswith("platform_file")
    assert f"{place}:" in told.value.what
    assert WRONG[text] in str(told.value)
