"""Pages of a real Chromium; errors of their scripts and violations of their policy fail the test."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: What the tests' Chromium is: playwright's Browser and Page, or nothing where it is not installed.
Browser = Any
Page = Any
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: Seconds that a browser has to start or to end, and milliseconds that a page has to show something.
START_S, WAIT_MS = 90, 15_000


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Kill playwright's driver if the block has not ended by then: what waits for it fails, where it would hang for ever."""
    timer = threading.Timer(seconds, _end_driver)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _end_driver() -> None:
    """Kill playwright's driver processes."""
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            with suppress(OSError):
                if b"playwright" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)


@contextmanager
def opened(browser: Browser, *expected: str, **context: Any) -> Iterator[Page]:
    """Open a page of a context of its own; errors of its scripts and violations of its policy, which Chromium logs, fail the block.

    Args:
        expected: parts of messages that are no failure here.
    """
    complaints: list[str] = []
    made = browser.new_context(**context)
    page = made.new_page()
    page.set_default_timeout(WAIT_MS)
    page.set_default_navigation_timeout(2 * WAIT_MS)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    try:
        yield page
    finally:
        made.close()
    # What the server refuses (a rule half typed) the browser notes, too.
    left = [each for each in complaints if "status of 4" not in each and not any(told in each for told in expected)]
    assert left == [], left


#: The name of what has the focus, also inside the editor.
_FOCUSED = """(() => {
  let found = document.activeElement;
  while (found.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
  return (found.ariaLabel || found.labels?.[0]?.textContent || found.textContent).trim();
})()"""


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the link, button or field of this name has the focus."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate(_FOCUSED).startswith(name):
            return
    raise AssertionError(f"no way to {name!r} by the keyboard")
