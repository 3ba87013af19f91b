"""Screenshots of each page of the dashboard with the demo's data: ``python -m tests.web.screenshots [FOLDER] [TIME]``."""

import base64
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from tests.web.browsing import CHROMIUM, QUIET, Page, opened

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGES = ROOT / "docs" / "images"
SIZES = {"wide": (1280, 800), "tablet": (820, 1100), "phone": (390, 844)}
#: The pictures of the README and the documentation, each by its page.
BEST = {
    "overview-wide-light": "overview",
    "schedule-wide-light": "schedule",
    "failed-action-wide-dark": "failed-action-dark",
    "script-wide-dark": "script-dark",
    "actions-phone-light": "actions-phone",
}
#: Each page by its name: its path, or the path of a list and the link on it to follow.
PAGES: dict[str, tuple[str, str | None]] = {
    "overview": ("/", None),
    "tenants": ("/tenants", None),
    "nodes": ("/operations/nodes.list", None),
    "schedules": ("/schedules", None),
    "schedule": ("/t/bluebird/schedules/weekly-figure", None),
    "edit": ("/t/bluebird/operations/schedules.edit?schedule=weekly-figure", None),
    "operations": ("/t/bluebird/operations", None),
    "secrets": ("/t/bluebird/operations/secrets.list", None),
    "actions": ("/actions", None),
    "failed-action": ("/t/bluebird/actions?state=failed", "tbody a"),
    "action": ("/t/bluebird/actions?state=done", "tbody a"),
    "durations": ("/durations", None),
    "scripts": ("/t/bluebird/scripts", None),
    "script": ("/t/bluebird/scripts/monthly_sales", None),
    "settings": ("/t/bluebird/settings", None),
    "audit-log": ("/t/bluebird/audit", None),
    "tenant": ("/t/harbor", None),
    "new-schedule": ("/t/bluebird/new-schedule", None),
    "new-script": ("/t/bluebird/new-script", None),
    "error": ("/t/bluebird/schedules/none", None),
    "sign-in": ("/sign-in", None),
}


def main(folder: Path, story: str) -> None:
    """Run the demo for a time, then make the screenshots while it serves its dashboard."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "lodger.engine.cli", "demo", "--for", story, "--serve"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=work, env=os.environ | _path()) as demo:
            assert demo.stdout is not None
            link = ""
            for line in demo.stdout:
                if ": lodger token link " in line:
                    asked = [sys.executable, "-m", "lodger.engine.cli", *line.partition(": lodger ")[2].split()]
                    link = subprocess.check_output(asked, text=True, env=os.environ | _path()).strip()
                if line.startswith("The engine and its dashboard stay up"):
                    break
            try:
                _shoot(link, folder)
            finally:
                demo.send_signal(signal.SIGINT)
                demo.stdout.read()


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT)}


def _shoot(link: str, folder: Path) -> None:
    """Make the screenshots of all pages in all sizes."""
    root = link.partition("/sign-in")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        with opened(browser) as page:
            page.goto(link)
            cookies = page.context.cookies()
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                with opened(browser, color_scheme=scheme, viewport={"width": width, "height": height}) as page:
                    page.context.add_cookies(cookies)
                    if (size, scheme) == ("wide", "light"):
                        _stop_a_script(page, root)
                    for place, (path, follow) in PAGES.items():
                        _one(page, root + path, follow, folder, f"{place}-{size}-{scheme}")
        browser.close()


def _stop_a_script(page: Page, root: str) -> None:
    """Stop a script with a schedule that fires every two seconds, so that the overview has something to say."""
    page.goto(root + "/t/harbor/scripts/confirm_orders")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Suspend").click()
    page.goto(root + "/")
    page.get_by_text("script suspended").first.wait_for()


def _one(page: Page, url: str, follow: str | None, folder: Path, name: str) -> None:
    """Open a page, or the one behind its first link, and store its screenshot."""
    page.goto(url)
    if follow is not None:
        link: Any = page.locator(follow).first
        page.goto(page.url.partition("/t/")[0] + link.get_attribute("href"))
    page.screenshot(path=folder / f"{name}.png")
    print(folder / f"{name}.png", flush=True)  # noqa: T201 - a command
    if name in BEST:
        taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 82})
        (IMAGES / f"{BEST[name]}.webp").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"), sys.argv[2] if len(sys.argv) > 2 else "20s")
