"""The platform's name, logo and colours on pages."""

import os
from pathlib import Path

import httpx2
import pytest
from tests.api.running_api import running_api

from lodger.engine.core.errors import InputError
from lodger.engine.service.platform_file import PlatformFile
from lodger.engine.web import dashboard_link
from lodger.engine.web.dashboard import Dashboard

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
FILE = """
[branding]
name = "<Shop> & Sons"
logo = "logo.svg"
language = "de"
colours = {accent = "rebeccapurple", line = ["#abc", "oklch(40% 0.1 20"], panel = "red/*"}
"""


def test_pages_show_name_logo_and_colours(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_text(SVG)
    (tmp_path / "lodger.toml").write_text(FILE)
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}") as lodge:
        lodge.token("admin")
        Dashboard(lodge.api).add()
        with httpx2.Client(
            base_url=lodge.url,
            trust_env=False,
            follow_redirects=True,
            headers={"accept": "text/html", "accept-language": "en"},
        ) as browser:
            assert "<h1>Lodger</h1>" in browser.get("/sign-in").text
            assert browser.get("/static/brand.css").status_code == 404
            PlatformFile(tmp_path / "lodger.toml").apply(lodge.engine)
            for path in ("/sign-in", str(dashboard_link.link(lodge.engine)), "/tenants", "/nowhere"):
                shown = browser.get(path).text
                assert "&lt;Shop&gt; &amp; Sons" in shown
                assert "Lodger<" not in shown
                assert '<html lang="de"' in shown, "whatever the browser asks for"
                assert path.startswith("/sign-in?code") or "/static/brand.css" in shown
            style = browser.get("/static/brand.css")
            assert "--accent: light-dark(rebeccapurple, rebeccapurple);" in style.text
            assert "--line: light-dark(#abc, oklch(40% 0.1 20));" in style.text, "what is not closed opens nothing"
            assert "--panel: light-dark(red, red);" in style.text
            logo = browser.get("/static/brand-logo")
            assert (logo.text, logo.headers["content-type"]) == (SVG, "image/svg+xml")
            assert "sandbox" in logo.headers["content-security-policy"]
            assert "script-src" not in logo.headers["content-security-policy"]


NO_BRANDS = (
    'colours = {accent = "red; } body { display: none"}', 'colours = {accent = "url(https://a.example/x)"}', 'font = "Arial"',
    'language = "xx"', 'language = "DE"',
    'colours = {accent = "var(--x)"}', 'colours = {accent = "currentcolor"}', 'colours = {accent = "#12345"}', 'logo = "huge.png"',
    'colours = {accent = ["red"]}', 'colours = {accent = ""}', 'colours = {background = "red"}', 'name = ""', 'logo = "empty.png"',
    f'name = "{"x" * 61}"', 'logo = "logo.exe"', 'logo = "absent.svg"', 'logo = "pipe.svg"', 'logo = "a\\u0000.svg"',
)  # fmt: skip


def test_what_is_no_brand_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    os.mkfifo(tmp_path / "pipe.svg")
    (tmp_path / "huge.png").write_bytes(b"x" * 300_000)
    with running_api(f"sqlite:///{tmp_path / 'ledger.db'}") as lodge:
        for text in NO_BRANDS:
            (tmp_path / "lodger.toml").write_text(f"[branding]\n{text}\n")
            with pytest.raises(InputError) as told:
                PlatformFile(tmp_path / "lodger.toml").apply(lodge.engine)
            assert told.value.code.startswith("platform_file"), text
            assert "lodger.toml:" in told.value.what, text
            assert "function-after" not in told.value.what, text
